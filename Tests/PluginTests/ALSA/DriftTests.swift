// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Glibc
import Testing

@testable import ALSASource

/// A card on a simulated clock: when its frames are captured, and what its driver says of it.
private struct SimulatedCard {
    static let rate = 48_000
    static let period = 480
    /// How much faster than its nominal rate, parts per million.
    var ppm: Double
    /// Stamps lie this far before or after the truth, seconds.
    var jitter = 0.0
    /// Stamps are whole multiples of this, seconds; 0 for exact ones.
    var steps = 0.0
    private var generator = SplitMix(state: 7)

    init(ppm: Double, jitter: Double = 0, steps: Double = 0) {
        (self.ppm, self.jitter, self.steps) = (ppm, jitter, steps)
    }

    /// The true time of a frame, seconds.
    func time(of frame: Int) -> Double { 100 + Double(frame) / (Double(Self.rate) * (1 + ppm * 1e-6)) }

    /// What the driver says of that time.
    mutating func stamp(of frame: Int) -> Double {
        let time = time(of: frame) + jitter * (2 * generator.unit() - 1)
        return steps > 0 ? (time / steps).rounded() * steps : time
    }
}

private struct SplitMix {
    var state: UInt64

    mutating func unit() -> Double {
        state &+= 0x9E37_79B9_7F4A_7C15
        var value = state
        value = (value ^ value >> 30) &* 0xBF58_476D_1CE4_E5B9
        value = (value ^ value >> 27) &* 0x94D0_49BB_1331_11EB
        return Double((value ^ value >> 31) >> 11) / Double(1 << 53)
    }
}

/// What becomes of a card's frames: how far from their true places they come out.
private struct Course {
    /// Worst distance after 30 s and before, seconds.
    var worst = 0.0
    var worstAtFirst = 0.0
    /// Worst difference of the pitch from the true one after 30 s, as a ratio; and ever.
    var worstPitch = 0.0
    var worstPitchEver = 0.0
    var ppm = 0.0
    var jumps = 0

    /// Runs loop and control over a resampler that only counts.
    init(_ card: SimulatedCard, seconds: Double) {
        var card = card
        let rate = Double(SimulatedCard.rate)
        var loop = DelayLockedLoop(rate: SimulatedCard.rate)
        var control = DriftControl(rate: SimulatedCard.rate)
        control.restart()
        let origin = card.stamp(of: SimulatedCard.period) - Double(SimulatedCard.period) / rate
        var (given, inside, stretch) = (0, 0.0, 0.0)
        for index in 1...Int(seconds * rate) / SimulatedCard.period {
            let frame = index * SimulatedCard.period
            if index == 1 {
                loop.restart(at: origin + Double(SimulatedCard.period) / rate)
            } else {
                #expect(loop.take(SimulatedCard.period, until: card.stamp(of: frame)) == .taken)
            }
            inside += Double(SimulatedCard.period) * (1 + stretch)
            let count = Int(inside)
            given += count
            inside -= Double(count)
            let reached = Double(given) + inside
            let isSettled = Double(frame) > 30 * rate
            let distance = abs(reached / rate - (card.time(of: frame) - origin))
            if isSettled { worst = max(worst, distance) } else { worstAtFirst = max(worstAtFirst, distance) }
            switch control.decide(
                after: count, place: (loop.end - origin) * rate, reached: reached, deviation: loop.deviation)
            {
            case .unchanged: break
            case .stretch(let frames, let distance): stretch = Double(frames) / Double(distance)
            case .jump: jumps += 1
            }
            let pitch = abs((1 + stretch) * (1 + card.ppm * 1e-6) - 1)
            worstPitchEver = max(worstPitchEver, pitch)
            if isSettled { worstPitch = max(worstPitch, pitch) }
        }
        ppm = loop.ppm
    }
}

@Suite struct DriftTests {
    @Test(arguments: [250.0, -250.0], [(jitter: 0.0005, steps: 0.0), (jitter: 0.0005, steps: 0.004)])
    func keepsAnHourWithinAMillisecond(ppm: Double, stamps: (jitter: Double, steps: Double)) {
        let course = Course(SimulatedCard(ppm: ppm, jitter: stamps.jitter, steps: stamps.steps), seconds: 3600)
        #expect(course.worst < 0.0003)
        #expect(course.worstAtFirst < 0.0025)
        #expect(course.worstPitch < 0.0001)
        #expect(course.worstPitchEver < 0.001)
        #expect(abs(course.ppm - ppm) < 20)
        #expect(course.jumps == 0)
    }

