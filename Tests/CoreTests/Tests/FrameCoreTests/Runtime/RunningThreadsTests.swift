// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import FrameCore

@Suite struct RunningThreadsTests {
    @Test func oneThreadIsTheOnlyOneOnlyWhileItRunsAlone() {
        let running = RunningThreads()
        let (worker, changes) = (ThreadState(name: "src"), ThreadState(name: "changes"))
        running.add([worker])
        // It is about to be started.
        #expect(!running.isOnly(changes))
        running.add([changes])
        #expect(!running.isOnly(changes))
        worker.finished.store(true, ordering: .releasing)
        running.ended(worker)
        #expect(running.isOnly(changes) && !running.isOnly(worker))
        changes.finished.store(true, ordering: .releasing)
        #expect(!running.isOnly(changes))
    }

    @Test func aThreadThatWasGivenUpIsNotTheOnlyOne() {
        let running = RunningThreads()
        let (worker, changes) = (ThreadState(name: "src"), ThreadState(name: "changes"))
        running.add([worker, changes])
        running.abandon(changes)
        #expect(!running.isOnly(changes) && running.isOnly(worker))
    }
}
