// SPDX-License-Identifier: Apache-2.0

import Glibc

/// The state of the trace thread: the rings, what it knows about the chain, and the packets that are not written yet.
struct TraceWriter {
    private var file: TraceFile
    private let clock: ChainClock
    private let events: EventSubscription
    private var packets: PerfettoPackets
    private let names: TraceNames
    var stages = TraceStages()
    private var lanes: [TraceLane] = []
    /// Lost entries of removed rings, and lost events.
    private var lostBefore = 0
    /// What was lost when the trace ended; nil before that.
    private var lostInAll: Int?

    init(_ file: TraceFile, title: String, clock: ChainClock, events: EventSubscription) {
        self.file = file
        self.clock = clock
        self.events = events
        packets = PerfettoPackets(process: getpid())
        var boot = timespec()
        clock_gettime(CLOCK_BOOTTIME, &boot)
        let now = clock.now()
        packets.begin(
            title: title, at: now, boot: Int64(boot.tv_sec) * 1_000_000_000 + Int64(boot.tv_nsec),
            unix: clock.unixTime(at: now))
        names = TraceNames(&packets)
    }

    var pendingBytes: Int { packets.bytes.count }
    var isFull: Bool { file.isFull(with: packets.bytes.count) }

    mutating func add(_ rings: [TraceRing]) { lanes += rings.map { TraceLane($0) } }

    /// Writes the entries of all rings, and the events. Returns true when a ring was so full that it should be read
    /// again at once.
    ///
    /// - Parameter learn: Called for a stage that ``stages`` does not have yet.
    mutating func writeAll(isLast: Bool, learn: (inout TraceStages) -> Void) -> Bool {
        writeEvents()
        var isBusy = false
        let now = clock.now()
        for index in lanes.indices {
            if isFull { break }
            if lanes[index].fill > 0.25 { isBusy = true }
            lanes[index].write(
                to: &packets, &stages, names, now: now, isLast: isLast, learn: learn,
                isFull: { [file] in file.isFull(with: $0.bytes.count) })
        }
        for lane in lanes where lane.isOver { lostBefore += lane.ring.lost }
        lanes.removeAll { $0.isOver }
        return isBusy
    }

    private mutating func writeEvents() {
        let (found, lost) = events.take()
        for event in found where !isFull {
            var annotations: [(PerfettoPackets.Annotation, PerfettoPackets.Value)] = [
                (.level, .text(event.level.rawValue)), (.text, .text(Self.short(event.text))),
            ]
            if let stage = event.stage { annotations.append((.stage, .text(stage))) }
            if let frame = event.frame { annotations.append((.frame, .number(Int64(truncatingIfNeeded: frame)))) }
            mark(event.name, .event, at: event.time, annotations)
        }
        guard lost > 0 else { return }
        lostBefore += lost
        mark("events lost", .trace, at: clock.now(), [(.count, .number(Int64(lost)))])
    }

    private mutating func mark(
        _ name: String, _ category: PerfettoPackets.Category, at time: Int64,
        _ annotations: [(PerfettoPackets.Annotation, PerfettoPackets.Value)] = []
    ) {
        let number = packets.number(of: Self.short(name))
        packets.mark(number, category, on: PerfettoPackets.eventTrack, at: time, annotations)
    }

    private static func short(_ text: String) -> String {
        text.utf8.count <= Tracer.mostTextBytes
            ? text : String(decoding: text.utf8.prefix(Tracer.mostTextBytes), as: UTF8.self)
    }

    private var lost: Int { lostInAll ?? lanes.reduce(lostBefore) { $0 + $1.ring.lost } }

    private func closeRings() { for lane in lanes { lane.ring.setOpen(false) } }

    /// Closes every ring, and writes the last packets of the trace.
    mutating func sayEnd(isFull: Bool) {
        closeRings()
        let lost = lost
        lostInAll = lost
        var annotations: [(PerfettoPackets.Annotation, PerfettoPackets.Value)] = []
        if isFull { annotations.append((.reason, .text("the trace has reached its limit"))) }
        if lost > 0 { annotations.append((.count, .number(Int64(lost)))) }
        mark(lost > 0 ? "trace ends, entries were lost" : "trace ends", .trace, at: clock.now(), annotations)
    }

    /// - Returns: 0, or errno.
    mutating func flush() -> Int32 {
        let code = file.write(packets.bytes.bytes)
        packets.clear()
        return code
    }

    /// Closes the file, and every ring.
    mutating func close(_ end: Tracer.Outcome.End) -> Tracer.Outcome {
        closeRings()
        let code = file.close()
        var outcome = Tracer.Outcome(end: end, byteCount: file.byteCount, lost: lost)
        if code != 0, case .finished = end { outcome.end = .failed(code) }
        return outcome
    }
}