    @Test func findsTheRateOfExactStampsWithinSeconds() {
        let course = Course(SimulatedCard(ppm: 100), seconds: 10)
        #expect(abs(course.ppm - 100) < 10)
        #expect(course.worstAtFirst < 0.0005)
    }

    @Test func passesOverAStampThatIsFarOff() {
        let card = SimulatedCard(ppm: 50)
        var loop = DelayLockedLoop(rate: SimulatedCard.rate)
        loop.restart(at: card.time(of: 480))
        for index in 2...3000 {
            let wrong = index == 2000 ? 0.2 : 0
            #expect(loop.take(480, until: card.time(of: index * 480) + wrong) == (wrong > 0 ? .ignored : .taken))
        }
        #expect(abs(loop.end - card.time(of: 3000 * 480)) < 0.0001)
        #expect(abs(loop.ppm - 50) < 2)
    }

    @Test func saysWhenStampsHaveJumpedForGood() {
        let card = SimulatedCard(ppm: 0)
        var loop = DelayLockedLoop(rate: SimulatedCard.rate)
        loop.restart(at: card.time(of: 480))
        let results = (2...6).map { loop.take(480, until: card.time(of: $0 * 480) + 0.2) }
        #expect(results == [.ignored, .ignored, .ignored, .lost, .lost])
    }

    @Test func believesNoCrystalBeyondAThousandth() {
        let card = SimulatedCard(ppm: 17_000)
        var loop = DelayLockedLoop(rate: SimulatedCard.rate)
        loop.restart(at: card.time(of: 480))
        for index in 2...200 { _ = loop.take(480, until: card.time(of: index * 480)) }
        #expect(loop.deviation == -0.001)
    }

    @Test func movesAnErrorInTenSecondsAndJumpsOverALargeOne() {
        var control = DriftControl(rate: 48_000)
        control.restart()
        // 48 frames late, which are 4.8 in each second.
        #expect(
            control.decide(after: 0, place: 48, reached: 0, deviation: 0) == .stretch(frames: 48, distance: 480_000))
        #expect(control.decide(after: 23_999, place: 48, reached: 0, deviation: 0) == .unchanged)
        #expect(
            control.decide(after: 1, place: 2000, reached: 0, deviation: 0.0001)
                == .stretch(frames: 336, distance: 480_000))
        #expect(control.decide(after: 24_000, place: 0, reached: 2401, deviation: 0) == .jump)
    }
}

