// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Glibc
import Testing

@testable import Audio

@Suite struct AudioMixTests {
    static let format = AudioFormat(sampleRate: 48_000, channelCount: 2)

    /// Inputs have the ids 0, 1 …
    private func driver(
        _ options: String = "{}", inputs: Int = 2, isLive: Bool = false,
        clock: ManualClock = ManualClock(at: 1_000_000_000)
    ) throws -> StageDriver<AudioMix> {
        try StageDriver(
            AudioMix.self, options: options, inputs: [MediaFormat](repeating: .audio(Self.format), count: inputs),
            isLive: isLive, clock: clock)
    }

    /// A block whose samples are those of `wave` in both channels.
    private func send(
        _ driver: StageDriver<AudioMix>, _ range: Range<Int>, to input: Int, isInTurn: Bool = true,
        wave: (Int) -> Float
    ) throws {
        let samples = range.flatMap { [wave($0), wave($0)] }
        let block = try driver.makeAudioBlock(
            samples, pts: Self.format.timeBase.time(ofTicks: Int64(range.lowerBound)), input: input)
        try driver.send(block, from: input, isInTurn: isInTurn)
    }

    /// The left channel of the blocks, which follow each other without a gap.
    private func line(_ blocks: [HeardBlock]) -> (first: Int64, samples: [Float]) {
        var next = blocks.first?.pts ?? .zero
        for block in blocks {
            #expect(abs((block.pts - next).nanoseconds) <= 1)
            next = block.pts + block.duration
        }
        let samples = blocks.flatMap { block in
            stride(from: 0, to: block.samples.count, by: 2).map { block.samples[$0] }
        }
        return (blocks.first.map { Self.format.timeBase.ticks(of: $0.pts) } ?? 0, samples)
    }

