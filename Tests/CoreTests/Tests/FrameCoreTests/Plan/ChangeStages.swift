// SPDX-License-Identifier: Apache-2.0

@testable import FrameCore

/// A camera in name only: a size, a pixel format, live or not, sound or none.
final class PlainCamera: Source {
    static let info = StageInfo(id: "plain-camera", summary: "Films.", output: .anyVideo)

    struct Options: StageOptions {
        @Option(help: "Width.") var width = 64
        @Option(help: "Format.") var format = PixelFormat.gray8
        @Option(help: "Live.") var live = true
        @Option(help: "Sound.") var sound = false
        @Option(help: "Brightness.", live: true) var brightness = 0
    }

    private final class Silence: AudioOrigin {
        let tracks: [AudioTrackFormat] = []
        func open(track: Int) throws -> any AudioReader { throw FrameHostError(.broken, what: "there is none") }
    }

    var options: Options
    private let context: StageContext

    init(options: Options, context: StageContext) {
        self.options = options
        self.context = context
    }

    var demand: StageDemand {
        var demand = Self.declaredDemand
        demand.isLive = options.live
        return demand
    }

    func negotiate() throws -> MediaFormat {
        if options.sound { context.offerAudio(Silence()) }
        return .video(VideoFormat(options.format, width: options.width, height: 64, frameRate: Rational(30)))
    }

    func produce(_ output: Output) throws -> SourceProgress { .ended }
}

/// Takes any picture; brings metadata of its own.
final class Labeller: Filter {
    struct Label: FrameMetadata { static let metadataName = "label" }
    static let info = StageInfo(
        id: "labeller", summary: "Labels.", input: .anyVideo, output: .sameAsInput, metadata: [Label.self])
    typealias Options = NoOptions
    var options: NoOptions
    init(options: NoOptions, context: StageContext) { self.options = options }
    func process(_ frame: inout Frame) throws -> Verdict { .forward }
}

/// Takes every picture there is.
final class Anything: Sink {
    static let info = StageInfo(id: "anything", summary: "Takes all.", input: .anyVideo)
    struct Options: StageOptions { @Option(help: "Number.") var number = 0 }
    var options: Options
    init(options: Options, context: StageContext) { self.options = options }
    func consume(_ input: consuming Sample) throws -> SinkVerdict { .delivered }
}

/// Takes pictures and access units.
final class Omnivore: Sink {
    static let info = StageInfo(id: "omnivore", summary: "Takes all.", input: .any)
    struct Options: StageOptions { @Option(help: "Number.") var number = 0 }
    var options: Options
    init(options: Options, context: StageContext) { self.options = options }
    func consume(_ input: consuming Sample) throws -> SinkVerdict { .delivered }
}

/// A chain file in the small, whose stage types are the same objects from request to request.
struct ChainDraft {
    static let types: [String: StageType] = Dictionary(
        uniqueKeysWithValues: [
            StageType(PlainCamera.self), StageType(Labeller.self), StageType(Anything.self),
            StageType(ProbeFilter.self),
            StageType(CopyTransform.self), StageType(PairJoin.self), StageType(UnitEncoder.self),
            StageType(UnitSink.self), StageType(AddOne.self), StageType(RecordingSink.self),
            StageType(NameConverter.self), StageType(Omnivore.self),
        ].map { ($0.info.id, $0) })

    var stages: [StageRequest] = []
    var spare: Int?
    var buffers: [String: Int] = [:]

    mutating func add(
        _ use: String, _ id: String, _ options: String = "{}", from: [String]? = nil, link: LinkRequest = LinkRequest()
    ) throws {
        let type = Self.types[use]!
        let members = try JSONReader.read(Array(options.utf8), file: "options").asObject ?? []
        let inputs =
            from.map { $0.map { name in stages.firstIndex { $0.id == name }! } }
            ?? (type.info.input == .none ? [] : [stages.count - 1])
        stages.append(
            StageRequest(id: id, type: type, options: members, from: inputs, link: link, fileIndex: stages.count))
    }

    mutating func set(_ id: String, _ options: String) throws {
        let members = try JSONReader.read(Array(options.utf8), file: "options").asObject ?? []
        stages[stages.firstIndex { $0.id == id }!].options = members
    }

    mutating func use(_ type: String, for id: String) {
        stages[stages.firstIndex { $0.id == id }!].type = Self.types[type]!
    }

    var request: ChainRequest {
        var request = ChainRequest(file: "test.json", folder: ".", stages: stages)
        request.spare = spare
        for (id, count) in buffers { request.buffers[stages.firstIndex { $0.id == id }!] = count }
        request.converter = { Self.types["name-convert"] }
        request.memory = AvailableMemory(bytes: 4 << 30)
        return request
    }

    func plan(against running: PlannedChain? = nil) throws -> PlannedChain {
        try ChainPlanner(request, clock: ManualClock(), running: running.map { RunningChain($0) }).plan()
    }

    func faults(against running: PlannedChain? = nil) -> [String] {
        do {
            _ = try plan(against: running)
            return []
        } catch {
            return (error as? FrameHostErrors)?.errors.map(\.description) ?? ["\(error)"]
        }
    }
}

extension PlannedChain {
    func stage(_ id: String) -> PlannedStage { stages.first { $0.id == id }! }
    func pool(_ id: String, copies: Bool = false) -> BudgetPlan.Pool? {
        plan.budget.pools.first { plan.stages[$0.allocator].id == id && $0.isCopyPool == copies }
    }
    func link(_ from: String, _ to: String) -> ChainPlan.Link? {
        plan.links.first { plan.stages[$0.from].id == from && plan.stages[$0.to].id == to }
    }
    func slab(_ id: String) -> ChainPlan.SlabPlan? { plan.slabs.first { plan.stages[$0.stage].id == id } }
}
