// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Testing

@testable import Audio

@Suite struct AudioMeterTests {
    static let format = AudioFormat(sampleRate: 48_000, channelCount: 2)

    private func driver(_ options: String = "{}", _ format: AudioFormat = format) throws -> StageDriver<AudioMeter> {
        try StageDriver(AudioMeter.self, options: options, input: .audio(format))
    }

    private func figure(_ name: String, of driver: StageDriver<AudioMeter>) -> Double? {
        driver.stage.figures[name]?.asDouble
    }

    /// EBU Tech 3341, case 1: a stereo tone of 1 kHz at -23 dBFS is -23 LUFS in all three windows.
    @Test(arguments: [-23.0, -33.0]) func measuresAsEBUTech3341Says(level: Double) throws {
        let driver = try driver()
        try driver.sendSound(
            Self.format, total: 48_000 * 4, blocksOf: 480, isKept: false, wave: tone(Self.format, level: level))
        for name in ["momentaryLufs", "shortTermLufs", "integratedLufs"] {
            #expect(abs(try #require(figure(name, of: driver)) - level) < 0.1)
        }
        #expect(abs(try #require(figure("truePeakDb", of: driver)) - level) < 0.1)
        #expect(driver.stage.figures["isSilent"]?.asBool == false)
    }

    @Test func findsThePeakBetweenTheSamples() throws {
        let driver = try driver()
        // A quarter of the rate, 45 degrees off: the samples only reach 0.707 of the wave's peak.
        try driver.sendSound(Self.format, total: 48_000, blocksOf: 1000, isKept: false) {
            [0.3535534, 0.3535534, -0.3535534, -0.3535534][$0 % 4]
        }
        #expect(abs(try #require(figure("truePeakDb", of: driver)) + 6.02) < 0.4)
    }

    @Test func passesBlocksOnUnchanged() throws {
        let driver = try driver()
        let wave = tone(Self.format)
        try driver.sendSound(Self.format, total: 48_000, blocksOf: 777, wave: wave)
        let blocks = driver.takeBlocks()
        #expect(blocks.count == 62)
        #expect(blocks.flatMap(\.samples) == (0..<48_000).flatMap { [wave($0), wave($0)] })
        #expect(blocks[1].pts == Self.format.timeBase.time(ofTicks: 777))
        #expect(driver.keptBuffers == 0)
    }

    @Test func tellsWhenTheSoundFallsSilentAndComesBack() throws {
        let driver = try driver(#"{ "silenceSeconds": 1 }"#)
        let wave = tone(Self.format)
        try driver.sendSound(Self.format, total: 48_000, blocksOf: 480, isKept: false, wave: wave)
        #expect(driver.takeEvents().isEmpty)
        try driver.sendSound(Self.format, from: 48_000, total: 48_000, blocksOf: 480, isKept: false) { _ in 0 }
        #expect(driver.takeEvents().isEmpty)
        try driver.sendSound(Self.format, from: 96_000, total: 48_000, blocksOf: 480, isKept: false) { _ in 0 }
        let began = driver.takeEvents()
        #expect(began.map(\.name) == ["silence-began"])
        #expect(
            began.first?.text == "The sound has been silent (below -60 LUFS) for 1 s: every sample is 0.")
        #expect(began.first?.details["isDigital"]?.asBool == true)
        #expect(driver.stage.figures["isSilent"]?.asBool == true)
        #expect(driver.stage.figures["momentaryLufs"]?.value == .null)
        try driver.sendSound(Self.format, from: 144_000, total: 9600, blocksOf: 480, isKept: false, wave: wave)
        let ended = driver.takeEvents()
        #expect(ended.map(\.name) == ["silence-ended"])
        #expect(driver.stage.figures["isSilent"]?.asBool == false)
    }