    /// Random blocks of random inputs, in the order of their time: the sum is that of the samples, to the sample.
    @Test(arguments: 0..<20) func addsSamplesAtTheirTimes(seed: UInt64) throws {
        var random = SplitMix(seed)
        let count = 2 + Int(random.next() % 3)
        let gains = (0..<count).map { _ in Double(Int(random.next() % 25)) - 18 }
        let driver = try driver(
            "{ \"limit\": \"off\", \"gains\": { \(gains.enumerated().map { "\"\($0)\": \($1)" }.joined(separator: ", ")) } }",
            inputs: count)
        var expected: [Int: Float] = [:]
        var blocks: [(input: Int, range: Range<Int>)] = []
        for input in 0..<count {
            var place = Int(random.next() % 5000)
            for _ in 0..<30 {
                // A gap now and then.
                if random.next() % 8 == 0 { place += 100 + Int(random.next() % 4000) }
                let end = place + 1 + Int(random.next() % 1500)
                blocks.append((input, place..<end))
                place = end
            }
        }
        blocks.sort { $0.range.lowerBound < $1.range.lowerBound }
        func wave(_ input: Int, _ place: Int) -> Float { Float((place * (input + 7)) % 1000 - 500) / 10_000 }
        for (input, range) in blocks {
            try send(driver, range, to: input) { wave(input, $0) }
            for place in range {
                expected[place, default: 0] += wave(input, place) * Float(pow(10, gains[input] / 20))
            }
        }
        try driver.drain()
        let (first, samples) = line(driver.takeBlocks())
        #expect(first == Int64(blocks[0].range.lowerBound))
        #expect(samples.count == blocks.map(\.range.upperBound).max()! - blocks[0].range.lowerBound)
        let wrong = samples.indices.filter { abs(samples[$0] - expected[Int(first) + $0, default: 0]) > 1e-5 }
        #expect(wrong.isEmpty, "\(wrong.prefix(3))")
    }

    @Test func givesBlocksAsSoonAsTheyAreComplete() throws {
        let driver = try driver()
        try send(driver, 0..<480, to: 0) { _ in 0.25 }
        try send(driver, 0..<960, to: 1) { _ in 0.5 }
        #expect(driver.takeBlocks().isEmpty)
        try send(driver, 480..<960, to: 0) { _ in 0.25 }
        let blocks = driver.takeBlocks()
        #expect(blocks.count == 1 && blocks[0].samples == [Float](repeating: 0.75, count: 960))
        #expect(blocks[0].capturedAt == 1_000_000_000)
        try driver.drain()
        #expect(line(driver.takeBlocks()).samples == [Float](repeating: 0.75, count: 480))
    }

    @Test func keepsWhatIsTakenBeforeItsTurn() throws {
        let driver = try driver(#"{ "limit": "off" }"#)
        for place in 0..<50 { try send(driver, place * 480..<(place + 1) * 480, to: 0, isInTurn: false) { _ in 0.1 } }
        #expect(driver.takeBlocks().isEmpty)
        for place in 0..<50 { try send(driver, place * 480..<(place + 1) * 480, to: 1) { _ in 0.2 } }
        try driver.drain()
        let samples = line(driver.takeBlocks()).samples
        #expect(samples.count == 24_000 && samples.allSatisfy { abs($0 - 0.3) < 1e-6 })
    }

    @Test func changesAGainWithoutAClick() throws {
        let driver = try driver(#"{ "gains": { "0": -6.0206 } }"#)
        func sendBoth(_ place: Int) throws {
            try send(driver, place..<place + 960, to: 0) { _ in 0.8 }
            try send(driver, place..<place + 960, to: 1) { _ in 0.1 }
        }
        try sendBoth(0)
        try driver.set(#"{ "gains": { "0": -120, "1": -120 } }"#)
        try sendBoth(960)
        try driver.drain()
        let samples = line(driver.takeBlocks()).samples
        #expect(samples[..<960].allSatisfy { abs($0 - 0.5) < 1e-4 })
        #expect(samples[1440...].allSatisfy { $0 == 0 })
        let step = zip(samples, samples.dropFirst()).map { abs($0 - $1) }.max()!
        #expect(step < 0.5 / 480 + 1e-4)
    }

    @Test func neverClips() throws {
        for (limit, most) in [("soft", Float(1)), ("off", 3)] {
            let driver = try driver(#"{ "limit": "\#(limit)" }"#)
            let wave: (Int) -> Float = { Float($0 - 480) / 480 * 1.5 }
            try send(driver, 0..<961, to: 0, wave: wave)
            try send(driver, 0..<961, to: 1, wave: wave)
            try driver.drain()
            let samples = line(driver.takeBlocks()).samples
            #expect(samples.max()! <= most && samples.min()! >= -most)
            #expect(zip(samples, samples.dropFirst()).allSatisfy { $0 <= $1 })
            // Below 0.9 it is the sum.
            for (place, sample) in samples.enumerated() where abs(2 * wave(place)) <= 0.9 {
                #expect(abs(sample - 2 * wave(place)) < 1e-6)
            }
            if limit == "off" { #expect(samples.last == 3) } else { #expect(samples.last! > 0.99) }
        }
    }

    @Test func leavesOutLongSilenceOfAllInputs() throws {
        let driver = try driver()
        try send(driver, 0..<700, to: 0) { _ in 0.1 }
        try send(driver, 480_000..<480_480, to: 1) { _ in 0.2 }
        try driver.drain()
        let blocks = driver.takeBlocks()
        #expect(blocks.map(\.samples.count) == [960, 440, 960])
        #expect(blocks.map(\.isDiscontinuity) == [false, false, true])
        #expect(blocks.last?.pts == MediaTime(seconds: 10))
    }

    @Test func goesOnWithSilenceByTheClockWhereNoInputGivesAnything() throws {
        let clock = ManualClock(at: 1_000_000_000)
        let driver = try driver(#"{ "waitMs": 200 }"#, isLive: true, clock: clock)
        #expect(driver.stage.idleTime == nil)
        for input in 0..<2 { try send(driver, 48_000..<48_480, to: input) { _ in 0.25 } }
        #expect(driver.stage.idleTime == MediaTime(nanoseconds: 1_200_000_000))
        clock.advance(to: 1_300_000_000)
        try driver.idle()
        #expect(driver.stage.idleTime == MediaTime(nanoseconds: 1_320_000_000))
        var (first, samples) = line(driver.takeBlocks())
        // It is 300 ms later, and inputs may be 200 ms late.
        #expect(first == 48_000 && samples.count == 4800)
        #expect(samples[..<480].allSatisfy { $0 == 0.5 } && samples[480...].allSatisfy { $0 == 0 })
        #expect(driver.takeEvents().map(\.name) == ["input-lost", "input-lost"])
        // One is back.
        clock.advance(to: 1_310_000_000)
        try send(driver, 63_360..<63_840, to: 1) { _ in 0.25 }
        #expect(driver.takeEvents().map(\.name) == ["input-back"])
        try driver.drain()
        (first, samples) = line(driver.takeBlocks())
        #expect(first == 52_800 && samples.count == 63_840 - 52_800 && samples.last == 0.25)
    }

    @Test func leavesOutWhatComesTooLate() throws {
        let driver = try driver(isLive: true, clock: ManualClock(at: 1_200_000_000))
        try send(driver, 48_000..<52_800, to: 0) { _ in 0.25 }
        try send(driver, 52_800..<57_600, to: 0) { _ in 0.25 }
        // 4800 samples are gone, of which these begin at 4320.
        try send(driver, 52_320..<53_280, to: 1) { _ in 0.5 }
        let event = try #require(driver.takeEvents().first)
        #expect(event.name == "input-late" && event.details["milliseconds"]?.asDouble == 10)
        try driver.drain()
        let samples = line(driver.takeBlocks()).samples
        #expect(samples.count == 9600)
        #expect(samples[..<4800].allSatisfy { $0 == 0.25 } && samples[4800..<5280].allSatisfy { $0 == 0.75 })
        #expect(samples[5280...].allSatisfy { $0 == 0.25 })
    }

    /// The times of a file that is played in real time are not those of the clock.
    @Test func takesAPlayedFileWhenItComes() throws {
        let clock = ManualClock(at: 10_000_000_000)
        let driver = try driver(isLive: true, clock: clock)
        for block in 0..<20 {
            let place = 480_000 + block * 480
            try send(driver, place..<place + 480, to: 0) { _ in 0.25 }
            try send(driver, block * 480..<(block + 1) * 480, to: 1) { _ in 0.5 }
            clock.advance(to: 10_000_000_000 + Int64(block + 1) * 10_000_000)
        }
        try driver.drain()
        #expect(driver.takeEvents().isEmpty)
        let (first, samples) = line(driver.takeBlocks())
        // It is heard 50 ms after it came.
        #expect(first == 480_000 && samples.count == 2400 + 9600)
        #expect(samples[..<2400].allSatisfy { $0 == 0.25 } && samples[2400..<9600].allSatisfy { $0 == 0.75 })
        #expect(samples[9600...].allSatisfy { $0 == 0.5 })
    }

    /// Sound that is moved to later by an `audio-shift` waits for the clock; another input may still give earlier sound.
    @Test func isNotAheadOfTheClock() throws {
        let driver = try driver(isLive: true)
        try send(driver, 48_000..<48_480, to: 0) { _ in 0.25 }
        // Two seconds ahead, where the other one is not waited for any more.
        for block in 0..<3 { try send(driver, 144_000 + block * 480..<144_480 + block * 480, to: 1) { _ in 0.5 } }
        #expect(driver.takeBlocks().isEmpty)
        try send(driver, 48_480..<48_960, to: 0) { _ in 0.25 }
        #expect(driver.takeEvents().isEmpty)
        try driver.drain()
        let samples = line(driver.takeBlocks()).samples
        #expect(samples.count == 97_440 && samples[..<960].allSatisfy { $0 == 0.25 })
        #expect(samples[960..<96_000].allSatisfy { $0 == 0 } && samples[96_000...].allSatisfy { $0 == 0.5 })
    }

    @Test func playedFilesAloneGoByWhenTheyCome() throws {
        let clock = ManualClock(at: 10_000_000_000)
        let driver = try driver(isLive: true, clock: clock)
        for block in 0..<20 {
            for input in 0..<2 { try send(driver, block * 480..<(block + 1) * 480, to: input) { _ in 0.25 } }
            clock.advance(to: 10_000_000_000 + Int64(block + 1) * 10_000_000)
        }
        // All but the 50 ms that the next block may be late.
        let blocks = driver.takeBlocks()
        let (first, samples) = line(blocks)
        #expect(first == 480_000 && samples.count == 19 * 480)
        #expect(samples[..<2400].allSatisfy { $0 == 0 } && samples[2400...].allSatisfy { $0 == 0.5 })
        #expect(driver.takeEvents().isEmpty)
    }

    @Test func takesSoundThatComesTwiceOnce() throws {
        let driver = try driver()
        try send(driver, 0..<960, to: 0) { _ in 0.25 }
        try send(driver, 480..<1440, to: 0) { _ in 0.5 }
        try driver.drain()
        let samples = line(driver.takeBlocks()).samples
        #expect(samples.count == 1440)
        #expect(samples[..<960].allSatisfy { $0 == 0.25 } && samples[960...].allSatisfy { $0 == 0.5 })
    }

    @Test func refusesInputsOfSeveralFormats() {
        let error = #expect(throws: FrameHostError.self) {
            try StageDriver(
                AudioMix.self,
                inputs: [.audio(Self.format), .audio(AudioFormat(sampleRate: 44_100, channelCount: 1))])
        }
        #expect(
            error?.description
                == "from: the inputs of a mix must have one format, but '0' gives sound 48000 Hz, 2 channels, and '1' gives sound 44100 Hz, 1 channel. Put a stage after '1' and name that one here: { \"use\": \"audio-resample\", \"sampleRate\": 48000, \"channels\": 2 }."
        )
    }

    @Test func refusesGainsOfStrangersAndGainsThatAreNone() throws {
        let error = #expect(throws: FrameHostError.self) { try self.driver(#"{ "gains": { "mic": 3 } }"#) }
        #expect(
            error?.description == "gains: 'mic' must be an input of this stage. Use one of its inputs: '0', '1'.")
        #expect(throws: (any Error).self) { try self.driver(#"{ "gains": { "0": 61 } }"#) }
        #expect(throws: (any Error).self) { try self.driver(#"{ "gains": [3] }"#) }
        let driver = try self.driver()
        #expect(throws: FrameHostError.self) { try driver.set(#"{ "gains": { "2": 3 } }"#) }
        #expect(driver.stage.options.gains.list.isEmpty)
    }
}

/// A small random generator with a seed.
private struct SplitMix {
    private var state: UInt64
    init(_ seed: UInt64) { state = seed }
    mutating func next() -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        var value = state
        value = (value ^ (value >> 30)) &* 0xbf58_476d_1ce4_e5b9
        value = (value ^ (value >> 27)) &* 0x94d0_49bb_1331_11eb
        return value ^ (value >> 31)
    }
}
