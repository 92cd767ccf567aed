// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import FrameCore

@Suite struct ConditionTests {
    @Test func waitsNoLongerThanItsDeadline() {
        let condition = Condition()
        let begin = ChainClock().now()
        condition.locked { condition.wait(until: begin + 10_000_000) }
        #expect(ChainClock().now() - begin < 60_000_000_000)
    }

    @Test func keepsOneThreadOutWhileAnotherIsIn() throws {
        let count = Locked(0)
        let threads = try (0..<4).map { _ in
            try TestThread("counter") { for _ in 0..<5000 { count.withLock { $0 += 1 } } }
        }
        for thread in threads { thread.join() }
        #expect(count.now == 20_000)
    }

    @Test func stopsEveryWaitOfAllWhoRegistered() throws {
        let stop = StopSignal()
        let conditions = (0..<3).map { _ in Condition() }
        for condition in conditions { stop.register(condition) }
        let threads = try conditions.map { condition in
            try TestThread("waiter") { condition.locked { while !stop.isRaised { condition.wait() } } }
        }
        pauseTest(ms: 10)
        #expect(!stop.isRaised)
        stop.raise()
        stop.raise()
        for thread in threads { thread.join(within: 60) }
    }

    /// A chain that is changed for days makes queues and stages, and lets go of them.
    @Test func forgetsWhoHasGone() throws {
        let stop = StopSignal()
        let (kept, child) = (Condition(), StopSignal(under: stop))
        stop.register(kept)
        let waiter = try TestThread("waiter") { kept.locked { while !stop.isRaised { kept.wait() } } }
        for _ in 0..<10_000 {
            stop.register(Condition())
            _ = StopSignal(under: stop)
        }
        #expect(stop.registered <= 128)
        stop.raise()
        waiter.join(within: 60)
        #expect(child.isRaised)
    }
}
