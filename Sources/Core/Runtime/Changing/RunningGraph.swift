// SPDX-License-Identifier: Apache-2.0

/// What runs at one moment: a plan and everything that was made for it.
///
/// It is a value whose parts are shared. The run has one at a time, and a change of structure replaces it; a reader
/// takes the present one and goes on with that. `@unchecked Sendable`: every thread may read its parts.
struct RunningGraph: @unchecked Sendable {
    /// A queue of the plan.
    struct Queued {
        var link: ChainPlan.Link
        var queue: ItemQueue
    }

    /// The request of the present plan.
    var request: ChainRequest
    var planned: PlannedChain
    /// In the order of `plan.stages`.
    var runners: [StageRunner] = []
    var queues: [Queued] = []
    var pools: [FramePool] = []
    var slabs: [Slab] = []
    var stageThreads: [StageThread] = []
    /// Branches that were removed and have not ended yet.
    var leaving: [LeavingBranch] = []
    /// The account of removed stages and links.
    var departed = Ledger()
    /// The number of the next stage that is made.
    var nextNumber = 0

    var plan: ChainPlan { planned.plan }

    /// The stages of the plan, and those that leave.
    var everyRunner: [StageRunner] { runners + leaving.flatMap(\.runners) }
    var everyQueue: [ItemQueue] { queues.map(\.queue) + leaving.flatMap(\.queues) }
    var everyStageThread: [StageThread] { stageThreads + leaving.flatMap(\.stageThreads) }

    /// The stage with this number; nil when it has gone.
    func runner(number: Int) -> StageRunner? {
        // Before the first change a stage's number is its index.
        if runners.indices.contains(number), runners[number].number == number { return runners[number] }
        return everyRunner.first { $0.number == number }
    }

    func runner(id: String) -> StageRunner? { runners.first { $0.id == id } }
}
