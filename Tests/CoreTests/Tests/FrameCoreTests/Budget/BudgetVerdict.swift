// SPDX-License-Identifier: Apache-2.0

@testable import FrameCore

/// What the model checker finds out about one chain and its plan.
struct BudgetVerdict {
    /// Sentences that must not be.
    var faults: [String] = []
    var states = 0
    var checks = 0
    /// Refused sizes of pools (one below `min`), and how many of them stop.
    var refusedSizes = 0
    var stallingSizes = 0
    /// Refused graphs, and how many of them stop with as many buffers as they like.
    var refusedGraphs = 0
    var stallingGraphs = 0
    /// Queues the planner raised, and how many of the chains stop with one place less.
    var raisedQueues = 0
    var stallingQueues = 0
    /// Graphs small enough to see every order of steps at `need`.
    var checkedNeeds = 0
    /// Pools, and how many of them wait for a buffer with one below `need`.
    var needs = 0
    var waitingNeeds = 0
    /// Which sizes and graphs are refused although they live.
    var cautious: [String] = []
    /// As ``StateLayout`` takes them.
    private var skips: [Int: Int] = [:]
    private var ahead: [Int: Int] = [:]

    static func += (sum: inout BudgetVerdict, other: BudgetVerdict) {
        sum.faults += other.faults
        sum.states += other.states
        sum.checks += other.checks
        sum.refusedSizes += other.refusedSizes
        sum.stallingSizes += other.stallingSizes
        sum.refusedGraphs += other.refusedGraphs
        sum.stallingGraphs += other.stallingGraphs
        sum.raisedQueues += other.raisedQueues
        sum.stallingQueues += other.stallingQueues
        sum.checkedNeeds += other.checkedNeeds
        sum.needs += other.needs
        sum.waitingNeeds += other.waitingNeeds
        sum.cautious += other.cautious
    }

    var text: String {
        """
        \(checks) checks, \(states) states, \(checkedNeeds) at need; stall at min − 1: \(stallingSizes) of \(refusedSizes); refused graphs that stall: \
        \(stallingGraphs) of \(refusedGraphs); raised queues that stall one shorter: \(stallingQueues) of \(raisedQueues); \
        wait at need − 1: \(waitingNeeds) of \(needs)
        """
    }

    /// Checks a graph with its plan: at `need` it lives and nothing waits. Without joins it also lives at `min`, and
    /// below `min` it stops.
    ///
    /// - Throws: ``ModelChecker/Failure`` when the graph is too large for `limit` states.
    init(
        _ graph: BudgetGraph, limit: Int, findsNeed: Bool = false, skips: [Int: Int] = [:], ahead: [Int: Int] = [:]
    ) throws {
        self.skips = skips
        self.ahead = ahead
        let plan = BudgetPlan(graph)
        let needs = plan.pools.map(\.need)
        if !plan.faults.isEmpty {
            refusedGraphs = 1
            if try run(plan, graph, needs, limit).stall != nil {
                stallingGraphs = 1
            } else {
                cautious.append("refused: \(graph.brief): \(plan.faults)")
            }
            return
        }
        if graph.nodes.contains(where: \.isJoin) {
            try checkNeed(plan, needs, limit)
        } else {
            try checkMin(plan, limit)
            try? checkNeed(plan, needs, limit)
        }
        for raise in plan.raised {
            var shorter = plan.graph
            shorter.edges[raise.edge].capacity -= 1
            raisedQueues += 1
            if try run(plan, shorter, needs, limit).stall != nil {
                stallingQueues += 1
            } else {
                cautious.append("queue \(raise.from) → \(raise.to) on edge \(raise.edge): \(plan.graph.brief)")
            }
        }
        guard findsNeed else { return }
        for pool in needs.indices {
            var sizes = needs
            sizes[pool] -= 1
            self.needs += 1
            if try run(plan, plan.graph, sizes, limit, findsWaits: true).waited.contains(pool) { waitingNeeds += 1 }
        }
    }

    init() {}

    /// At `need` it lives, and nothing waits for a buffer.
    private mutating func checkNeed(_ plan: BudgetPlan, _ needs: [Int], _ limit: Int) throws {
        let report: ModelChecker.Report
        do {
            report = try run(plan, plan.graph, needs, limit, findsWaits: true)
            checkedNeeds = 1
        } catch {
            // Every order of steps is too much. To see whether it stops, fewer may do.
            report = try run(plan, plan.graph, needs, limit)
        }
        if let stall = report.stall { faults.append("at need \(needs): \(plan.graph.brief): \(stall)") }
        if !report.waited.isEmpty { faults.append("waits at need \(needs): \(plan.graph.brief): \(report.waited)") }
    }

    /// Without joins, it lives at `min` and at sizes up to `need`, and below `min` it stops.
    private mutating func checkMin(_ plan: BudgetPlan, _ limit: Int) throws {
        let mins = plan.pools.map(\.min)
        if let stall = try run(plan, plan.graph, mins, limit).stall {
            faults.append("at min \(mins): \(plan.graph.brief): \(stall)")
        }
        // Anything in between is accepted too, and more buffers are not always safer: more may be dropped.
        for sizes in Self.between(mins, plan.pools.map(\.need)) {
            if let stall = try? run(plan, plan.graph, sizes, limit).stall {
                faults.append("at \(sizes): \(plan.graph.brief): \(stall)")
            }
        }
        for pool in mins.indices where !plan.pools[pool].isCopyPool {
            var sizes = mins
            sizes[pool] -= 1
            refusedSizes += 1
            if try run(plan, plan.graph, sizes, limit).stall != nil {
                stallingSizes += 1
            } else {
                cautious.append("min \(mins), pool \(pool): \(plan.graph.brief)")
            }
        }
    }

    /// One more than `min` for each pool alone, half way for all, and each pool alone at `need`.
    private static func between(_ mins: [Int], _ needs: [Int]) -> [[Int]] {
        var found: [[Int]] = [zip(mins, needs).map { ($0 + $1 + 1) / 2 }]
        for pool in mins.indices {
            for size in [mins[pool] + 1, needs[pool]] where size <= needs[pool] {
                var sizes = mins
                sizes[pool] = size
                if sizes != mins, !found.contains(sizes) { found.append(sizes) }
            }
        }
        return found.filter { $0 != mins && $0 != needs }
    }

    private mutating func run(
        _ plan: BudgetPlan, _ graph: BudgetGraph, _ sizes: [Int], _ limit: Int, findsWaits: Bool = false
    ) throws -> ModelChecker.Report {
        let pools = plan.pools.enumerated().map {
            ModelChecker.Pool(allocator: $1.allocator, isCopyPool: $1.isCopyPool, size: sizes[$0])
        }
        let report = try ModelChecker(graph, pools: pools, skips: skips, ahead: ahead).run(
            limit: limit, findsWaits: findsWaits)
        states += report.states
        checks += 1
        return report
    }
}
