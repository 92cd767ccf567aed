// SPDX-License-Identifier: Apache-2.0

/// A plan, and the stages that were made for it.
struct PlannedChain {
    let plan: ChainPlan
    /// In the order of `plan.stages`.
    let stages: [PlannedStage]
    let services: ChainServices
    /// Of every lease of the chain.
    let layout: MetadataLayout
    let isLive: Bool
    /// Buffers for branches to come, as the chain file has it.
    let spare: Int?
    /// By the ids of stages, what is different from what runs; of a chain that does not run yet every stage is made.
    let changes: Changes

    struct Changes: Equatable {
        /// Go on as they are, if with other live options (``PlannedStage/Origin/kept(_:)``).
        var kept: [String] = []
        /// Are to be started. Those that are in `gone` too take the place of one that runs.
        var made: [String] = []
        /// Run, and are to be stopped.
        var gone: [String] = []
    }

    /// [control thread, once the plan is applied] Points the requests for keyframes of stages that were kept at the
    /// encoders they now have before them.
    func connectKeyframeRequests() {
        for stage in stages {
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
        /// Runs already, neither made nor negotiated again. The live options are to be set when the plan is applied.
        case kept([JSONNode.Member])
    }

    /// As asked for, with `from` in the order of the plan.
    var request: StageRequest
    /// Ids of `request.from`.
    var inputIDs: [String]
    /// What is asked of the link to each input, in the order of `from`.
    var inputLinks: [LinkRequest]
    /// Buffers a person wrote for its output's pool.
    var buffers: Int?
    let context: StageContext
    let instance: StageInstance
    var origin = Origin.made
    /// Inserted by the planner.
    var isInserted = false
    /// What it was negotiated with. Known once negotiated, like all that follows.
    var inputs: [MediaFormat] = []
    /// What it gives; nil for a sink.
    var output: MediaFormat?
    var demand = StageDemand()
    /// The sound that comes with its input.
    var audio: (any AudioOrigin)?
    /// Who is asked for a keyframe of what comes in.
    var keyframes: KeyframeRequest?

    var id: String { request.id }
    /// Copies for a branch, before anybody else behind its producer gets the item.
    var isTap: Bool { request.type === CopyTap.type }
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
    /// By index of the stage.
    var writtenPoolSizes: [Int: Int] {
        var sizes: [Int: Int] = [:]
        for (index, stage) in enumerated() { sizes[index] = stage.buffers }
        return sizes
    }
}
