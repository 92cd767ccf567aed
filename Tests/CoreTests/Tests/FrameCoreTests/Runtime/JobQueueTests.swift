// SPDX-License-Identifier: Apache-2.0

import Synchronization
import Testing

@testable import FrameCore

/// A sink that leaves work behind.
private final class LeavingSink: Sink {
    static let info = StageInfo(id: "leaving-sink", summary: "Leaves work.", input: .anyVideo)

    struct Options: StageOptions {
        @Option(
            help: "Milliseconds of work, unless the test has seen it before; until cancelled where below 0.",
            range: -1...60_000)
        var workMs = 20
    }

    var options: Options
    private let context: StageContext
    static let done = Atomic<Int>(0)
    static let givenUp = Atomic<Int>(0)
    /// Set by a test that has seen the job.
    static let isSeen = Atomic<Bool>(false)

    init(options: Options, context: StageContext) {
        self.options = options
        self.context = context
    }

    func consume(_ input: consuming Sample) -> SinkVerdict { .delivered }

    func stop() {
        let work = options.workMs
        context.addJob("tidying") { progress in
            let end = ChainClock.system.now() + Int64(work) * 1_000_000
            while work < 0 || !Self.isSeen.load(ordering: .relaxed) && ChainClock.system.now() < end {
                progress.report(0.5)
                if progress.isCancelled {
                    Self.givenUp.add(1, ordering: .relaxed)
                    throw FrameHostError(.stopped, what: "given up")
                }
            }
            Self.done.add(1, ordering: .relaxed)
        }
    }
}

@Suite(.serialized) struct JobQueueTests {
    @Test func runsJobsOneAfterTheOtherInOrder() {
        let queue = JobQueue(events: EventHub(), clock: ManualClock(at: 0))
        let order = Locked<[Int]>([])
        let under = Locked(0)
        for number in 0..<20 {
            queue.add("job \(number)", stage: "s") { _ in
                let together = under.withLock { count -> Int in
                    count += 1
                    return count
                }
                #expect(together == 1, "one at a time")
                order.withLock { $0.append(number) }
                under.withLock { $0 -= 1 }
            }
        }
        #expect(queue.waitUntilIdle())
        #expect(order.withLock { $0 } == Array(0..<20))
        #expect(queue.current == nil)
        queue.add("late", stage: "s") { _ in order.withLock { $0.append(99) } }
        #expect(queue.waitUntilIdle())
        #expect(order.withLock { $0.last } == 99, "a further thread was started")
    }

    @Test func saysWhatFailedAndGoesOn() {
        let events = EventHub()
        let queue = JobQueue(events: events, clock: ManualClock(at: 0))
        let ran = Locked(false)
        queue.add("finalising a.mp4", stage: "rec") { _ in throw FrameHostError(.exhausted, what: "the disk is full") }
        queue.add("next", stage: "rec") { _ in ran.withLock { $0 = true } }
        #expect(queue.waitUntilIdle())
        #expect(ran.withLock { $0 })
        let found = events.subscribe().take().events
        #expect(found.map(\.text) == ["finalising a.mp4: the disk is full."])
        #expect(found.first?.name == "job-failed" && found.first?.stage == "rec" && found.first?.level == .warning)
    }

    @Test func refusesMoreThanItsBound() {
        let events = EventHub()
        let queue = JobQueue(events: events, clock: ManualClock(at: 0))
        let gate = Condition()
        var isOpen = false
        let wait = { gate.locked { while !isOpen { gate.wait() } } }
        nonisolated(unsafe) let hold = wait
        queue.add("first", stage: "s") { _ in hold() }
        for number in 1...JobQueue.mostJobs { queue.add("job \(number)", stage: "s") { _ in } }
        #expect(
            events.subscribe().take().events.map(\.text) == [
                "job 1000: not started, because 1000 background jobs are already waiting. Let this stage make fewer jobs: a recorder makes one for each file, so record longer files."
            ])
        gate.locked {
            isOpen = true
            gate.broadcast()
        }
        #expect(queue.waitUntilIdle())
    }

    @Test func theRunStaysUntilJobsAreDone() throws {
        var sketch = ChainSketch()
        try sketch.add(CountingSource.self, "src", options: #"{"count": 3}"#)
        try sketch.add(LeavingSink.self, "sink", options: #"{"workMs": 60000}"#)
        let before = LeavingSink.done.load(ordering: .relaxed)
        let chain = try Chain(sketch.request)
        var sawJob = false
        LeavingSink.isSeen.store(false, ordering: .relaxed)
        let (result, events) = ChainTests.run(chain) { chain in
            if chain.currentState == .finishing, let job = chain.currentJob {
                sawJob = sawJob || job.title == "tidying" && job.fraction == 0.5
                LeavingSink.isSeen.store(sawJob, ordering: .relaxed)
            }
        }
        #expect(result.isSuccess, "\(result)")
        #expect(LeavingSink.done.load(ordering: .relaxed) == before + 1)
        #expect(sawJob)
        #expect(
            events.filter { $0.name == "state" }.map(\.text).suffix(2) == [
                "chain: finishing: tidying.", "chain: stopped.",
            ])
    }

    @Test func aRequestWhileFinishingGivesUp() throws {
        var sketch = ChainSketch()
        try sketch.add(CountingSource.self, "src", options: #"{"count": 3}"#)
        try sketch.add(LeavingSink.self, "sink", options: #"{"workMs": -1}"#)
        let before = LeavingSink.givenUp.load(ordering: .relaxed)
        let chain = try Chain(sketch.request)
        // A job that has not begun is not given up but left out.
        let (result, events) = ChainTests.run(chain) {
            if $0.currentState == .finishing, $0.currentJob?.fraction == 0.5 { $0.drain() }
        }
        #expect(result.isSuccess, "what is left as it is is no failure: \(result)")
        #expect(LeavingSink.givenUp.load(ordering: .relaxed) == before + 1)
        #expect(events.contains { $0.name == "job-failed" && $0.text == "tidying: given up." })
    }
}
