// SPDX-License-Identifier: Apache-2.0

import Glibc

@testable import FrameCore

/// Stages that do what a ``BudgetGraph/Node`` says, as unpleasantly as it allows: they keep any frames up to `hold`,
/// answer as late as `delay`, and stall at random.

struct GraphOptions: StageOptions {
    @Option(help: "Input frames kept after a call.", range: 0...16) var hold = 0
    @Option(help: "Items unanswered.", range: 0...16) var delay = 0
    @Option(help: "Own buffers never free.", range: 0...16) var floor = 0
    @Option(help: "Frames a source gives.") var count = 60
    @Option(help: "Live.") var live = false
    @Option(help: "Milliseconds that are said to be needed for an item.") var cost = 0
    @Option(help: "What the dice begin with.") var seed = 1
}

/// Keeps frames by a throw of the dice, never more than `most`.
struct Hoard: ~Copyable {
    private var ring = FrameRing(capacity: 17)
    private let most: Int
    private var random: SplitMix

    init(_ options: GraphOptions, most: Int) { self.init(seed: options.seed, most: most) }

    init(seed: Int, most: Int = 0) {
        self.most = most
        random = SplitMix(state: UInt64(truncatingIfNeeded: seed))
    }

    /// Looks at a frame that goes on, and may keep a share of it.
    mutating func see(_ frame: borrowing Frame) {
        stall()
        guard most > 0 else { return }
        if random.hits(70) { ring.push(frame.share(), keeping: most) } else if random.hits(30) { _ = ring.pop() }
    }

    /// Takes a frame for good, and may keep it.
    mutating func take(_ frame: consuming Frame) {
        stall()
        if most > 0, random.hits(70) { ring.push(frame, keeping: most) }
    }

    mutating func stall() {
        if random.hits(6) { usleep(random.hits(10) ? 2000 : 100) }
    }

    mutating func clear() { while ring.pop() != nil {} }
}

private func demand(_ options: GraphOptions, _ declared: StageDemand) -> StageDemand {
    var demand = declared
    demand.hold = options.hold
    demand.delay = options.delay
    demand.floor = options.floor
    demand.isLive = options.live
    demand.cost = MediaTime(nanoseconds: Int64(options.cost) * 1_000_000)
    return demand
}

private let grey = MediaFormat.video(VideoFormat(.gray8, width: 16, height: 4, frameRate: Rational(1000)))
private let coded = MediaFormat.encoded(EncodedFormat(codec: .h264, video: grey.video!))

final class GraphSource: Source {
    static let info = StageInfo(id: "graph-source", summary: "Gives.", output: .video(.gray8))
    var options: GraphOptions
    private var next = 0
    private var floor = FrameRing(capacity: 17)
    private var dice: Hoard
    init(options: GraphOptions, context: StageContext) {
        self.options = options
        dice = Hoard(options, most: 0)
    }
    var demand: StageDemand { FrameCoreTests.demand(options, Self.declaredDemand) }
    func negotiate() throws -> MediaFormat { grey }

    func produce(_ output: Output) throws -> SourceProgress {
        while floor.count < options.floor {
            if let frame = try output.makeFrame() { floor.push(frame, keeping: 16) } else { return .more }
        }
        guard next < options.count else {
            while floor.pop() != nil {}
            return .ended
        }
        dice.stall()
        if options.live { usleep(30) }
        defer { next += 1 }
        guard let frame = try output.makeFrame() else { return .more }
        frame.pts = MediaTime(nanoseconds: Int64(next) * 1_000_000)
        try output.emit(frame)
        return .more
    }
}

class GraphFilterBase {
    var options: GraphOptions
    fileprivate var hoard: Hoard
    required init(options: GraphOptions, context: StageContext) {
        self.options = options
        hoard = Hoard(options, most: options.hold)
    }
    func stop() throws { hoard.clear() }
}

final class GraphFilter: GraphFilterBase, Filter {
    static let info = StageInfo(
        id: "graph-filter", summary: "Keeps.", input: .video(.gray8), output: .sameAsInput, hold: 16)
    var demand: StageDemand { FrameCoreTests.demand(options, Self.declaredDemand) }
    func process(_ frame: inout Frame) throws -> Verdict {
        hoard.see(frame)
        return .forward
    }
}

final class GraphWriter: GraphFilterBase, Filter {
    static let info = StageInfo(
        id: "graph-writer", summary: "Writes.", input: .video(.gray8), output: .sameAsInput, access: .modify, hold: 16)
    var demand: StageDemand { FrameCoreTests.demand(options, Self.declaredDemand) }
    func process(_ frame: inout Frame) throws -> Verdict {
        frame.withMutablePlane(0) { $0.row(1)[3] &+= 1 }
        hoard.see(frame)
        return .forward
    }
}

