/// A plan, and the stages it was made with, for whoever runs them.
struct PlannedChain {
    let plan: ChainPlan
    /// In the order of `plan.stages`.
    let stages: [PlannedStage]
    let services: ChainServices
    /// Of every lease of the chain.
    let layout: MetadataLayout
}

/// A stage that is made and knows its formats.
struct PlannedStage {
    /// As asked for, with `from` in the order of the plan.
    var request: StageRequest
    /// What is asked of the link to each input, in the order of `from`.
    var inputLinks: [LinkRequest]
    /// Buffers a person wrote for its output's pool.
    var buffers: Int?
    let context: StageContext
    let instance: StageInstance
    /// Inserted by the planner.
    var isInserted = false
    /// What it gives; nil for a sink. Known once negotiated.
    var output: MediaFormat?
    /// Known once negotiated.
    var demand = StageDemand()

    var id: String { request.id }
}

extension [PlannedStage] {
    var writtenPoolSizes: [Int: Int] {
        var sizes: [Int: Int] = [:]
        for (index, stage) in enumerated() { sizes[index] = stage.buffers }
        return sizes
    }
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
