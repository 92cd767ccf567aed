// SPDX-License-Identifier: Apache-2.0

import Glibc
import Synchronization
import Testing

@testable import FrameCore

@Suite struct ThreadPriorityTests {
    /// What a thread asked the kernel for, which answers with these.
    private final class Kernel: Sendable {
        let asked = Locked<[String]>([])
        private let policy: Int32
        private let nice: Int32

        init(policy: Int32, nice: Int32) { (self.policy, self.nice) = (policy, nice) }

        var calls: ThreadPriority.Calls {
            ThreadPriority.Calls(
                nice: { 5 },
                setPolicy: { [self] policy, priority in
                    asked.withLock { $0.append("policy \(policy & 0xFF) \(policy >> 30) at \(priority)") }
                    return policy & 0xFF == SCHED_OTHER ? 0 : self.policy
                },
                setNice: { [self] value in
                    asked.withLock { $0.append("nice \(value)") }
                    return value == 5 ? 0 : nice
                })
        }
    }

    @Test func takesTheMildestRealTimePolicyAndGivesItBack() {
        let kernel = Kernel(policy: 0, nice: EPERM)
        var priority = ThreadPriority(calls: kernel.calls)
        priority.raise()
        priority.raise()
        #expect(priority.outcome == .realTime && priority.outcome?.notice == nil)
        priority.restore()
        #expect(kernel.asked.withLock { $0 } == ["policy 2 1 at 1", "policy 0 1 at 0"])
    }

    @Test func takesANiceValueWhereRealTimeIsNotPermitted() {
        let kernel = Kernel(policy: EPERM, nice: 0)
        var priority = ThreadPriority(calls: kernel.calls)
        priority.raise()
        #expect(priority.outcome == .nice(from: 5) && priority.outcome?.notice == nil)
        priority.restore()
        #expect(kernel.asked.withLock { $0 } == ["policy 2 1 at 1", "nice -5", "nice 5"])
    }

    @Test func saysWhatToDoWhereNeitherIsPermitted() {
        let kernel = Kernel(policy: EPERM, nice: EACCES)
        var priority = ThreadPriority(calls: kernel.calls)
        priority.raise()
        #expect(priority.outcome == .usual(EPERM))
        #expect(
            priority.outcome?.notice
                == "The capture thread has normal priority (Operation not permitted): on a busy machine what it captures may be late or lost. Allow this user real-time priority 1: add the line '@video - rtprio 1' (for the group 'video') to /etc/security/limits.conf and log in again; in a systemd unit set LimitRTPRIO=1."
        )
        priority.restore()
        #expect(kernel.asked.withLock { $0.count } == 2, "what was not changed is not changed back")
    }

    /// Whatever this machine permits: the thread has it, or the event says that it has not.
    @Test func theThreadOfAnUrgentSourceHasItAndNoOther() throws {
        var sketch = ChainSketch()
        try sketch.add(UrgentSource.self, "camera")
        try sketch.add(PolicySink.self, "sink", link: LinkRequest(queue: 2))
        let (result, events) = ChainTests.run(try Chain(sketch.request))
        #expect(result.isSuccess, "\(result)")
        let said = events.filter { $0.name == "usual-priority" }
        let own = UrgentSource.seen.withLock { $0 }
        let process = ThreadStanding.now
        #expect(own.isRaised(above: process) ? said.isEmpty : said.count == 1 && said[0].stage == "camera")
        #expect(!PolicySink.seen.withLock { $0 }.isRaised(above: process))
    }
}

/// Policy and nice value of the calling thread.
private struct ThreadStanding: Equatable {
    var policy: Int32 = 0
    var nice: Int32 = 0

    static var now: ThreadStanding {
        ThreadStanding(
            policy: sched_getscheduler(0) & 0xFF, nice: getpriority(__priority_which_t(PRIO_PROCESS.rawValue), 0))
    }

    func isRaised(above other: ThreadStanding) -> Bool { policy == SCHED_RR || nice < other.nice }
}

private final class UrgentSource: Source {
    static let info = StageInfo(id: "urgent-source", summary: "Must not be late.", output: .video(.gray8))
    static let seen = Locked(ThreadStanding())
    typealias Options = NoOptions
    var options: NoOptions
    private var next = 0

    init(options: NoOptions, context: StageContext) { self.options = options }

    var demand: StageDemand {
        var demand = Self.declaredDemand
        demand.isUrgent = true
        return demand
    }

    func negotiate() throws -> MediaFormat { .video(VideoFormat(.gray8, width: 16, height: 16)) }

    func produce(_ output: Output) throws -> SourceProgress {
        guard next < 5, let frame = try output.makeFrame() else { return .ended }
        Self.seen.withLock { $0 = .now }
        frame.pts = MediaTime(nanoseconds: Int64(next) * 1_000_000)
        next += 1
        try output.emit(frame)
        return .more
    }
}

private final class PolicySink: Sink {
    static let info = StageInfo(id: "policy-sink", summary: "Looks at its thread.", input: .anyVideo)
    static let seen = Locked(ThreadStanding())
    typealias Options = NoOptions
    var options: NoOptions

    init(options: NoOptions, context: StageContext) { self.options = options }

    func consume(_ input: consuming Sample) throws -> SinkVerdict {
        Self.seen.withLock { $0 = .now }
        return .delivered
    }
}
