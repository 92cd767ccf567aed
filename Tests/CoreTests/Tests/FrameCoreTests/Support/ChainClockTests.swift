// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import FrameCore

@Suite struct ChainClockTests {
    @Test func neverGoesBack() {
        let clock = ChainClock()
        var last = clock.now()
        for _ in 0..<10_000 {
            let now = clock.now()
            #expect(now >= last)
            last = now
        }
    }

    @Test func mapsItsInstantsToWallClockTime() {
        let clock = ChainClock()
        var least = Int64.max
        // A busy machine may stop the thread between two looks at a clock.
        for _ in 0..<10 {
            let now = clock.now()
            let unix = clock.unixTime(at: now)
            #expect(unix > 1_700_000_000_000_000_000, "after November 2023")
            least = min(least, abs(clock.unixTime(at: now - 5_000_000_000) - (unix - 5_000_000_000)))
        }
        #expect(least < 100_000_000)
    }

    /// Reads 6.5 ms later once, as where the processor is taken away between two readings.
    private final class InterruptedClock: ChainClock, @unchecked Sendable {
        private var readings = 0

        override func now() -> Int64 {
            readings += 1
            return readings == 1 ? 0 : 6_500_000
        }
    }

    @Test func mapsByTwoReadingsOfOneMoment() {
        let (clock, system) = (InterruptedClock(), ChainClock())
        let earliest = system.unixTime(at: system.now())
        let found = clock.unixTime(at: 6_500_000)
        #expect(found >= earliest - 1_000_000, "not by the first two readings, which would be 3.25 ms off")
        #expect(found <= system.unixTime(at: system.now()) + 1_000_000)
    }

    @Test func sleepsUntilTheInstantAndNotLonger() {
        let context = StageContext(stageID: "cam")
        let begin = context.clock.now()
        #expect(context.sleep(until: begin + 20_000_000))
        let slept = context.clock.now() - begin
        #expect(slept >= 20_000_000 && slept < 60_000_000_000)
        #expect(context.sleep(until: begin), "what has passed is no sleep")
    }

    @Test(arguments: [false, true])
    func endsASleepAtADrainAndAtAStop(byStop: Bool) throws {
        let context = StageContext(stageID: "cam")
        let wasWhole = Locked(true)
        let sleeper = try TestThread("sleeper") {
            wasWhole.set(context.sleep(until: context.clock.now() + 3_600_000_000_000))
        }
        pauseTest(ms: 20)
        if byStop { context.stop.raise() } else { context.requestEnd() }
        #expect(sleeper.join(within: 60))
        #expect(!wasWhole.now)
        #expect(context.isEnded)
        #expect(!context.sleep(until: 0), "every later one too")
    }
}

@Suite struct ManualClockTests {
    @Test func standsStillUntilItIsMoved() {
        let clock = ManualClock(at: 50)
        #expect(clock.now() == 50)
        clock.advance(to: 70)
        clock.advance(to: 60)
        #expect(clock.now() == 70)
        #expect(clock.unixTime(at: 65) == 65)
    }

    @Test func isMovedBySleeping() {
        let clock = ManualClock()
        let context = StageContext(stageID: "cam", clock: clock)
        #expect(context.sleep(until: 1_000_000_000))
        #expect(clock.now() == 1_000_000_000)
        context.requestEnd()
        #expect(!context.sleep(until: 2_000_000_000))
        #expect(clock.now() == 1_000_000_000, "a sleep that is ended moves nothing")
    }
}
