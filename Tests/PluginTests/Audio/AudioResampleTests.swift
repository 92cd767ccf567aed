// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Testing

@testable import Audio

@Suite struct AudioResampleTests {
    static let cd = AudioFormat(sampleRate: 44_100, channelCount: 2)

    private func driver(_ options: String, _ format: AudioFormat = cd) throws -> StageDriver<AudioResample> {
        try StageDriver(AudioResample.self, options: options, input: .audio(format))
    }

    @Test(arguments: [1, 64, 441, 20_000]) func givesTheSameSoundAtAnotherRate(size: Int) throws {
        let driver = try driver(#"{ "sampleRate": 48000 }"#)
        let target = AudioFormat(sampleRate: 48_000, channelCount: 2)
        #expect(driver.outputFormat?.audio == target)
        var blocks: [HeardBlock] = []
        for part in 0..<11 {
            try driver.sendSound(
                Self.cd, from: part * 400, total: 400, blocksOf: size, wave: tone(Self.cd, level: -6))
            blocks += driver.takeBlocks()
        }
        try driver.drain()
        #expect(driver.stage.held == 0)
        blocks += driver.takeBlocks()
        let samples = blocks.flatMap(\.samples)
        // 4400 samples at 44.1 kHz are 4789 at 48 kHz.
        #expect(abs(samples.count / 2 - 4789) <= 1)
        var position: Int64 = 0
        for (index, block) in blocks.enumerated() {
            #expect(block.pts == target.timeBase.time(ofTicks: position))
            position += Int64(block.samples.count / 2)
            #expect(block.pts + block.duration == target.timeBase.time(ofTicks: position))
            #expect(block.number == UInt64(index))
        }
        // Its first sample stands for the first that came: the same wave, at the same time. The ends have no neighbours.
        let wave = tone(target, level: -6)
        for number in 100..<4600 { #expect(abs(samples[2 * number] - wave(number)) < 0.001) }
    }

    @Test func countsTimeOverManyBlocksWithoutDrift() throws {
        let driver = try driver(#"{ "sampleRate": 48000, "channels": 1 }"#)
        var samples = 0
        var last: HeardBlock?
        for second in 0..<20 {
            try driver.sendSound(Self.cd, from: second * 44_100, total: 44_100, blocksOf: 441, wave: tone(Self.cd))
            for block in driver.takeBlocks() {
                samples += block.samples.count
                last = block
            }
        }
        try driver.drain()
        for block in driver.takeBlocks() {
            samples += block.samples.count
            last = block
        }
        #expect(abs(samples - 20 * 48_000) <= 1)
        let end = try #require(last)
        #expect(abs((end.pts + end.duration).seconds - 20) < 0.0001)
    }

    @Test func mixesChannelsWithoutLouderPeaks() throws {
        let stereo = AudioFormat(sampleRate: 48_000, channelCount: 2)
        let driver = try driver(#"{ "channels": 1 }"#, stereo)
        try driver.send(driver.makeAudioBlock([1, 1, 1, -1, 0.5, 0.25, 0, 0], pts: .zero))
        try driver.drain()
        let samples = driver.takeBlocks().flatMap(\.samples)
        for (sample, expected) in zip(samples, [1, 0, 0.375, 0] as [Float]) { #expect(abs(sample - expected) < 1e-5) }
        #expect(samples.count == 4)
    }

    @Test func keepsAGapWhereItIs() throws {
        let driver = try driver(#"{ "sampleRate": 48000 }"#)
        try driver.sendSound(Self.cd, total: 44_100, blocksOf: 441, wave: tone(Self.cd))
        try driver.sendSound(Self.cd, from: 88_200, total: 44_100, blocksOf: 441, wave: tone(Self.cd))
        try driver.drain()
        let blocks = driver.takeBlocks()
        let fresh = try #require(blocks.firstIndex { $0.isDiscontinuity })
        #expect(blocks[fresh].pts == MediaTime(seconds: 2))
        let before = blocks[fresh - 1]
        #expect(abs((before.pts + before.duration).seconds - 1) < 0.0001)
        #expect(blocks.filter(\.isDiscontinuity).count == 1)
        #expect(abs(blocks.map { $0.samples.count / 2 }.reduce(0, +) - 96_000) <= 2)
    }

    @Test func timesRiseWhereBlocksOverlap() throws {
        let driver = try driver(#"{ "sampleRate": 48000 }"#)
        try driver.sendSound(Self.cd, total: 44_100, blocksOf: 441, wave: tone(Self.cd))
        try driver.sendSound(Self.cd, from: 40_000, total: 44_100, blocksOf: 441, wave: tone(Self.cd))
        try driver.drain()
        let blocks = driver.takeBlocks()
        for (block, next) in zip(blocks, blocks.dropFirst()) { #expect(block.pts + block.duration <= next.pts) }
    }

    @Test func asksForARateOrChannels() {
        #expect(
            throws: OptionFault(
                "none of 'sampleRate', 'channels' and 'layout' is set",
                remedy: "Set one of them: \"sampleRate\": 48000.", options: ["sampleRate", "channels", "layout"])
        ) { try AudioResampleOptions().validate() }
    }

    @Test func givesTheLayoutThatIsAskedFor() throws {
        let quad = AudioFormat(sampleRate: 48_000, channelCount: 4, layout: ChannelLayout("quad"))
        func layout(_ options: String) throws -> String {
            "\(try #require(try driver(options, quad).outputFormat?.audio).layout)"
        }
        // Nothing is mixed unless it is asked for.
        #expect(try layout(#"{ "sampleRate": 44100 }"#) == "quad")
        #expect(try layout(#"{ "channels": 4, "sampleRate": 44100 }"#) == "quad")
        #expect(try layout(#"{ "channels": 3 }"#) == "2.1")
        #expect(try layout(#"{ "layout": "5.1(side)" }"#) == "5.1(side)")
    }

    @Test(arguments: ["6.7", "22.2", "Quad"]) func refusesALayoutThatItDoesNotKnow(name: String) {
        do {
            _ = try driver("{ \"layout\": \"\(name)\" }")
            Issue.record("'\(name)' was accepted")
        } catch { #expect("\(error)".contains("must be a layout of 1 to 8 channels, but is '\(name)'"), "\(error)") }
    }

    @Test func refusesALayoutOfOtherChannels() {
        do {
            _ = try driver(#"{ "layout": "quad", "channels": 2 }"#)
            Issue.record("it was accepted")
        } catch {
            #expect(
                "\(error)".contains("'layout' quad has 4 channels, but 'channels' is 2. Leave 'channels' out."),
                "\(error)")
        }
    }

    /// Four channels, each with a level of its own, from one position to another.
    @Test func keepsEachChannelWhereItIs() throws {
        let quad = AudioFormat(sampleRate: 48_000, channelCount: 4, layout: ChannelLayout("quad"))
        let levels: [Float] = [0.1, 0.2, 0.3, 0.4]
        func last(_ options: String) throws -> [Float] {
            let driver = try driver(options, quad)
            try driver.send(
                driver.makeAudioBlock((0..<4800).flatMap { _ in levels }, pts: .zero))
            try driver.drain()
            let samples = driver.takeBlocks().flatMap(\.samples)
            let count = try #require(driver.outputFormat?.audio?.channelCount)
            let middle = samples.count / count / 2 * count
            return Array(samples[middle..<middle + count])
        }
        let same = try last(#"{ "sampleRate": 44100 }"#)
        #expect(zip(same, levels).allSatisfy { abs($0 - $1) < 0.01 }, "\(same)")
        // In 5.1 the four have places of their own, beside two silent channels.
        let wide = try last(#"{ "layout": "5.1" }"#)
        #expect(zip(wide, [0.1, 0.2, 0, 0, 0.3, 0.4] as [Float]).allSatisfy { abs($0 - $1) < 0.01 }, "\(wide)")
        // In 4.0 those behind share one.
        let one = try last(#"{ "layout": "4.0" }"#)
        #expect(abs(one[2]) < 0.01 && one[3] > 0.2, "\(one)")
    }

    @Test func saysWhatItCannotMix() {
        do {
            _ = try driver(#"{ "channels": 2 }"#, AudioFormat(sampleRate: 48_000, channelCount: 64))
            Issue.record("64 channels were accepted")
        } catch {
            #expect(
                "\(error)".contains(
                    "libswresample cannot convert sound 48000 Hz, 64 channels to sound 48000 Hz, 2 channels. Use 1 to 8 channels"
                ))
        }
    }
}