/// The same buffers, late.
final class GraphDelay: Transform {
    static let info = StageInfo(
        id: "graph-delay", summary: "Delays.", input: .video(.gray8), output: .sameAsInput, hold: 16, delay: 16)
    var options: GraphOptions
    private var waiting = FrameRing(capacity: 17)
    private var extra: Hoard
    init(options: GraphOptions, context: StageContext) {
        self.options = options
        extra = Hoard(options, most: options.hold - options.delay)
    }
    var demand: StageDemand { FrameCoreTests.demand(options, Self.declaredDemand) }
    var held: Int { waiting.count }
    func negotiate(_ input: MediaFormat) throws -> MediaFormat { input }

    func process(_ input: consuming Sample, _ output: Output) throws {
        guard case .frame(let frame) = consume input else { return }
        extra.see(frame)
        waiting.push(frame, keeping: options.delay + 1)
        if waiting.count > options.delay, let oldest = waiting.pop() { try output.emit(oldest) }
    }
    func drain(_ output: Output) throws { while let frame = waiting.pop() { try output.emit(frame) } }
    func stop() throws {
        extra.clear()
        while waiting.pop() != nil {}
    }
}

/// Times of items that wait for their answer: what an encoder that copies keeps of them.
struct TimeRing {
    private var times: [(pts: MediaTime, sequence: UInt64)] = []
    var count: Int { times.count }
    mutating func push(_ pts: MediaTime, _ sequence: UInt64) { times.append((pts, sequence)) }
    mutating func pop() -> (pts: MediaTime, sequence: UInt64)? { times.isEmpty ? nil : times.removeFirst() }
}

/// Takes frames or access units, gives frames of its own or access units, late.
class GraphMaker {
    var options: GraphOptions
    fileprivate var hoard: Hoard
    fileprivate var floor = FrameRing(capacity: 17)
    fileprivate var times = TimeRing()
    required init(options: GraphOptions, context: StageContext) {
        self.options = options
        hoard = Hoard(options, most: options.hold)
    }
    var held: Int { times.count }

    fileprivate func note(_ input: consuming Sample) {
        switch consume input {
        case .frame(let frame):
            times.push(frame.pts, frame.sequenceNumber)
            hoard.take(frame)
        case .accessUnit(let unit):
            hoard.stall()
            times.push(unit.pts, unit.sequenceNumber)
        case .audioBlock: hoard.stall()
        case .motionBlock: hoard.stall()
        }
    }

    func stop() throws {
        hoard.clear()
        while floor.pop() != nil {}
    }
}

final class GraphAllocator: GraphMaker, Transform {
    static let info = StageInfo(
        id: "graph-allocator", summary: "Makes.", input: .any, output: .video(.gray8), hold: 16, delay: 16)
    var demand: StageDemand { FrameCoreTests.demand(options, Self.declaredDemand) }
    func negotiate(_ input: MediaFormat) throws -> MediaFormat { grey }

    func process(_ input: consuming Sample, _ output: Output) throws {
        while floor.count < options.floor { if let frame = try output.makeFrame() { floor.push(frame, keeping: 16) } }
        if options.delay == 0, options.hold == 0 {
            // With the input in hand while it asks for a buffer.
            switch consume input {
            case .frame(let frame):
                guard let made = try output.makeFrame() else { return }
                made.copyProperties(from: frame)
                try output.emit(made)
            case .accessUnit(let unit):
                guard let made = try output.makeFrame() else { return }
                made.pts = unit.pts
                made.sequenceNumber = unit.sequenceNumber
                try output.emit(made)
            case .audioBlock: output.drop(.byStage)
            case .motionBlock: output.drop(.byStage)
            }
            return
        }
        note(input)
        if times.count > options.delay { try answer(output) }
    }

    private func answer(_ output: Output) throws {
        guard let made = try output.makeFrame(), let time = times.pop() else { return }
        made.pts = time.pts
        made.sequenceNumber = time.sequence
        try output.emit(made)
    }
    func drain(_ output: Output) throws { while times.count > 0 { try answer(output) } }
}

final class GraphEncoder: GraphMaker, Transform {
    static let info = StageInfo(
        id: "graph-encoder", summary: "Encodes.", input: .any, output: .encoded(.h264), hold: 16, delay: 16)
    var demand: StageDemand { FrameCoreTests.demand(options, Self.declaredDemand) }
    func negotiate(_ input: MediaFormat) throws -> MediaFormat { coded }

    func process(_ input: consuming Sample, _ output: Output) throws {
        note(input)
        if times.count > options.delay { try answer(output) }
    }

