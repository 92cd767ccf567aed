// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Testing

@testable import Audio

@Suite struct AudioShiftTests {
    static let format = AudioFormat(sampleRate: 48_000, channelCount: 2)
    static let packets = MediaFormat.encoded(
        EncodedFormat(
            codec: .aac,
            audio: AudioTrackFormat(codec: .aac, timeBase: TimeBase(1, 48_000), sampleRate: 48_000, channelCount: 2)))

    private func driver(_ options: String, isLive: Bool = false) throws -> StageDriver<AudioShift> {
        try StageDriver(AudioShift.self, options: options, input: .audio(Self.format), isLive: isLive)
    }

    @Test(arguments: [
        (#""-120ms""#, -120_000_000), (#""1.5s""#, 1_500_000_000), (#""+0.25ms""#, 250_000),
        (#""600s""#, 600_000_000_000),
    ]) func movesTimesAndNothingElse(_ shift: (text: String, nanoseconds: Int64)) throws {
        let driver = try driver(#"{ "shift": \#(shift.text) }"#)
        let wave = tone(Self.format)
        try driver.sendSound(Self.format, total: 4800, blocksOf: 480, wave: wave)
        try driver.drain()
        let blocks = driver.takeBlocks()
        #expect(blocks.count == 10)
        for (index, block) in blocks.enumerated() {
            #expect(block.pts.nanoseconds == Int64(index) * 10_000_000 + shift.nanoseconds)
            #expect(block.duration == MediaTime(seconds: 0.01) && !block.isDiscontinuity)
            #expect(block.capturedAt == 1_000_000_000 && block.number == UInt64(index))
            #expect(block.samples == (0..<480).flatMap { [wave(480 * index + $0), wave(480 * index + $0)] })
        }
    }

    @Test func movesPacketsWithBothOfTheirTimes() throws {
        let driver = try StageDriver(AudioShift.self, options: #"{ "shift": "-400ms" }"#, input: Self.packets)
        for index in 0..<3 {
            let unit = try driver.makeAccessUnit(
                [UInt8(index), 7], pts: MediaTime(seconds: Double(index - 1) / 50), isKeyframe: true)
            unit.duration = MediaTime(seconds: 0.02)
            unit.capturedAt = 5
            try driver.send(unit)
        }
        let packets = driver.takePackets()
        #expect(packets.map(\.pts) == [-0.42, -0.4, -0.38].map { MediaTime(seconds: $0) })
        #expect(packets.map(\.dts) == packets.map(\.pts) && packets.map(\.bytes) == [[0, 7], [1, 7], [2, 7]])
        #expect(packets.allSatisfy { $0.duration == MediaTime(seconds: 0.02) && $0.isKeyframe && $0.capturedAt == 5 })
    }

    /// Of a file; what a camera gives has the clock's times.
    @Test(arguments: [false, true]) func leavesOutWhatLiesBeforeTheStart(isLive: Bool) throws {
        let driver = try driver(#"{ "shift": "-800ms" }"#, isLive: isLive)
        try driver.sendSound(Self.format, total: 48_000, blocksOf: 480, wave: tone(Self.format))
        let blocks = driver.takeBlocks()
        #expect(blocks.first?.pts == MediaTime(seconds: isLive ? -0.8 : -0.51) && blocks.count == (isLive ? 100 : 71))
        #expect(blocks.last?.pts == MediaTime(seconds: 0.19))
    }

    @Test func keepsTimesRisingWhenItChanges() throws {
        let driver = try driver(#"{ "shift": "50ms" }"#)
        func send(_ first: Int) throws {
            try driver.sendSound(Self.format, from: first, total: 4800, blocksOf: 480) { Float($0) / 20_000 }
        }
        try send(0)
        try driver.set(#"{ "shift": "0ms" }"#)
        try send(4800)
        try driver.set(#"{ "shift": "30ms" }"#)
        try send(9600)
        let blocks = driver.takeBlocks()
        // 50 ms earlier: the five blocks whose new times had sound already are left out.
        #expect(blocks.count == 25 && driver.dropCount(.byStage) == 5)
        #expect(blocks[10].pts == MediaTime(seconds: 0.15) && blocks[10].samples[0] == Float(4800 + 5 * 480) / 20_000)
        #expect(blocks[15].pts == MediaTime(seconds: 0.23))
        #expect(blocks.indices.filter { blocks[$0].isDiscontinuity } == [10, 15])
        #expect(zip(blocks, blocks.dropFirst()).allSatisfy { $0.pts + $0.duration <= $1.pts })
    }

    @Test(arguments: [#""120""#, "-120", #""12 ms""#, #""ms""#, #""nans""#, #""601s""#])
    func refusesWhatIsNoTime(_ text: String) {
        #expect(throws: (any Error).self) { try driver(#"{ "shift": \#(text) }"#) }
    }

    @Test func refusesInALiveChainWhatQueuesCannotHold() throws {
        let error = #expect(throws: FrameHostError.self) { try self.driver(#"{ "shift": "-1.5s" }"#, isLive: true) }
        #expect(
            error?.description
                == "shift: -1500ms must be from -1s to 5s in a live chain: pictures wait at most 1 s for earlier sound, and queues keep later sound for some seconds only. Use a time in this range."
        )
        let driver = try self.driver(#"{ "shift": "5s" }"#, isLive: true)
        #expect(throws: FrameHostError.self) { try driver.set(#"{ "shift": "6s" }"#) }
        #expect(driver.stage.options.shift.description == "5000ms")
    }
}
