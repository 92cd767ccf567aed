// SPDX-License-Identifier: Apache-2.0

/// One ring as the trace thread reads it. It knows which slices are open on the track, so that slices nest even where
/// entries were lost.
struct TraceLane {
    /// How long the entry of a source's call waits for the item that the call gives, before it is written without one,
    /// nanoseconds.
    static let longestPatience: Int64 = 500_000_000

    let ring: TraceRing
    /// 0 until the first entry is written.
    private var track: UInt64 = 0
    private var markTrack: UInt64 = 0
    /// Depths of the slices that are open.
    private var open: [UInt16] = []
    /// Whether the item of the next `emit` was written with its call already.
    private var skipsEmit = false
    private var flows: [UInt64] = []
    /// The time of the newest entry.
    private var lastTime = Int64.min
    /// Lost entries that the trace has reported.
    private(set) var lost = 0

    init(_ ring: TraceRing) { self.ring = ring }

    /// Whether nothing more comes.
    var isOver: Bool { ring.isOver.load(ordering: .acquiring) && ring.head == ring.tail }

    /// How full the ring is, 0...1.
    var fill: Double { Double(ring.tail - ring.head) / Double(ring.capacity) }

    /// Writes what can be written.
    ///
    /// - Parameters:
    ///   - isLast: Whether nothing is waited for.
    ///   - learn: Called for a stage that `stages` does not have yet.
    ///   - isFull: Asked after each entry; true leaves the rest.
    mutating func write(
        to packets: inout PerfettoPackets, _ stages: inout TraceStages, _ names: TraceNames, now: Int64, isLast: Bool,
        learn: (inout TraceStages) -> Void, isFull: (borrowing PerfettoPackets) -> Bool
    ) {
        let end = ring.tail
        var index = ring.head
        while index < end {
            let record = ring[index]
            if record.stage >= 0, !stages.isKnown(Int(record.stage)) { learn(&stages) }
            switch record.kind {
            case .produce, .merge:
                let patience = isLast || now - record.time > Self.longestPatience || fill > 0.5
                guard begin(record, index + 1..<end, patience, &packets, &stages) else {
                    ring.release(to: index)
                    return
                }
            default: write(record, &packets, &stages, names)
            }
            lastTime = record.time
            index += 1
            if isFull(packets) { break }
        }
        ring.release(to: index)
    }

    /// Begins a call whose items are not known when it begins; false while they may still follow.
    private mutating func begin(
        _ record: TraceRecord, _ following: Range<Int>, _ isImpatient: Bool, _ packets: inout PerfettoPackets,
        _ stages: inout TraceStages
    ) -> Bool {
        flows.removeAll(keepingCapacity: true)
        let stage = Int(record.stage)
        var item: Int64?
        var isDecided = false
        search: for index in following {
            let next = ring[index]
            switch next.kind {
            case .input: stages.addInput(Int(next.detail), of: stage, item: next.value, to: &flows)
            case .emit:
                item = next.value
                isDecided = true
                break search
            case .item, .produce, .merge, .call, .end:
                isDecided = true
                break search
            case .wait, .drop, .level, .gap: continue
            }
        }
        guard isDecided || isImpatient else { return false }
        skipsEmit = item != nil
        if let item { stages.addOutputs(of: stage, item: item, to: &flows) }
        let frame = item ?? (record.kind == .merge ? record.value : nil)
        open(record, stages.name(of: stage, in: &packets), frame: frame, &packets)
        return true
    }

    private mutating func write(
        _ record: TraceRecord, _ packets: inout PerfettoPackets, _ stages: inout TraceStages, _ names: TraceNames
    ) {
        flows.removeAll(keepingCapacity: true)
        let stage = Int(record.stage)
        switch record.kind {
        case .produce, .merge, .input: break
        case .item:
            stages.addInput(0, of: stage, item: record.value, to: &flows)
            stages.addOutputs(of: stage, item: record.value, to: &flows)
            open(record, stages.name(of: stage, in: &packets), frame: record.value, &packets)
        case .call:
            let call = StageCall(rawValue: record.detail)?.name(of: .filter) ?? "call"
            open(record, packets.number(of: "\(stages.id(of: stage)) \(call)"), frame: nil, &packets)
        case .end: close(to: record.depth, at: record.time, &packets)
        case .wait:
            let track = ownTrack(&packets)
            // Earlier entries may have been lost, and their loss reported later than this call began.
            let begin = max(record.value, lastTime)
            packets.begin(names.waits[Int(record.detail)], .wait, on: track, at: begin, frame: nil)
            packets.end(on: track, at: record.time)
        case .emit:
            if skipsEmit { return skipsEmit = false }
            stages.addOutputs(of: stage, item: record.value, to: &flows)
            let track = ownTrack(&packets)
            packets.mark(
                names.gives, .stage, on: track, at: record.time, flows: flows,
                [(.stage, .text(stages.id(of: stage))), (.frame, .number(record.value))])
        case .drop:
            let track = marksTrack(&packets)
            packets.mark(
                names.drops[Int(record.detail)], .drop, on: track, at: record.time,
                [
                    (.stage, .text(stages.id(of: stage))), (.frame, .number(record.value)),
                    (.count, .number(Int64(record.depth))),
                ])
        case .level:
            let track = ownTrack(&packets)
            packets.level(record.value, on: track, at: record.time)
        case .gap:
            lost += Int(record.value)
            let track = marksTrack(&packets)
            packets.mark(names.lost, .trace, on: track, at: record.time, [(.count, .number(record.value))])
        }
    }

    // MARK: Slices

    private mutating func open(
        _ record: TraceRecord, _ name: UInt64, frame: Int64?, _ packets: inout PerfettoPackets
    ) {
        // Ends an earlier slice whose end was lost.
        close(to: record.depth, at: record.time, &packets)
        open.append(record.depth)
        let track = ownTrack(&packets)
        packets.begin(name, .stage, on: track, at: record.time, frame: frame, flows: flows)
    }

    /// Ends the open slices at `depth` and deeper. Does nothing where their beginning was lost.
    private mutating func close(to depth: UInt16, at time: Int64, _ packets: inout PerfettoPackets) {
        while let last = open.last, last >= depth {
            open.removeLast()
            packets.end(on: track, at: time)
        }
    }

    // MARK: Tracks

    private mutating func ownTrack(_ packets: inout PerfettoPackets) -> UInt64 {
        if track != 0 { return track }
        switch ring.subject {
        case .thread(let name):
            track = packets.thread(name, number: ring.threadNumber.load(ordering: .relaxed))
        case .pool(let name): track = packets.counter("pool \(name)", unit: "buffers in use")
        case .slab(let name): track = packets.counter("memory \(name)", unit: "bytes in use")
        case .queue(let name): track = packets.counter("queue \(name)", unit: "items")
        }
        return track
    }

    /// The track for marks: a thread's own track, or one beside a counter's track, which only has numbers.
    private mutating func marksTrack(_ packets: inout PerfettoPackets) -> UInt64 {
        if markTrack != 0 { return markTrack }
        switch ring.subject {
        case .thread: markTrack = ownTrack(&packets)
        case .pool(let name): markTrack = packets.marks("pool \(name)")
        case .slab(let name): markTrack = packets.marks("memory \(name)")
        case .queue(let name): markTrack = packets.marks("queue \(name)")
        }
        return markTrack
    }
}
