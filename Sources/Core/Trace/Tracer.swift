// SPDX-License-Identifier: Apache-2.0

import Glibc
import Synchronization

/// Lets the threads, pools and queues of a run note what they do, and writes it to a file on a thread of its own.
///
/// Each notes into a ``TraceRing``. The trace thread empties the rings every few milliseconds, makes packets, and
/// writes them to the file once a second. No stage thread waits for it: a full ring loses entries.
final class Tracer: @unchecked Sendable {
    /// How the trace ended.
    struct Outcome: Sendable {
        enum End: Sendable {
            /// With the run.
            case finished
            /// The file has reached its size limit.
            case full
            /// errno
            case failed(Int32)
        }
        var end: End
        var byteCount: Int
        /// Entries that found no room in their ring, and events that came too fast.
        var lost: Int
    }

    /// [control thread] Why the trace did not begin; nil where it did, and without a file.
    var refusal: FrameHostError?

    /// [control thread, when the trace has ended] Nil where it has not in time, or did not begin.
    var ending: Outcome? { condition.locked { outcome } }

    /// Entries of a thread's ring: enough for 80 ms at a hundred thousand items a second, with two entries each.
    private static let threadEntries = 16384
    private static let levelEntries = 4096
    /// The time from one look at the rings to the next, nanoseconds.
    private static let pauseNs: Int64 = 10_000_000
    private static let flushNs: Int64 = 1_000_000_000
    private static let flushBytes = 256 << 10
    /// How long the end of a run waits for the file, nanoseconds.
    private static let endPatienceNs: Int64 = 10_000_000_000
    static let mostTextBytes = 1000

    private enum State { case idle, open, over }

    private let clock: ChainClock
    private let condition = Condition()
    // Below: under `condition`.
    private var state = State.idle
    private var isEnding = false
    private var newRings: [TraceRing] = []
    private var newGraphs: [TraceStages.Graph] = []
    private var outcome: Outcome?

    init(clock: ChainClock) { self.clock = clock }

    // MARK: What is traced

    /// [control thread, desk's thread] Makes a ring for `subject`; nil once the trace is over.
    private func ring(_ subject: TraceRing.Subject, _ capacity: Int) -> TraceRing? {
        condition.locked {
            guard state != .over else { return nil }
            let ring = TraceRing(subject, capacity: capacity, clock: clock)
            ring.setOpen(state == .open)
            newRings.append(ring)
            return ring
        }
    }

    /// [before the thread runs]
    func follow(_ thread: ThreadState) {
        guard let ring = ring(.thread(name: thread.name), Self.threadEntries) else { return }
        (thread.traceRing, thread.trace) = (ring, ring.pen)
    }

    /// [before it is used]
    func follow(_ pool: FramePool) { pool.traceRing = ring(.pool(name: pool.name), Self.levelEntries) }

    /// [before it is used]
    func follow(_ slab: Slab) { slab.traceRing = ring(.slab(name: slab.name), Self.levelEntries) }

    /// [before it is used]
    func follow(_ queue: ItemQueue) { queue.traceRing = ring(.queue(name: queue.name), Self.levelEntries) }

    /// [control thread, desk's thread] Tells the trace what runs from here on; called before the threads of `graph`
    /// run. Does nothing once the trace is over.
    func follow(_ graph: RunningGraph) {
        let runners = graph.runners
        let shape = TraceStages.Graph(
            stages: runners.map { TraceStages.Graph.Stage(number: $0.number, id: $0.id) },
            links: graph.plan.links.map {
                TraceStages.Graph.Link(from: runners[$0.from].number, to: runners[$0.to].number)
            })
        condition.locked {
            guard state != .over else { return }
            newGraphs.append(shape)
        }
    }

    // MARK: The run

    /// [control thread, before the run] Keeps entries from here on.
    func open() {
        condition.locked {
            guard state == .idle else { return }
            state = .open
            for ring in newRings { ring.setOpen(true) }
        }
    }

    /// [control thread, before the first thread of the run] Starts the trace thread.
    ///
    /// - Parameter tell: Called with the outcome when the trace ends before the run.
    func begin(
        _ file: TraceFile, title: String, events: EventSubscription, tell: @escaping @Sendable (Outcome) -> Void
    ) throws {
        try ServiceThread.start(name: "trace") { [self] in
            var writer = TraceWriter(file, title: title, clock: clock, events: events)
            let found = write(&writer)
            if case .finished = found.end {} else { tell(found) }
            condition.locked {
                outcome = found
                condition.broadcast()
            }
        }
    }

    /// [control thread, trace thread] Stops the trace. The run goes on.
    func giveUp() {
        condition.locked {
            state = .over
            for ring in newRings { ring.setOpen(false) }
            (newGraphs, newRings) = ([], [])
        }
    }

    /// [control thread, when all threads have ended] Waits until the trace is written.
    ///
    /// - Returns: Nil where the file is not written in time.
    func end() -> Outcome? {
        let deadline = ChainClock.system.now() + Self.endPatienceNs
        return condition.locked {
            isEnding = true
            condition.broadcast()
            while outcome == nil, ChainClock.system.now() < deadline { condition.wait(until: deadline) }
            return outcome
        }
    }

    // MARK: Trace thread

    private func write(_ writer: inout TraceWriter) -> Outcome {
        var flushAt = ChainClock.system.now() + Self.flushNs
        var isBusy = false
        while true {
            let isLast = condition.locked { () -> Bool in
                let until = ChainClock.system.now() + Self.pauseNs
                while !isBusy, !isEnding, ChainClock.system.now() < until { condition.wait(until: until) }
                return isEnding
            }
            takeNews(&writer)
            isBusy = writer.writeAll(isLast: isLast) { [self] in takeGraphs(&$0) }
            let now = ChainClock.system.now()
            let isFull = writer.isFull
            if isLast || isFull {
                // Before the file is written, which may take long: what comes meanwhile is no gap of the trace.
                giveUp()
                writer.sayEnd(isFull: isFull)
            }
            if isLast || isFull || now >= flushAt || writer.pendingBytes >= Self.flushBytes {
                flushAt = now + Self.flushNs
                let code = writer.flush()
                if code != 0 { return over(&writer, .failed(code)) }
            }
            if isFull { return over(&writer, .full) }
            if isLast { return over(&writer, .finished) }
        }
    }

    private func takeNews(_ writer: inout TraceWriter) {
        let (graphs, rings) = condition.locked {
            defer { (newGraphs, newRings) = ([], []) }
            return (newGraphs, newRings)
        }
        for graph in graphs { writer.stages.add(graph) }
        writer.add(rings)
    }

    private func takeGraphs(_ stages: inout TraceStages) {
        let graphs = condition.locked {
            defer { newGraphs = [] }
            return newGraphs
        }
        for graph in graphs { stages.add(graph) }
    }

    private func over(_ writer: inout TraceWriter, _ end: Outcome.End) -> Outcome {
        giveUp()
        let outcome = writer.close(end)
        return outcome
    }
}
