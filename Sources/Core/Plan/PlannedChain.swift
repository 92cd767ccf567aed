// SPDX-License-Identifier: Apache-2.0

/// A plan, and the stages that were made for it.
struct PlannedChain {
    let plan: ChainPlan
    /// In the order of `plan.stages`.
    let stages: [PlannedStage]
    let services: ChainServices
    /// The metadata layout of every lease of the chain.
    let layout: MetadataLayout
    let isLive: Bool
    /// Buffers for branches that are attached later, as the chain file says.
    let spare: Int?
    /// What privacy stages hide, by the id of each. A change may not show what was hidden.
    let hidden: [String: OriginalsProof.Hidden]
    /// The differences from the running chain, by the ids of stages. In a chain that does not run yet, every stage is
    /// made.
    let changes: Changes

    struct Changes: Equatable {
        /// Stages that go on as they are, perhaps with other live options (``PlannedStage/Origin/kept(_:)``).
        var kept: [String] = []
        /// Stages that will be started. One that is in `gone` too replaces a running stage.
        var made: [String] = []
        /// Running stages that will be stopped.
        var gone: [String] = []
    }

    /// [control thread, once the plan is applied] Points the keyframe requests of kept stages at the encoders that
    /// are before them now, and tells them what their inputs say about themselves now.
    func connectKeptStages() {
        for stage in stages {
            stage.context.setInputTags(stage.inputTags)
            guard case .kept = stage.origin, let target = stage.keyframes else { continue }
            stage.context.keyframeRequest?.redirect(to: target)
        }
    }
}

/// A stage that is made and knows its formats.
struct PlannedStage {
    enum Origin {
        /// Made and negotiated for this plan; to be started.
        case made
        /// Runs already, and is neither made nor negotiated again. These live options are set when the plan is applied.
        case kept([JSONNode.Member])
    }

    /// As asked for, with `from` in the order of the plan.
    var request: StageRequest
    /// Ids of `request.from`.
    var inputIDs: [String]
    /// The requested link to each input, in the order of `from`.
    var inputLinks: [LinkRequest]
    /// The buffers of its output's pool that the chain file asks for.
    var buffers: Int?
    let context: StageContext
    let instance: StageInstance
    var origin = Origin.made
    /// Inserted by the planner.
    var isInserted = false
    /// The formats that it was negotiated with. Known once it is negotiated, like all properties below.
    var inputs: [MediaFormat] = []
    /// The format of its output; nil for a sink.
    var output: MediaFormat?
    var demand = StageDemand()
    /// The sound that comes with its input.
    var audio: (any AudioOrigin)?
    /// The request that asks for a keyframe in its input.
    var keyframes: KeyframeRequest?
    /// What each input says about itself.
    var inputTags: [PlacedTags] = []
    /// Of a source's further output: the stage that hides something in what the source gives beside it.
    var guardBesideIt: String?

    var id: String { request.id }
    /// Whether it copies for a branch, before any other stage behind its producer gets the item.
    var isTap: Bool { request.type === CopyTap.type }
    /// What is known of what its output says about itself.
    var tagsOfOutput: PlacedTags {
        guard request.type.kind == .source else { return PlacedTags(behind: id, demand, inputTags) }
        var tags = context.offeredTags ?? PlacedTags(PassedTags())
        if let guardBesideIt { tags.withhold(.guarded(by: guardBesideIt)) }
        return tags
    }
    var isKept: Bool { if case .kept = origin { true } else { false } }
}

/// What all stages of a run share.
struct ChainServices {
    let clock: ChainClock
    let stop = StopSignal()
    let events = EventHub()
    let jobs: JobQueue
    let files = RunFiles()

    init(clock: ChainClock) {
        self.clock = clock
        jobs = JobQueue(events: events, clock: clock)
    }
}

extension [PlannedStage] {
    /// The pool sizes that the chain file asks for, by index of the stage.
    var writtenPoolSizes: [Int: Int] {
        var sizes: [Int: Int] = [:]
        for (index, stage) in enumerated() { sizes[index] = stage.buffers }
        return sizes
    }
}
