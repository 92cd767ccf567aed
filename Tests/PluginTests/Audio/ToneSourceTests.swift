// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Testing

@testable import Audio

@Suite struct ToneSourceTests {
    private func driver(_ options: String, clock: ChainClock = ManualClock(at: 0)) throws -> StageDriver<ToneSource> {
        try StageDriver(ToneSource.self, options: options, clock: clock)
    }

    private func all(_ options: String) throws -> [HeardBlock] {
        let driver = try driver(options)
        var blocks: [HeardBlock] = []
        while true {
            let progress = try driver.produce()
            blocks += driver.takeBlocks()
            if progress == .ended { return blocks }
        }
    }

    @Test func countsTimeInSamplesWithoutDrift() throws {
        // 11025 Hz: a block of 10 ms is 110.25 samples.
        let blocks = try all(#"{ "sampleRate": 11025, "blocks": 400, "channels": 1 }"#)
        var samples: Int64 = 0
        let base = TimeBase(1, 11025)
        #expect(blocks.count == 400)
        for (index, block) in blocks.enumerated() {
            #expect(block.pts == base.time(ofTicks: samples))
            #expect(block.number == UInt64(index))
            samples += Int64(block.samples.count)
            #expect(block.pts + block.duration == base.time(ofTicks: samples))
        }
        #expect(samples == 4 * 11025)
    }

    @Test func saysItsFormatAndHowMuchComes() throws {
        let driver = try driver(#"{ "sampleRate": 44100, "channels": 6, "seconds": 1.5, "blockMs": 20 }"#)
        #expect(driver.outputFormat?.audio == AudioFormat(sampleRate: 44_100, channelCount: 6))
        #expect(driver.stage.demand.expectedItems == 75)
        #expect(driver.stage.demand.expectedDuration == MediaTime(seconds: 1.5))
        #expect(!driver.stage.demand.isLive)
    }

    @Test func endsAfterTheSecondsWithAShorterBlock() throws {
        let blocks = try all(#"{ "seconds": 0.025, "channels": 2 }"#)
        #expect(blocks.map { $0.samples.count / 2 } == [480, 480, 240])
    }

    @Test func playsTheToneAtItsLevelInAllChannelsAndOverBlocks() throws {
        let blocks = try all(#"{ "seconds": 1, "frequency": 997, "level": -6, "channels": 2 }"#)
        let samples = blocks.flatMap(\.samples)
        let expected = tone(AudioFormat(sampleRate: 48_000, channelCount: 2), level: -6, frequency: 997)
        for number in 0..<48_000 {
            #expect(abs(samples[2 * number] - expected(number)) < 1e-6)
            #expect(samples[2 * number] == samples[2 * number + 1])
        }
        #expect(abs(samples.max()! - 0.501187) < 1e-4)
    }

    @Test func beepsOnEachWholeSecondFor100Milliseconds() throws {
        let samples = try all(#"{ "pattern": "beep", "seconds": 2.5, "channels": 1, "level": 0 }"#).flatMap(\.samples)
        for (number, sample) in samples.enumerated() where number % 48_000 >= 4800 { #expect(sample == 0) }
        for second in [0, 1, 2] {
            let beep = samples[second * 48_000..<second * 48_000 + 4800]
            #expect(beep.first == 0)
            // The ramp is over after a millisecond: the first peak behind it is a whole one.
            #expect(beep.prefix(48).max()! < 0.9)
            #expect(abs(beep.dropFirst(48).prefix(48).max()! - 1) < 1e-6)
            #expect(beep.suffix(2).allSatisfy { abs($0) < 0.01 })
            let step = zip(beep, beep.dropFirst()).map { abs($0 - $1) }.max()!
            #expect(step < 0.14)
        }
    }

    @Test func isSilentWhenAsked() throws {
        let samples = try all(#"{ "pattern": "silence", "blocks": 3 }"#).flatMap(\.samples)
        #expect(samples.count == 3 * 960)
        #expect(samples.allSatisfy { $0 == 0 })
    }

    @Test func pacesLiveBlocksByTheClockAndBeepsOnItsSeconds() throws {
        let clock = ManualClock(at: 7_995_000_000)
        let driver = try driver(#"{ "live": true, "pattern": "beep", "channels": 1, "level": 0 }"#, clock: clock)
        #expect(driver.stage.demand.isLive)
        for index in 0..<3 {
            _ = try driver.produce()
            // A block comes when it is over.
            #expect(clock.now() == 7_995_000_000 + Int64(index + 1) * 10_000_000)
            let block = try #require(driver.takeBlocks().first)
            #expect(block.pts.nanoseconds == 7_995_000_000 + Int64(index) * 10_000_000)
            #expect(block.capturedAt == block.pts.nanoseconds)
            #expect(!block.isDiscontinuity)
            guard index == 0 else { continue }
            // The whole second lies in the middle of the first block.
            #expect(block.samples[..<240].allSatisfy { $0 == 0 })
            #expect(block.samples[240] == 0 && block.samples[241] > 0)
        }
    }

    @Test func catchesUpAndSkipsOnlyWhatASoundCardWouldLose() throws {
        let clock = ManualClock(at: 1_000_000_000)
        let driver = try driver(#"{ "live": true }"#, clock: clock)
        _ = try driver.produce()
        clock.advance(to: 1_150_000_000)
        for _ in 0..<10 { _ = try driver.produce() }
        #expect(clock.now() == 1_150_000_000)
        let late = driver.takeBlocks()
        let ends = stride(from: Int64(1_000_000_000), through: 1_100_000_000, by: 10_000_000)
        #expect(late.map(\.pts.nanoseconds) == Array(ends))
        #expect(late.allSatisfy { !$0.isDiscontinuity })
        #expect(driver.takeEvents().filter { $0.name == "late" }.isEmpty)
        // Blocks 11 to 49 are lost, and block 50 is the next to end.
        clock.advance(to: 1_500_000_000)
        _ = try driver.produce()
        let next = try #require(driver.takeBlocks().first)
        #expect(next.pts.nanoseconds == 1_500_000_000)
        #expect(next.isDiscontinuity)
        #expect(next.number == 11)
        #expect(
            driver.takeEvents().filter { $0.name == "late" }.map(\.text)
                == [
                    "This source skipped 39 blocks of 10 ms: the machine or the chain is too slow, or the program was stopped for a while."
                ])
        _ = try driver.produce()
        #expect(try #require(driver.takeBlocks().first).isDiscontinuity == false)
    }

    @Test func warnsOnceAMinuteWhereItGoesOn() throws {
        let clock = ManualClock(at: 1_000_000_000)
        let driver = try driver(#"{ "live": true }"#, clock: clock)
        _ = try driver.produce()
        var missed: [Int: Int] = [:]
        func note(_ second: Int) {
            for event in driver.takeEvents() where event.name == "late" {
                missed[second] = event.details["missed"]?.asInt
            }
        }
        for second in [3, 5, 7, 63, 65] {
            clock.advance(to: Int64(second) * 1_000_000_000)
            _ = try driver.produce()
            _ = driver.takeBlocks()
            note(second)
        }
        try driver.stop()
        note(66)
        // Each advance but the first skips what lies between, less the block that is due.
        #expect(missed.keys.sorted() == [3, 63, 66], "\(missed)")
        let all = missed.values.reduce(0, +)
        #expect(all == 6395, "\(missed)")
    }

    @Test func refusesWhatCannotBeHeard() {
        #expect(
            throws: OptionFault(
                "'frequency' is 5000 Hz, but 8000 samples per second carry at most 4000 Hz",
                remedy: "Lower 'frequency', or raise 'sampleRate'.", options: ["frequency"])
        ) {
            var options = ToneSourceOptions()
            options.sampleRate = 8000
            options.frequency = 5000
            try options.validate()
        }
        #expect(
            throws: OptionFault(
                "'blocks' and 'seconds' both say where the sound ends", remedy: "Leave one of them out.",
                options: ["blocks", "seconds"])
        ) {
            var options = ToneSourceOptions()
            options.blocks = 3
            options.seconds = 3
            try options.validate()
        }
    }
}

@Suite struct BlockGridTests {
    @Test(arguments: [(11_025, 10), (44_100, 1), (48_000, 10), (8_000, 1000), (22_050, 7)])
    func cutsEverySampleOnce(rate: Int, milliseconds: Int) {
        let grid = BlockGrid(sampleRate: Int64(rate), blockMs: Int64(milliseconds))
        for index in Int64(0)..<2000 {
            let begin = grid.start(of: index)
            #expect(grid.block(at: begin) == index)
            #expect(grid.block(at: grid.start(of: index + 1) - 1) == index)
        }
        #expect(grid.start(of: 1000) == Int64(rate * milliseconds))
    }
}