    private func answer(_ output: Output) throws {
        guard let time = times.pop() else { return }
        let unit = try output.makeAccessUnit(byteCount: 100 + Int(time.sequence % 7) * 300)
        unit.pts = time.pts
        unit.dts = time.pts
        unit.sequenceNumber = time.sequence
        unit.isKeyframe = time.sequence % 10 == 0
        try output.emit(unit)
    }
    func drain(_ output: Output) throws { while times.count > 0 { try answer(output) } }
}

final class GraphSink: GraphMaker, Sink {
    static let info = StageInfo(id: "graph-sink", summary: "Takes.", input: .any, hold: 16)
    var demand: StageDemand { FrameCoreTests.demand(options, Self.declaredDemand) }

    func consume(_ input: consuming Sample) throws -> SinkVerdict {
        switch consume input {
        case .frame(let frame): hoard.take(frame)
        case .accessUnit: hoard.stall()
        case .audioBlock: hoard.stall()
        case .motionBlock: hoard.stall()
        }
        return .delivered
    }
}

// MARK: Joins

class GraphJoinBase {
    var options: GraphOptions
    fileprivate var hoards: [Int: HoardBox] = [:]
    fileprivate var floor = FrameRing(capacity: 17)
    required init(options: GraphOptions, context: StageContext) { self.options = options }

    final class HoardBox {
        var hoard: Hoard
        init(_ options: GraphOptions) { hoard = Hoard(options, most: options.hold) }
    }

    struct Joined: ~Copyable {
        var first: Frame?
        var pts: MediaTime
        var sequence: UInt64
    }

    /// Time of the items; keeps what `hold` allows of each input but the one it gives back.
    fileprivate func takeAll(_ inputs: JoinInputs, passing: Bool) -> Joined {
        var first: Frame?
        let pts = inputs.time
        var sequence: UInt64 = 0
        for index in 0..<inputs.count {
            let box = hoards[index] ?? HoardBox(options)
            hoards[index] = box
            guard let sample = inputs.take(index) else { continue }
            switch consume sample {
            case .frame(let frame):
                if index == inputs.lead { sequence = frame.sequenceNumber }
                if passing, index == inputs.lead {
                    box.hoard.see(frame)
                    first = consume frame
                } else {
                    box.hoard.take(frame)
                }
            case .accessUnit(let unit):
                if index == inputs.lead { sequence = unit.sequenceNumber }
            case .audioBlock: break
            case .motionBlock: break
            }
        }
        return Joined(first: first, pts: pts, sequence: sequence)
    }

    func stop() throws {
        for box in hoards.values { box.hoard.clear() }
        while floor.pop() != nil {}
    }
}

final class GraphPassJoin: GraphJoinBase, Join {
    static let info = StageInfo(id: "graph-pass-join", summary: "Joins.", input: .any, output: .sameAsInput, hold: 16)
    var demand: StageDemand { FrameCoreTests.demand(options, Self.declaredDemand) }
    func negotiate(_ inputs: [MediaFormat]) throws -> MediaFormat { grey }
    func merge(_ inputs: JoinInputs, _ output: Output) throws {
        var taken = takeAll(inputs, passing: true)
        if let frame = taken.first.take() { try output.emit(frame) } else { output.drop(.byStage) }
    }
}

final class GraphMakeJoin: GraphJoinBase, Join {
    static let info = StageInfo(id: "graph-make-join", summary: "Joins.", input: .any, output: .video(.gray8), hold: 16)
    var demand: StageDemand { FrameCoreTests.demand(options, Self.declaredDemand) }
    func negotiate(_ inputs: [MediaFormat]) throws -> MediaFormat { grey }
    func merge(_ inputs: JoinInputs, _ output: Output) throws {
        while floor.count < options.floor { if let frame = try output.makeFrame() { floor.push(frame, keeping: 16) } }
        // With all inputs in hand while it asks for a buffer.
        guard let made = try output.makeFrame() else { return }
        let taken = takeAll(inputs, passing: false)
        made.pts = taken.pts
        made.sequenceNumber = taken.sequence
        try output.emit(made)
    }
}

final class GraphEncodeJoin: GraphJoinBase, Join {
    static let info = StageInfo(
        id: "graph-encode-join", summary: "Joins.", input: .any, output: .encoded(.h264), hold: 16)
    var demand: StageDemand { FrameCoreTests.demand(options, Self.declaredDemand) }
    func negotiate(_ inputs: [MediaFormat]) throws -> MediaFormat { coded }
    func merge(_ inputs: JoinInputs, _ output: Output) throws {
        let taken = takeAll(inputs, passing: false)
        let unit = try output.makeAccessUnit(byteCount: 64)
        unit.pts = taken.pts
        unit.dts = taken.pts
        unit.sequenceNumber = taken.sequence
        unit.isKeyframe = taken.sequence % 10 == 0
        try output.emit(unit)
    }
}

