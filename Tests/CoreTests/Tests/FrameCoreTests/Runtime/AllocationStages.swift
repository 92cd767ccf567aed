// SPDX-License-Identifier: Apache-2.0

import CMallocCount

@testable import FrameCore

/// Stages whose threads are counted and which allocate nothing themselves: what is counted is Core's.

struct CountedOptions: StageOptions {
    @Option(help: "Whose allocations these are.", range: 0...63) var group = 0
    @Option(help: "Frames of a source.") var count = 0
    @Option(help: "Live.") var live = false
    @Option(help: "Allocates at every n-th frame.") var wasteEvery = 0
}

final class CountedSource: Source {
    static let info = StageInfo(id: "counted-source", summary: "Counts.", output: .video(.gray8))
    var options: CountedOptions
    let context: StageContext
    private var next = 0
    init(options: CountedOptions, context: StageContext) {
        self.options = options
        self.context = context
    }
    var demand: StageDemand {
        var demand = Self.declaredDemand
        demand.isLive = options.live
        return demand
    }
    func negotiate() throws -> MediaFormat {
        .video(VideoFormat(.gray8, width: 16, height: 4, frameRate: Rational(30)))
    }
    func produce(_ output: Output) throws -> SourceProgress {
        fh_malloc_join(Int32(options.group))
        guard next < options.count else { return .ended }
        next += 1
        if options.live, !context.sleep(until: context.clock.now() + 1_000_000) { return .ended }
        guard var frame = try output.makeFrame() else { return .more }
        frame.pts = MediaTime(nanoseconds: Int64(next) * 1_000_000)
        frame.withMutablePlane(0) { $0.row(0)[0] = 1 }
        try output.emit(frame)
        return .more
    }
}

final class CountedFilter: Filter {
    static let info = StageInfo(
        id: "counted-filter", summary: "Looks.", input: .video(.gray8), output: .sameAsInput, metadata: [Mark.self])
    struct Mark: FrameMetadata {
        static let metadataName = "mark"
        var number: UInt64
    }
    var options: CountedOptions
    let context: StageContext
    private var slot: MetadataSlot<Mark>!
    private var waste: [Int] = []
    init(options: CountedOptions, context: StageContext) {
        self.options = options
        self.context = context
    }
    func start() throws { slot = context.slot(for: Mark.self) }
    func process(_ frame: inout Frame) throws -> Verdict {
        fh_malloc_join(Int32(options.group))
        frame[slot] = Mark(number: frame.sequenceNumber)
        if options.wasteEvery > 0, Int(frame.sequenceNumber) % options.wasteEvery == 0 {
            waste = [Int(frame.sequenceNumber)]
        }
        return .forward
    }
}

final class CountedWriter: Filter {
    static let info = StageInfo(
        id: "counted-writer", summary: "Writes.", input: .video(.gray8), output: .sameAsInput, access: .modify)
    var options: CountedOptions
    init(options: CountedOptions, context: StageContext) { self.options = options }
    func process(_ frame: inout Frame) throws -> Verdict {
        fh_malloc_join(Int32(options.group))
        frame.withMutablePlane(0) { $0.row(1)[2] &+= 1 }
        return .forward
    }
}

final class CountedEncoder: Transform {
    static let info = StageInfo(
        id: "counted-encoder", summary: "Encodes.", input: .video(.gray8), output: .encoded(.h264))
    var options: CountedOptions
    init(options: CountedOptions, context: StageContext) { self.options = options }
    func negotiate(_ input: MediaFormat) throws -> MediaFormat {
        .encoded(EncodedFormat(codec: .h264, video: input.video!))
    }
    func process(_ input: consuming Sample, _ output: Output) throws {
        fh_malloc_join(Int32(options.group))
        guard case .frame(let frame) = consume input else { return }
        var unit = try output.makeAccessUnit(byteCount: 100 + Int(frame.sequenceNumber % 7) * 50)
        unit.withMutableBytes { $0[0] = 1 }
        unit.pts = frame.pts
        unit.dts = frame.pts
        unit.isKeyframe = frame.sequenceNumber % 5 == 0
        try output.emit(unit)
    }
}