    @Test func tellsQuietFromDigitalSilence() throws {
        let driver = try driver(#"{ "silenceSeconds": 0.5 }"#)
        try driver.sendSound(
            Self.format, total: 96_000, blocksOf: 480, isKept: false, wave: tone(Self.format, level: -70))
        let events = driver.takeEvents()
        #expect(events.map(\.name) == ["silence-began"])
        #expect(events.first?.details["isDigital"]?.asBool == false)
        #expect(events.first?.text == "The sound has been silent (below -60 LUFS) for 0.5 s.")
    }

    @Test func hasNewBoundsWhileItRuns() throws {
        let driver = try driver(#"{ "silenceSeconds": 0.5 }"#)
        let wave = tone(Self.format, level: -40)
        try driver.sendSound(Self.format, total: 48_000, blocksOf: 480, isKept: false, wave: wave)
        #expect(driver.takeEvents().isEmpty)
        try driver.set(#"{ "silenceLufs": -30 }"#)
        try driver.sendSound(Self.format, from: 48_000, total: 48_000, blocksOf: 480, isKept: false, wave: wave)
        #expect(driver.takeEvents().filter { $0.name == "silence-began" }.count == 1)
    }

    @Test func recoversFromNumbersThatAreNoSound() throws {
        let driver = try driver()
        try driver.sendSound(Self.format, total: 480, blocksOf: 480, isKept: false) { $0 % 2 == 0 ? .nan : .infinity }
        try driver.sendSound(
            Self.format, from: 480, total: 48_000, blocksOf: 480, isKept: false, wave: tone(Self.format, level: -23))
        #expect(abs(try #require(figure("momentaryLufs", of: driver)) + 23) < 0.1)
    }

    /// BS.1770-4, table 4: a tone in one channel counts by the place of its loudspeaker, against front left.
    @Test(
        arguments: [
            ("7.1", [0, 0, 0, nil, 0, 0, 1.5, 1.5]), ("5.1", [0, 0, 0, nil, 1.5, 1.5]),
            ("5.1(side)", [0, 0, 0, nil, 1.5, 1.5]),
            ("quad", [0, 0, 1.5, 1.5]), ("4.0", [0, 0, 0, 0]), ("2.1", [0, 0, nil]),
        ] as [(String, [Double?])])
    func weightsChannelsByTheirPlaces(name: String, expected: [Double?]) throws {
        let layout = try #require(ChannelLayout(name))
        let format = AudioFormat(sampleRate: 48_000, channelCount: layout.channelCount, layout: layout)
        let one = AudioFormat(sampleRate: 48_000, channelCount: 1)
        func loudness(of channel: Int) throws -> Double? {
            let driver = try driver("{}", format)
            let wave = tone(one, level: -23)
            for start in stride(from: 0, to: 48_000, by: 480) {
                var samples = [Float](repeating: 0, count: 480 * layout.channelCount)
                for moment in 0..<480 { samples[moment * layout.channelCount + channel] = wave(start + moment) }
                try driver.send(driver.makeAudioBlock(samples, pts: MediaTime(seconds: Double(start) / 48_000)))
                _ = driver.takeBlocks()
            }
            return figure("momentaryLufs", of: driver)
        }
        let left = try #require(try loudness(of: 0))
        for (channel, more) in expected.enumerated() {
            let found = try loudness(of: channel)
            if let more {
                #expect(abs(try #require(found) - left - more) < 0.05, "channel \(channel) of \(name)")
            } else {
                #expect(found == nil, "channel \(channel) of \(name)")
            }
        }
    }

    @Test(arguments: [8000, 44_100, 96_000, 192_000], [1, 2, 6, 8])
    func measuresAnyRateAndNumberOfChannels(rate: Int, channels: Int) throws {
        let format = AudioFormat(sampleRate: rate, channelCount: channels)
        let driver = try driver("{}", format)
        try driver.sendSound(format, total: rate, blocksOf: rate / 100, isKept: false, wave: tone(format))
        #expect(try #require(figure("momentaryLufs", of: driver)) > -30)
    }
}

@Suite struct SilenceWatchTests {
    @Test func countsOnlySoundBelowTheBoundInARow() {
        var watch = SilenceWatch()
        let readings = [true, true, false, true, true, true, true, false]
        let changes = readings.map { watch.look(isBelow: $0, samples: 10, needed: 20) }
        #expect(changes == [nil, nil, nil, nil, nil, .began(samples: 20), nil, .ended(samples: 40)])
        #expect(!watch.isSilent)
    }
}