final class GraphJoinSink: GraphJoinBase, Join {
    static let info = StageInfo(
        id: "graph-join-sink", summary: "Joins and ends.", input: .any, output: .video(.gray8), hold: 16)
    var demand: StageDemand { FrameCoreTests.demand(options, Self.declaredDemand) }
    func negotiate(_ inputs: [MediaFormat]) throws -> MediaFormat { grey }
    func merge(_ inputs: JoinInputs, _ output: Output) throws {
        _ = takeAll(inputs, passing: false)
        output.drop(.byStage)
    }
}

/// A graph as a chain of these stages.
enum GraphChain {
    /// A stage of another type than these.
    struct Chosen {
        var type: StageType
        var options: String

        init(type: any Stage.Type, options: String) {
            func make<S: Stage>(_ type: S.Type) -> StageType { StageType(type) }
            self.type = make(type)
            self.options = options
        }
    }

    /// - Parameters:
    ///   - sizes: Buffers of output pools by node, where they are not to be `need`.
    ///   - others: Stages of other types, by node.
    static func request(
        _ plan: BudgetPlan, seed: UInt64, frames: Int, sizes: [Int: Int], others: [Int: Chosen] = [:]
    ) throws -> ChainRequest {
        let graph = plan.graph
        // Not where pools get sizes of their own, which are those of a plan without such queues.
        let hasAutomaticQueues = seed % 2 == 1
        var dice = SplitMix(state: seed)
        var stages: [StageRequest] = []
        for (index, node) in graph.nodes.enumerated() {
            let edges = graph.incoming(index)
            let options =
                #"{"hold": \#(node.hold), "delay": \#(node.delay), "floor": \#(node.floor), "count": \#(frames), "live": \#(node.isLive), "cost": \#(hasAutomaticQueues ? Int(dice.next() % 8) : 0), "seed": \#(seed % 1_000_000 * 100 + UInt64(index))}"#
            let type = others[index]?.type ?? type(of: node)
            let members = try JSONReader.read(Array((others[index]?.options ?? options).utf8), file: "options")
                .asObject!
            let rule = JoinRequest(
                match: node.match, lead: node.lead, hold: edges.contains { graph.edges[$0].keeps > 0 }
            )
            // Queues of a join differ from input to input, which a chain file cannot say: see `links`.
            let link = edges.isEmpty ? LinkRequest() : request(graph.edges[edges[0]], mayGrow: hasAutomaticQueues)
            stages.append(
                StageRequest(
                    id: "n\(index)", type: type, options: members, from: edges.map { graph.edges[$0].from },
                    link: link, join: node.isJoin ? rule : nil,
                    isUnread: type.info.output != .none && graph.outgoing(index).isEmpty, fileIndex: index))
        }
        var request = ChainRequest(file: "seed-\(seed)", folder: ".", stages: stages)
        request.buffers = sizes
        request.drainSeconds = 5
        request.processors = 8
        for edge in graph.edges {
            request.links[LinkEnds(from: edge.from, to: edge.to)] = self.request(edge, mayGrow: hasAutomaticQueues)
        }
        return request
    }

    /// - Parameter mayGrow: An inline link may become an automatic queue.
    private static func request(_ edge: BudgetGraph.Edge, mayGrow: Bool) -> LinkRequest {
        if edge.capacity == 0, mayGrow { return LinkRequest() }
        return LinkRequest(
            queue: edge.capacity, whenFull: edge.capacity == 0 ? nil : edge.policy,
            megabytes: edge.carriesUnits ? 1 : nil)
    }

    private static func type(of node: BudgetGraph.Node) -> StageType {
        switch (node.kind, node.isJoin) {
        case (.source, _): StageType(GraphSource.self)
        case (.sink, false): StageType(GraphSink.self)
        case (.sink, true): StageType(GraphJoinSink.self)
        case (.passThrough, true): StageType(GraphPassJoin.self)
        case (.allocator, true): StageType(GraphMakeJoin.self)
        case (.encoder, true): StageType(GraphEncodeJoin.self)
        case (.passThrough, false):
            node.modifies
                ? StageType(GraphWriter.self)
                : node.delay > 0 ? StageType(GraphDelay.self) : StageType(GraphFilter.self)
        case (.allocator, false): StageType(GraphAllocator.self)
        case (.encoder, false): StageType(GraphEncoder.self)
        }
    }
}
