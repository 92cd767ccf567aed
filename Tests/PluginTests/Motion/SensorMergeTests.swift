// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Testing

@testable import Motion

@Suite struct SensorMergeTests {
    private func sample(_ part: MotionSample.Contents, _ ms: Int64, _ value: Float = 0) -> MotionSample {
        var sample = MotionSample(time: MediaTime(nanoseconds: ms * 1_000_000))
        sample.contents = part
        if part.contains(.rotationRate) { sample.rotationRate = SIMD3(repeating: value) }
        if part.contains(.acceleration) { sample.acceleration = SIMD3(repeating: value) }
        return sample
    }

    private func merged(_ samples: [MotionSample], patience: Int64 = 1_000_000_000) -> [MotionSample] {
        var merge = SensorMerge(patience: patience)
        var ready: [MotionSample] = []
        for sample in samples { merge.add(sample, into: &ready) }
        merge.end(into: &ready)
        return ready
    }

    @Test func interpolatesTheSlowerSensor() {
        let found = merged([
            sample(.acceleration, 0, 0), sample(.rotationRate, 0), sample(.rotationRate, 5),
            sample(.acceleration, 10, 10),
            sample(.rotationRate, 10), sample(.rotationRate, 15),
        ])
        #expect(found.map(\.time.nanoseconds) == [0, 5_000_000, 10_000_000, 15_000_000])
        #expect(found.map(\.acceleration.x) == [0, 5, 10, 10])
        #expect(found.allSatisfy { $0.contents == [.rotationRate, .acceleration] })
    }

    @Test func oneSensorAloneGoesThrough() {
        let found = merged((0..<100).map { sample(.acceleration, $0) })
        #expect(found.count == 100 && found.allSatisfy { $0.contents == .acceleration })
    }

    @Test func doesNotWaitLongerThanItsPatience() {
        var merge = SensorMerge(patience: 40_000_000)
        var ready: [MotionSample] = []
        for ms in Int64(0)..<200 {
            merge.add(sample(.rotationRate, ms), into: &ready)
            if ms == 3 { merge.add(sample(.acceleration, 3, 1), into: &ready) }
            #expect(ready.count >= ms - 41)
        }
        // The last acceleration is used for a fifth of a second.
        #expect(ready.last?.acceleration.x == 1)
    }

    @Test func aSilentSensorIsSoonLeftOut() {
        let found = merged([sample(.acceleration, 0, 1)] + (0..<30).map { sample(.rotationRate, $0 * 100) })
        #expect(found.count == 30)
        #expect(found.filter { $0.contents.contains(.acceleration) }.count == 3)
    }

    @Test func whatComesLaterSaysNothingAboutBefore() {
        let found = merged((0..<100).map { sample(.rotationRate, $0 * 10) } + [sample(.acceleration, 995, 1)])
        #expect(found.firstIndex { $0.contents.contains(.acceleration) } == 80 && found.count == 100)
    }

    @Test func aGapOfTheOtherSensorIsNotFilled() {
        let rates = (0..<16).map { sample(.rotationRate, $0 * 100) }
        let found = merged(
            [sample(.acceleration, 0, 1)] + rates.prefix(15) + [sample(.acceleration, 1500, 2), rates[15]])
        #expect(found.indices.filter { found[$0].contents.contains(.acceleration) } == [0, 1, 2, 15])
    }

    @Test func timesThatDoNotRiseGoOnUnchanged() {
        let found = merged([
            sample(.rotationRate, 5), sample(.rotationRate, 5), sample(.rotationRate, 1), sample(.rotationRate, 6),
        ])
        #expect(found.count == 4)
    }

    @Test func equalTimesTakeNoEndlessMemory() {
        var merge = SensorMerge(patience: 1_000_000_000)
        var ready: [MotionSample] = []
        for index in Int64(0)..<50_000 {
            var quick = sample(.rotationRate, 0)
            quick.time = MediaTime(nanoseconds: index)
            merge.add(quick, into: &ready)
        }
        #expect(ready.count > 40_000)
    }

    @Test func extremeTimesDoNotOverflow() {
        _ = merged(
            [Int64.min, 0, .max, .min, .max].flatMap { time in
                [MotionSample.Contents.rotationRate, .acceleration].map { part in
                    var sample = sample(part, 0)
                    sample.time = MediaTime(nanoseconds: time)
                    return sample
                }
            })
    }
}

@Suite struct ClockOffsetTests {
    @Test func theLeastDelayDecides() {
        var clock = ClockOffset()
        // The sender's clock is 100 s behind; delays of 1 ms to 30 ms.
        for (index, delay) in [Int64(30), 5, 12, 1, 20].enumerated() {
            let stamp = Int64(index) * 10_000_000
            #expect(clock.take(stamp: stamp, arrival: stamp + 100_000_000_000 + delay * 1_000_000) == nil)
        }
        #expect(clock.offset == 100_001_000_000)
    }

    @Test func forgetsAfterThirtySeconds() {
        var clock = ClockOffset()
        // A clock that loses 1 ms a second: the least difference is the oldest.
        for second in Int64(0)...60 {
            let stamp = second * 1_000_000_000
            _ = clock.take(stamp: stamp, arrival: stamp + second * 1_000_000)
        }
        #expect(clock.offset == 31_000_000)
    }

    @Test func aJumpBeginsAnew() {
        var clock = ClockOffset()
        #expect(clock.take(stamp: 0, arrival: 50) == nil)
        #expect(clock.take(stamp: 1_000_000_000, arrival: 1_000_000_050) == nil)
        #expect(clock.take(stamp: 5_000_000_000, arrival: 1_000_000_050) == 4_000_000_000)
        #expect(clock.offset == -3_999_999_950)
        #expect(clock.take(stamp: 0, arrival: 1_000_000_050) == -5_000_000_000)
    }

    @Test(arguments: [MediaTime.min.nanoseconds, 0, MediaTime.max.nanoseconds]) func extremesDoNotOverflow(first: Int64)
    {
        var clock = ClockOffset()
        for stamp in [first, MediaTime.min.nanoseconds, MediaTime.max.nanoseconds, 0] {
            _ = clock.take(stamp: stamp, arrival: 1 << 60)
        }
    }
}
