// SPDX-License-Identifier: Apache-2.0

import Synchronization
import Testing

@testable import FrameCore

@Suite struct KernelThreadTests {
    /// A thread that computes until it is told to sleep, and then sleeps until the end.
    private final class Worker: Sendable {
        let number = Atomic<Int32>(0)
        let sleeps = Atomic<Bool>(false)
        private let isOver = Locked(false)
        private let condition = Condition()

        func work() {
            number.store(KernelThread.currentNumber, ordering: .releasing)
            while !sleeps.load(ordering: .relaxed) {}
            condition.locked { while !isOver.now { condition.wait() } }
        }

        func end() {
            sleeps.store(true, ordering: .relaxed)
            isOver.set(true)
            condition.locked { condition.broadcast() }
        }
    }

    @Test func knowsWhoWaitsForAProcessorFromWhoSleeps() throws {
        let worker = Worker()
        let thread = try TestThread("kernel-thread") { worker.work() }
        #expect(eventually { worker.number.load(ordering: .acquiring) > 0 })
        let number = worker.number.load(ordering: .acquiring)
        #expect(number != KernelThread.currentNumber)
        #expect((0..<100).allSatisfy { _ in !KernelThread.isAsleep(number) })
        worker.sleeps.store(true, ordering: .relaxed)
        #expect(eventually { KernelThread.isAsleep(number) })
        worker.end()
        thread.join()
        #expect(KernelThread.isAsleep(0))
    }

    /// It was woken, and shows that it waits until it has a processor again.
    @Test func aThreadThatWaitsForAProcessorHasNotStoodStill() throws {
        var sketch = ChainSketch()
        try sketch.add(CountingSource.self, "src", options: #"{"count": 3}"#)
        try sketch.add(RecordingSink.self, "sink", options: #"{"log": "runnable"}"#)
        let chain = try Chain(sketch.request)
        let worker = Worker()
        let thread = try TestThread("kernel-thread") { worker.work() }
        #expect(eventually { worker.number.load(ordering: .acquiring) > 0 })
        let state = ThreadState(name: "src:src")
        state.kernelNumber.store(worker.number.load(ordering: .acquiring), ordering: .relaxed)
        state.inside.store(ThreadState.Place.chainWait, ordering: .relaxed)
        var watch = StandstillWatch()
        func faults(_ count: Int) -> Int { (0..<count).count { _ in watch.look(at: chain, [state]) != nil } }
        #expect(faults(3 * StandstillWatch.looksNeeded) == 0)
        worker.sleeps.store(true, ordering: .relaxed)
        #expect(eventually { KernelThread.isAsleep(state.kernelNumber.load(ordering: .relaxed)) })
        #expect(faults(StandstillWatch.looksNeeded) > 0)
        worker.end()
        thread.join()
    }
}