/// Encodes with pictures held and reordered: of each three the last comes first. Sets PTS and DTS only.
final class CountedReorderer: Transform {
    static let info = StageInfo(
        id: "counted-reorderer", summary: "Reorders.", input: .video(.gray8), output: .encoded(.h264), delay: 2)
    var options: CountedOptions
    private var waiting: [MediaTime] = []
    private var lastTime = MediaTime(nanoseconds: 0)
    init(options: CountedOptions, context: StageContext) { self.options = options }
    var held: Int { waiting.count }
    func negotiate(_ input: MediaFormat) throws -> MediaFormat {
        .encoded(EncodedFormat(codec: .h264, video: input.video!))
    }
    func start() { waiting.reserveCapacity(3) }
    func process(_ input: consuming Sample, _ output: Output) throws {
        fh_malloc_join(Int32(options.group))
        guard case .frame(let frame) = consume input else { return }
        waiting.append(frame.pts)
        if waiting.count == 3 { try drain(output) }
    }
    func drain(_ output: Output) throws {
        guard let last = waiting.popLast() else { return }
        try emit(last, decodedAt: lastTime, output)
        for pts in waiting { try emit(pts, decodedAt: pts, output) }
        waiting.removeAll(keepingCapacity: true)
        // Before the next one's PTS, after all that came.
        lastTime = MediaTime(nanoseconds: last.nanoseconds)
    }
    private func emit(_ pts: MediaTime, decodedAt dts: MediaTime, _ output: Output) throws {
        let unit = try output.makeAccessUnit(byteCount: 100)
        unit.pts = pts
        unit.dts = dts
        unit.isKeyframe = true
        try output.emit(unit)
    }
}

/// Reads the mark that a filter set on the frame of each access unit.
final class CountedMarkReader: Sink {
    static let info = StageInfo(
        id: "counted-mark-reader", summary: "Reads.", input: .encoded(.h264), metadata: [CountedFilter.Mark.self])
    var options: CountedOptions
    private let context: StageContext
    private var slot: MetadataSlot<CountedFilter.Mark>!
    init(options: CountedOptions, context: StageContext) {
        self.options = options
        self.context = context
    }
    func start() { slot = context.slot(for: CountedFilter.Mark.self) }
    func consume(_ input: consuming Sample) throws -> SinkVerdict {
        fh_malloc_join(Int32(options.group))
        guard case .accessUnit(let unit) = consume input, unit[slot]?.number == unit.sequenceNumber else {
            throw FrameHostError(.broken, what: "a unit without the mark of its frame")
        }
        return .delivered
    }
}

/// Joins: the first item goes on.
final class CountedJoin: Join {
    static let info = StageInfo(id: "counted-join", summary: "Joins.", input: .video(.gray8), output: .sameAsInput)
    var options: CountedOptions
    init(options: CountedOptions, context: StageContext) { self.options = options }
    func negotiate(_ inputs: [MediaFormat]) throws -> MediaFormat { inputs[0] }
    func merge(_ inputs: JoinInputs, _ output: Output) throws {
        fh_malloc_join(Int32(options.group))
        for index in 0..<inputs.count {
            if case .frame(let frame)? = inputs.take(index) { return try output.emit(frame) }
        }
    }
}

/// Keeps the last picture, as a preview does.
final class CountedSink: Sink {
    static let info = StageInfo(id: "counted-sink", summary: "Takes.", input: .any, hold: 1)
    var options: CountedOptions
    private var last: Frame?
    init(options: CountedOptions, context: StageContext) { self.options = options }
    func consume(_ input: consuming Sample) throws -> SinkVerdict {
        fh_malloc_join(Int32(options.group))
        if case .frame(let frame) = consume input { last = consume frame }
        return .delivered
    }
    func stop() throws { _ = last.take() }
}