@Suite struct SoundTimelineTests {
    @Test func hasExactTimesAtEveryRate() {
        let timeline = SoundTimeline(rate: 44_100, origin: 5)
        #expect(timeline.time(of: 44_100 * 86_400) == 86_400_000_000_005)
        #expect(timeline.time(of: 1) == 5 + 22_675)
        for frame: Int64 in [0, 1, 441, 123_456_789] { #expect(timeline.frame(at: timeline.time(of: frame)) == frame) }
    }

    @Test func fillsAGapAndLeavesOutWhatWasGiven() {
        var timeline = SoundTimeline(rate: 48_000, origin: 1_000_000_000)
        timeline.advance(by: 480)
        #expect(timeline.meet(1_010_000_000) == SoundTimeline.Meeting())
        #expect(timeline.meet(1_110_000_000) == SoundTimeline.Meeting(silence: 4800))
        #expect(timeline.meet(1_005_000_000) == SoundTimeline.Meeting(excess: 240))
        #expect(timeline.given == 480)
    }

    @Test func makesAHoleOfAGapThatIsTooLong() {
        var timeline = SoundTimeline(rate: 48_000, origin: 0)
        #expect(timeline.meet(3_600_000_000_000) == SoundTimeline.Meeting(hole: 3600 * 48_000))
        #expect(timeline.time(of: timeline.given) == 3_600_000_000_000)
        let (isBack, isAhead) = (timeline.skip(to: 3_000_000_000_000), timeline.skip(to: 3_601_000_000_000))
        #expect(!isBack && isAhead)
        #expect(timeline.given == 3601 * 48_000)
    }

    @Test func takesNoStampOfAnotherClock() {
        var stamps = CardTime()
        #expect(stamps.time(9_999_000_000, now: 10_000_000_000) == 9_999_000_000)
        #expect(stamps.time(0, now: 10_000_000_000) == 10_000_000_000)
        #expect(stamps.time(1_700_000_000_000_000_000, now: 10_000_000_000) == 10_000_000_000)
        #expect(stamps.time(.min, now: 10_000_000_000) == 10_000_000_000)
        #expect(stamps.replaced == 3)
    }

    @Test func namesACardByItsID() {
        let ids = [1: "Webcam"]
        func stable(_ name: String) -> String { StableName.of(name) { ids[$0] } }
        #expect(stable("hw:1,0") == "hw:CARD=Webcam,DEV=0")
        #expect(stable("plughw:1") == "plughw:CARD=Webcam")
        #expect(stable("hw:1,0,2") == "hw:CARD=Webcam,DEV=0,SUBDEV=2")
        #expect(stable("hw:2,0") == "hw:2,0")
        #expect(stable("hw:CARD=Webcam") == "hw:CARD=Webcam")
        #expect(stable("default") == "default")
        #expect(stable("hw:,") == "hw:,")
    }
}

@Suite struct DriftResamplerTests {
    /// How far a tone of 1 kHz that the card heard in true time comes out from its place, seconds, in each 10 ms.
    private func distances(_ card: SimulatedCard, seconds: Int) throws -> [Double] {
        var card = card
        let rate = Double(SimulatedCard.rate)
        let format = CardFormat(samples: .float, rate: SimulatedCard.rate, channels: 1, period: 480, buffer: 4800)
        let resampler = try DriftResampler(
            format, to: AudioFormat(sampleRate: SimulatedCard.rate, channelCount: 1), mostFrames: 480)
        var loop = DelayLockedLoop(rate: SimulatedCard.rate)
        var control = DriftControl(rate: SimulatedCard.rate)
        control.restart()
        let origin = card.time(of: 0)
        loop.restart(at: card.time(of: 480))
        var (given, output) = (0, [Float]())
        var period = [Float](repeating: 0, count: 480)
        for index in 0..<seconds * 100 {
            for sample in 0..<480 {
                period[sample] = Float(sin(2 * Double.pi * 1000 * (card.time(of: index * 480 + sample) - origin)))
            }
            if index > 0 { _ = loop.take(480, until: card.stamp(of: (index + 1) * 480)) }
            let count = try period.withUnsafeBytes { bytes in
                let samples = try resampler.convert(bytes.baseAddress!, frames: 480)
                output += samples
                return samples.count
            }
            given += count
            let decision = control.decide(
                after: count, place: (loop.end - origin) * rate, reached: Double(given) + resampler.held,
                deviation: loop.deviation)
            guard case .stretch(let frames, let distance) = decision else { continue }
            try resampler.stretch(by: frames, over: distance)
        }
        return stride(from: 0, to: output.count - 480, by: 480).map { start in
            var (sine, cosine) = (0.0, 0.0)
            for index in start..<start + 480 {
                let phase = 2 * Double.pi * 1000 * Double(index) / rate
                sine += Double(output[index]) * sin(phase)
                cosine += Double(output[index]) * cos(phase)
            }
            // A whole tone stays whole.
            #expect(abs(2 * (sine * sine + cosine * cosine).squareRoot() / 480 - 1) < 0.01 || start == 0)
            return -atan2(cosine, sine) / (2 * Double.pi * 1000)
        }
    }

    @Test(arguments: [250.0, -250.0]) func putsAToneWhereItWasHeard(ppm: Double) throws {
        let distances = try distances(SimulatedCard(ppm: ppm, jitter: 0.0005), seconds: 60)
        let settled = distances.dropFirst(3000).map(abs).max() ?? 1
        #expect(distances.count > 5990)
        #expect(settled < 0.0001)
    }

    @Test func givesOneMicrophoneAtItsLevelInBothChannels() throws {
        let card = CardFormat(samples: .s16, rate: 44_100, channels: 1, period: 441, buffer: 4410)
        let resampler = try DriftResampler(
            card, to: AudioFormat(sampleRate: 48_000, channelCount: 2), mostFrames: 441)
        let period = [Int16](repeating: 16_384, count: 441)
        var last: [Float] = []
        var count = 0
        for _ in 0..<10 {
            last = try period.withUnsafeBytes { Array(try resampler.convert($0.baseAddress!, frames: 441)) }
            count += last.count / 2
        }
        #expect(abs(count - 4800) < 40)
        #expect(last.allSatisfy { abs($0 - 0.5) < 0.001 })
        try resampler.restart(card)
        #expect(resampler.held == 0)
    }
}
