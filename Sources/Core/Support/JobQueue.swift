// SPDX-License-Identifier: Apache-2.0

import Glibc
import Synchronization

/// Work that can wait while frames flow and may go on when they have ended: the rewriting of a finished recording.
///
/// The jobs of a chain run one at a time, in the order in which they were added, on a thread of low priority that
/// exists while there are jobs. `@unchecked Sendable`: everything but the condition is used only under its lock.
final class JobQueue: @unchecked Sendable {
    private struct Job {
        var title: String
        var stage: String
        var body: @Sendable (JobProgress) throws -> Void
        var progress = JobProgress()
    }

    /// The most jobs that wait. More come only where work arrives faster than it can be done for a long time. They
    /// are refused, and what they would improve stays as it is.
    static let mostJobs = 1000

    private let events: EventHub
    private let clock: ChainClock
    private let condition = Condition()
    // Below: under `condition`.
    private var jobs: [Job] = []
    private var isRunning = false
    private var isCancelled = false

    init(events: EventHub, clock: ChainClock) {
        self.events = events
        self.clock = clock
    }

    /// [any thread] Adds a job. After `cancel`, or with ``mostJobs`` waiting, it is refused by the event `job-failed`.
    func add(_ title: String, stage: String, _ body: @escaping @Sendable (JobProgress) throws -> Void) {
        let job = Job(title: title, stage: stage, body: body)
        let (refusal, startsThread) = condition.locked { () -> (FrameHostError?, Bool) in
            if isCancelled {
                return (FrameHostError(.stopped, what: "not started, because the run was stopped"), false)
            }
            guard jobs.count < Self.mostJobs else {
                return (
                    FrameHostError(
                        .exhausted,
                        what:
                            "not started, because \(Self.mostJobs) background jobs are already waiting",
                        remedy:
                            "Let this stage make fewer jobs: a recorder makes one for each file, so record longer files."
                    ),
                    false
                )
            }
            jobs.append(job)
            defer { isRunning = true }
            return (nil, !isRunning)
        }
        if let refusal { return fail(job, refusal) }
        guard startsThread else { return }
        do {
            try CountedThread.start(name: "jobs", isBatch: true) { [self] in run() }
        } catch {
            let refused = condition.locked { () -> [Job] in
                defer { jobs = [] }
                isRunning = false
                condition.broadcast()
                return jobs
            }
            for job in refused { fail(job, error) }
        }
    }

    private func run() {
        // On Linux this is the priority of the thread: sched(7). Jobs should hinder frames as little as possible.
        setpriority(__priority_which_t(PRIO_PROCESS.rawValue), 0, 10)
        while let job = next() {
            do {
                if job.progress.isCancelled {
                    throw FrameHostError(.stopped, what: "not started, because the run was stopped")
                }
                try job.body(job.progress)
            } catch {
                fail(job, error)
            }
            condition.locked { _ = jobs.removeFirst() }
        }
    }

    /// The first job; nil, and the thread counts as ended, when there is none.
    private func next() -> Job? {
        condition.locked {
            guard let job = jobs.first else {
                isRunning = false
                condition.broadcast()
                return nil
            }
            return job
        }
    }

    private func fail(_ job: Job, _ error: any Error) {
        events.post(
            Event(
                name: "job-failed", stage: job.stage, level: .warning,
                text: "\(job.title): \(FrameHostError.wrap(error))",
                details: ["job": .string(job.title)], time: clock.now()))
    }

    /// [any thread] The job under way, how far it is (0...1), and how many follow; nil when there is none.
    var current: (title: String, fraction: Double, following: Int)? {
        condition.locked { jobs.first.map { ($0.title, $0.progress.fraction, jobs.count - 1) } }
    }

    /// [any thread] Asks the job under way to give up; those that follow are not begun, and none is accepted any more.
    func cancel() {
        condition.locked {
            isCancelled = true
            for job in jobs { job.progress.cancel() }
        }
    }

    /// [any thread but a job's] Waits until there is no job, `ns` at most; true when there is none.
    func waitUntilIdle(atMost ns: Int64 = 1 << 60) -> Bool {
        let deadline = ChainClock.system.now() + ns
        return condition.locked {
            while isRunning, ChainClock.system.now() < deadline { condition.wait(until: deadline) }
            return !isRunning
        }
    }
}

/// What a job knows about itself, and how it says how far it is. See ``StageContext/addJob(_:_:)``.
public final class JobProgress: Sendable {
    private let cancelled = Atomic<Bool>(false)
    private let done = Atomic<UInt64>(0)

    /// Whether the job should give up: it then cleans up, and throws or returns soon.
    public var isCancelled: Bool { cancelled.load(ordering: .acquiring) }

    /// Says how far the job is, 0...1.
    public func report(_ fraction: Double) { done.store(fraction.bitPattern, ordering: .relaxed) }

    var fraction: Double { Double(bitPattern: done.load(ordering: .relaxed)) }
    func cancel() { cancelled.store(true, ordering: .releasing) }
}
