// SPDX-License-Identifier: Apache-2.0

/// One instance of a stage, without its Swift type.
///
/// `@unchecked Sendable`: any thread may read what says nothing else, since nothing changes it once the instance is
/// negotiated. The stage itself belongs to one thread at a time.
final class StageInstance: @unchecked Sendable {
    let stage: any Stage
    let info: StageInfo
    let kind: StageKind
    let context: StageContext
    let multiFilter: (any MultiFilter)?
    let multiTransform: (any MultiTransform)?
    /// The stage by what the runner calls. Known once the stage is negotiated, like the properties below.
    @exclusivity(unchecked) private(set) var body: StageBody?
    @exclusivity(unchecked) private(set) var demand = StageDemand()
    /// The format of its output; nil for a sink.
    @exclusivity(unchecked) private(set) var output: MediaFormat?

    /// [stage thread] Checks and sets live options; all or none.
    let set: (_ members: [JSONNode.Member], _ place: OptionPlace) throws -> Void

    /// Only one thread at a time ends an instance.
    @exclusivity(unchecked) private(set) var isStopped = false

    /// Counts the leases that this instance keeps: the instance that was replaced may keep some until it has ended. The
    /// last property, so that it is freed after the stage, whose `deinit` may still release frames.
    let keeper = KeeperOwner()

    /// The stage, where it is a filter that keeps no frame back.
    var plainFilter: (any Filter)? { if case .filter(let filter) = body { filter } else { nil } }

    /// Whether frames can pass it by, and its declaration allows it.
    var canBePassed: Bool { kind == .filter && demand.delay == 0 && !demand.mustNotBePassed }

    /// [control thread, desk's thread] Negotiates the output format for these input formats; nil for a sink.
    /// ``StageDriver`` uses it too.
    func negotiate(_ inputs: [MediaFormat]) throws -> MediaFormat? {
        output = try agree(on: inputs)
        demand = stage.demand
        body = StageBody(stage, kind, isDelaying: demand.delay > 0)
        return output
    }

    /// [stage thread, a thread of its own] Ends what `start` began. Only the first call does something.
    func stop() throws {
        guard !isStopped else { return }
        isStopped = true
        try stage.stop()
    }

    init<S: Stage>(_ stage: S, _ kind: StageKind, _ context: StageContext) {
        self.stage = stage
        self.kind = kind
        self.context = context
        info = S.info
        multiFilter = stage as? any MultiFilter
        multiTransform = stage as? any MultiTransform
        set = { members, place in
            try Self.checkLive(members, S.Options.fields, place)
            let before = stage.options
            stage.options = try OptionDecoder.decode(
                S.Options.self, from: members, base: before, isChange: true, place: place)
            do {
                try stage.optionsChanged()
            } catch {
                stage.options = before
                throw error
            }
        }
    }

    /// - Throws: ``FrameHostErrors`` where a member is an option that is not live.
    static func checkLive(_ members: [JSONNode.Member], _ fields: [OptionField], _ place: OptionPlace) throws {
        let frozen = members.filter { member in fields.contains { $0.name == member.key && !$0.isLive } }
        guard !frozen.isEmpty else { return }
        let live = fields.filter(\.isLive).map(\.name)
        throw FrameHostErrors(
            frozen.map {
                FrameHostError(
                    .invalidConfiguration, place: place($0.key, $0.keyPlace),
                    what: "cannot change while the chain runs",
                    remedy: live.isEmpty
                        ? "Set it in the chain file, then reload or restart the chain."
                        : "Set it in the chain file, then reload or restart the chain. Only \(quotedList(live, "and")) can change while it runs."
                )
            })
    }

    /// An isolated stage: `info` is that of the type that its process runs, `stage` is what stands in for it here.
    init(
        standIn stage: any Stage, for type: StageType, _ context: StageContext,
        set: @escaping (_ members: [JSONNode.Member], _ place: OptionPlace) throws -> Void
    ) {
        self.stage = stage
        kind = type.kind
        self.context = context
        info = type.info
        (multiFilter, multiTransform) = (nil, nil)
        self.set = set
    }

    deinit { context.forgetStage() }
}
