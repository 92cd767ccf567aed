// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import FrameCore

/// Small chains that are changed in every state they can get into: branches taken away and attached, stages paused,
/// resumed and replaced. docs/design/009-running-graph.md says what is proved and what was counted.
@Suite struct ChangeModelTests {
    typealias Build = ModelCheckerTests
    /// States of a graph; one with more is explored with one change less.
    static let limit = Build.isSoak ? 400_000 : 12_000

    /// The graphs of a family by how many changes they were explored with.
    struct Tally: Equatable {
        var twice = 0
        var once = 0
        var unchecked = 0
        var states = 0
    }

    /// Whatever is changed, in whichever state: after the last change no thread is idle for ever that has something to
    /// do.
    @Test(arguments: SmallGraphs.changing) func neverStandsStillAfterAChange(family: SmallGraphs.Family) throws {
        var tally = Tally()
        for graph in family.sample(Build.isSanitized ? 4 : nil) {
            let plan = BudgetPlan(graph)
            try #require(plan.faults.isEmpty, "\(graph.brief)")
            var most = 2
            while most > 0 {
                do {
                    let report = try Self.run(GraphChanges(plan.graph, most: most))
                    #expect(report.stall == nil, "\(plan.graph.brief): \(report.stall ?? "")")
                    tally.states += report.states
                    break
                } catch ModelChecker.Failure.tooManyStates { most -= 1 }
            }
            switch most {
            case 2: tally.twice += 1
            case 1: tally.once += 1
            default: tally.unchecked += 1
            }
        }
        print("changes, \(family.name): \(tally)")
        guard !Build.isSanitized else { return }
        #expect(tally.twice + tally.once + tally.unchecked == family.count)
        if Build.isSoak { return #expect(tally.unchecked == 0) }
        #expect([tally.twice, tally.once, tally.unchecked] == Self.explored[family.name])
    }

    /// How many graphs of each family are explored with every two changes, with every single one, and not at all since
    /// they are too large: a graph that is left out is counted.
    private static let explored = [
        "row": [258, 21, 9], "fork": [39, 6, 3], "fork with a stage": [25, 15, 8],
        "fork behind a stage": [58, 29, 9], "writer behind a writer": [0, 1, 1], "diamond": [13, 6, 5],
        "nearest: diamond": [38, 15, 11], "newest: diamond": [0, 8, 8], "two sources": [3, 14, 7],
    ]

    /// Pools are large enough for the graph before and for the one after, not for both branches: while the one that was
    /// taken away ends an allocation may wait, and no longer.
    @Test func neverStandsStillWhereABranchTakesAnothersPlace() throws {
        var checked = 0
        for family in SmallGraphs.changing where family.name == "fork" || family.name == "fork with a stage" {
            let last = family.stages.count - 1
            for graph in family.sample(Build.isSanitized ? 4 : nil) {
                for (coming, going) in [(last, 1), (1, last)] {
                    var changes = GraphChanges(BudgetPlan(graph).graph, most: 1)
                    changes.kinds = []
                    changes.absent = [coming]
                    changes.swap = (coming, going)
                    let report = try Self.run(changes, limit: 100_000)
                    #expect(report.stall == nil, "\(graph.brief): \(report.stall ?? "")")
                    checked += 1
                }
            }
        }
        #expect(Build.isSanitized || checked == 2 * (48 + 48))
    }

    // MARK: Each promise is needed

    /// A promise that is broken, and a chain that stops for it.
    struct Mutation: CustomTestStringConvertible {
        var name: String
        var changes: GraphChanges
        var fault: GraphChanges.Fault?
        /// Buffers less than the plan says.
        var less = 0

        var testDescription: String { name }
    }

    static let mutations: [Mutation] = [
        Mutation(
            name: "a queue that was closed makes its producer wait",
            changes: changes(Build.tree([[(1, 0)], [(1, 0)]]), [.detach]), fault: .closedQueueWaits),
        Mutation(
            name: "one buffer less than what an attached branch may hold",
            changes: changes(Build.tree([[(1, 1)], [(1, 1)]]), [.attach], absent: [2]), less: 1),
        Mutation(
            name: "one buffer less where a branch takes another's place",
            changes: swap(Build.tree([[(1, 1)], [(1, 1)]])), less: 1),
        Mutation(
            name: "a branch that was taken away keeps what it kept",
            changes: swap(Build.tree([[(1, 1)], [(1, 1)]])), fault: .keepsWhatWasDetached),
        Mutation(
            name: "a replaced instance keeps what it kept",
            changes: changes(Build.tree([[(1, 1)], [(1, 0)]]), [.replace]), fault: .keepsWhatWasReplaced),
        Mutation(
            name: "a paused writer does not copy",
            changes: changes(writers, [.pause]), fault: .pausedWriterSharesOn),
        Mutation(
            name: "joins are not told of what a replaced stage had inside",
            changes: changes(Build.diamond(Build.node(.encoder, delay: 1), places: 1), [.replace]),
            fault: .replacesInSilence),
        Mutation(
            name: "joins are not told of what ends at a paused stage",
            changes: changes(Build.diamond(Build.node(.passThrough), places: 1), [.pause]), fault: .pausesInSilence),
        Mutation(
            name:
                "a join that matches by time waits for news of the item after those that ended at a stage that delays",
            changes: changes(lateLead, [.pause, .resume, .replace]),
            fault: .tellsOnlyWhatEnded),
        Mutation(
            name: "a join that several threads feed does not hear of what was turned away before it was there",
            changes: changes(Build.diamond(Build.node(.encoder, delay: 1), places: 1), [.detach, .attach]),
            fault: .opensInSilence),
    ]

    @Test(arguments: mutations) func standsStillWhereAPromiseIsBroken(mutation: Mutation) throws {
        var broken = mutation.changes
        broken.fault = mutation.fault
        #expect(try Self.run(broken, less: mutation.less, limit: 100_000).stall != nil)
        #expect(try Self.run(mutation.changes, limit: 100_000).stall == nil)
    }

    // MARK: Helpers

    private static func run(
        _ changes: GraphChanges, less: Int = 0, limit: Int = limit
    ) throws -> ModelChecker.Report {
        try ModelChecker(changes.graph, pools: changes.pools(less: less), changes: changes).run(limit: limit)
    }

    private static func changes(
        _ graph: BudgetGraph, _ kinds: Set<GraphChanges.Kind>, absent: [Int] = []
    ) -> GraphChanges {
        var changes = GraphChanges(BudgetPlan(graph).graph, most: 2)
        changes.kinds = kinds
        changes.absent = absent
        return changes
    }

    /// The second branch of a fork takes the first one's place.
    private static func swap(_ graph: BudgetGraph) -> GraphChanges {
        var changes = changes(graph, [], absent: [2])
        changes.most = 1
        changes.swap = (2, 1)
        return changes
    }

    /// source → encoder that delays → join, which it leads, source → join.
    private static var lateLead: BudgetGraph {
        var graph = Build.diamond(Build.node(.encoder, delay: 1), places: 1)
        graph.nodes[2].match = .nearest
        return graph
    }

    /// source → writer → writer → sink, source → sink that keeps.
    private static var writers: BudgetGraph {
        let nodes = [
            Build.node(.source), Build.node(.passThrough, modifies: true), Build.node(.passThrough, modifies: true),
            Build.node(.sink), Build.node(.sink, hold: 1),
        ]
        return BudgetGraph(
            nodes: nodes,
            edges: [
                .init(0, 1, capacity: 1), .init(1, 2, capacity: 1), .init(2, 3, capacity: 0), .init(0, 4, capacity: 1),
            ])
    }
}
