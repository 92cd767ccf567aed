// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

@testable import FrameCore

/// The budget rules against every state of small chains. docs/design/001-budgets.md says what is proved and what was
/// counted.
///
/// A normal run takes an even sample of each family of chains, about two minutes in debug on one core.
/// `FRAMEHOST_SOAK=1` takes many more and larger ones: half an hour in release, hours in debug. Under a sanitizer
/// (`FRAMEHOST_SANITIZED`) a few are enough: nothing here has threads.
@Suite struct ModelCheckerTests {
    static let isSoak = ProcessInfo.processInfo.environment["FRAMEHOST_SOAK"] != nil
    static let isSanitized = ProcessInfo.processInfo.environment["FRAMEHOST_SANITIZED"] != nil
    /// Graphs of a family, random graphs, and states of a graph.
    static let sample = isSoak ? 1_000 : isSanitized ? 4 : 70
    static let randomGraphs = isSoak ? 20_000 : isSanitized ? 30 : 600
    static let limit = isSoak ? 10_000 : isSanitized ? 1_000 : 3_000
    /// At `need` there are more states than at `min`.
    private static let limitWithJoins = isSoak ? 10_000 : isSanitized ? 1_000 : 12_000

    // MARK: The checker itself

    /// `budget-model/mc.py`: trees of stages that keep any frames they saw.
    @Test func findsThatTreesStopBelowOneMoreThanAllTheyHold() throws {
        let trees: [[[(places: Int, hold: Int)]]] = [
            [[(1, 1)], [(1, 0)]], [[(1, 1)], [(1, 1)]], [[(2, 1)], [(1, 2)]], [[(1, 1), (1, 1)]],
            [[(1, 0), (1, 1)], [(1, 1)]],
            [[(1, 2)], [(2, 0)]], [[(1, 1), (1, 0)], [(1, 1)]],
        ]
        for tree in trees {
            let graph = Self.tree(tree)
            let held = tree.joined().reduce(0) { $0 + $1.hold }
            #expect(try Self.stalls(graph, [held + 1]) == false, "\(graph.brief)")
            #expect(try Self.stalls(graph, [held]), "\(graph.brief)")
        }
    }

    /// `budget-model/dj.py` and `order.py`: a fork that offers to every branch with room needs a queue as long as the
    /// delay, not longer.
    @Test(arguments: [1, 2, 4, 6]) func findsThatAJoinNeedsAQueueAsLongAsTheDelay(delay: Int) throws {
        for places in max(1, delay - 1)...delay + 1 {
            let graph = Self.diamond(Self.node(.encoder, delay: delay), places: places)
            #expect(try Self.stalls(graph, [delay + 6]) == (places < delay), "\(graph.brief)")
            guard places >= delay else { continue }
            #expect(try Self.stalls(graph, [delay + 1]) == false, "\(graph.brief)")
            #expect(try Self.stalls(graph, [delay]), "\(graph.brief)")
        }
    }

    /// `budget-model/mc2.py`: copies from a pool of their own.
    @Test func findsHowManyCopiesAWriterNeeds() throws {
        for (sharerHolds, copies) in [(1, 2), (0, 0)] {
            var graph = Self.tree([[(1, 0), (1, 1)], [(1, sharerHolds)]])
            graph.nodes[1].modifies = true
            let pool = ModelChecker.Pool(allocator: 0, isCopyPool: false, size: 2 + sharerHolds)
            for size in 0...2 {
                let copyPool = ModelChecker.Pool(allocator: 1, isCopyPool: true, size: size)
                let report = try ModelChecker(graph, pools: [pool, copyPool]).run()
                #expect((report.stall != nil) == (size < copies), "\(graph.brief), \(size) copies")
            }
        }
    }

    @Test func callsAGraphThatIsTooLargeUnchecked() throws {
        let checker = try ModelChecker(BudgetPlan(Self.tree([[(2, 1)], [(2, 1)]])))
        #expect(throws: ModelChecker.Failure.tooManyStates(100)) { try checker.run(limit: 100, findsWaits: true) }
    }

    /// Where every link waits the checker follows one order of steps only: it must see the same stalls as with all
    /// orders.
    @Test func seesTheSameStallsInOneOrderOfSteps() throws {
        var compared = 0
        for family in SmallGraphs.waiting {
            for graph in family.sample(Self.sample / 6 + 1) {
                let plan = BudgetPlan(graph)
                for less in 0...1 {
                    let checker = try ModelChecker(plan, sizes: plan.pools.map { $0.min - less })
                    guard let all = try? checker.run(limit: Self.limit, findsWaits: true) else { continue }
                    #expect(
                        try (checker.run(limit: Self.limit).stall != nil) == (all.stall != nil),
                        "\(graph.brief) − \(less)")
                    compared += 1
                }
            }
        }
        #expect(compared > 14)
    }

    // MARK: The rules

    /// Nothing the plan accepts ever stops, nothing waits at `need`, and what it refuses stops.
    @Test(arguments: SmallGraphs.waiting) func holdsWhereEveryLinkWaits(family: SmallGraphs.Family) {
        let (verdict, unchecked) = Self.verdict(of: family.sample(Self.sample))
        Self.report(family.name, verdict, unchecked)
        #expect(verdict.faults.isEmpty, "\(verdict.faults.joined(separator: "\n"))")
        #expect(verdict.stallingGraphs == verdict.refusedGraphs)
        #expect(verdict.stallingQueues == verdict.raisedQueues)
        #expect(verdict.stallingSizes * 100 >= verdict.refusedSizes * 97, "\(verdict.cautious.joined(separator: "\n"))")
        Self.expectEnough(verdict, of: family, Self.leastAtNeed.waiting)
    }

    @Test(arguments: SmallGraphs.dropping) func holdsWhereLinksDropAndStagesWrite(family: SmallGraphs.Family) {
        let (verdict, unchecked) = Self.verdict(of: family.sample(Self.sample))
        Self.report(family.name, verdict, unchecked)
        #expect(verdict.faults.isEmpty, "\(verdict.faults.joined(separator: "\n"))")
        // Before a stage that delays, a queue that drops its newest items is refused in any case.
        let living = verdict.cautious.filter { $0.hasPrefix("refused") }
        #expect(living.allSatisfy { $0.contains("dropNewest") }, "\(living.joined(separator: "\n"))")
        // Safe, not exact: see "Where it is cautious" in the design page.
        #expect(verdict.stallingSizes * 100 >= verdict.refusedSizes * 70, "\(verdict.cautious.joined(separator: "\n"))")
        Self.expectEnough(verdict, of: family, Self.leastAtNeed.dropping)
    }

    /// Joins whose inputs match by time or take the newest, with stages that drop and sources of different rates.
    @Test(arguments: SmallGraphs.matching) func holdsWhereJoinsMatchByTime(family: SmallGraphs.Family) {
        let (verdict, unchecked) = Self.verdict(of: family.sample(Self.sample), sparse: family.sparse)
        Self.report(family.name, verdict, unchecked)
        #expect(verdict.faults.isEmpty, "\(verdict.faults.joined(separator: "\n"))")
        #expect(verdict.stallingGraphs * 100 >= verdict.refusedGraphs * 70)
        Self.expectEnough(verdict, of: family, Self.leastAtNeed.matching)
    }

    /// A queue that drops before a stage that delays, beside ways that miss items. Where it drops its newest items, the
    /// chain is refused, though not each of them stops.
    @Test(arguments: SmallGraphs.missing) func holdsWhereLinksDropBeforeADelay(family: SmallGraphs.Family) throws {
        let limit = Self.isSoak ? 300_000 : 50_000
        var (accepted, refused, stalling, unchecked) = (0, 0, 0, 0)
        for graph in family.sample(nil) {
            let plan = BudgetPlan(graph)
            #expect(plan.faults.isEmpty == (graph.edges[0].policy == .dropOldest), "\(graph.brief)")
            let sizes = plan.faults.isEmpty ? plan.pools.map(\.min) : plan.pools.map(\.need)
            guard let report = try? ModelChecker(plan, sizes: sizes).run(limit: limit) else {
                unchecked += 1
                continue
            }
            if plan.faults.isEmpty {
                accepted += 1
                #expect(report.stall == nil, "\(plan.graph.brief)")
            } else {
                refused += 1
                stalling += report.stall == nil ? 0 : 1
            }
        }
        print("\(family.name): \(accepted) accepted; \(stalling) of \(refused) refused stop; too large: \(unchecked)")
        #expect(accepted >= 15 && stalling >= 12)
    }

    /// Larger ones, with a join before the queue, a long way beside a short one, and a stage behind the delay.
    @Test(
        arguments: [
            (
                [.source, .passThrough, .passThrough, .encoder, .sink],
                [(0, 1, 1), (1, 2, 1), (0, 2, 1), (2, 3, 2), (3, 4, 1), (1, 4, 1)], 3
            ),
            ([.source, .encoder, .passThrough, .sink], [(0, 1, 2), (1, 3, 1), (0, 2, 1), (2, 3, 1), (0, 3, 4)], 0),
            ([.source, .encoder, .passThrough, .sink], [(0, 1, 2), (1, 2, 1), (2, 3, 1), (0, 3, 2)], 0),
        ] as [([BudgetGraph.Kind], [(Int, Int, Int)], Int)])
    func refusesAQueueThatDropsItsNewestBeforeADelay(
        kinds: [BudgetGraph.Kind], ends: [(Int, Int, Int)], dropping: Int
    ) throws {
        for match in [JoinMatch.exact, .nearest] {
            var nodes = kinds.map { Self.node($0, delay: $0 == .encoder ? 1 : 0) }
            for node in nodes.indices where ends.count(where: { $0.1 == node }) > 1 { nodes[node].isJoin = true }
            nodes[nodes.count - 1].match = match
            var graph = BudgetGraph(nodes: nodes, edges: ends.map { Self.link(nodes, $0.0, $0.1, $0.2) })
            if dropping == 3 { graph.edges[0].policy = .latest }
            graph.edges[dropping].policy = .dropNewest
            #expect(!BudgetPlan(graph).faults.isEmpty, "\(graph.brief)")
            graph.edges[dropping].policy = .dropOldest
            let plan = BudgetPlan(graph)
            #expect(plan.faults.isEmpty, "\(graph.brief)")
            #expect(
                try ModelChecker(plan, sizes: plan.pools.map(\.min)).run(limit: 2_000_000).stall == nil,
                "\(plan.graph.brief)")
        }
    }

    @Test func holdsForRandomSmallGraphs() {
        let seeds = UInt64(0)..<UInt64(Self.randomGraphs)
        let (verdict, unchecked) = Self.verdict(of: seeds.map { GraphGenerator.make(seed: $0, .small) })
        Self.report("random", verdict, unchecked)
        #expect(verdict.faults.isEmpty, "\(verdict.faults.joined(separator: "\n"))")
        #expect(
            verdict.stallingGraphs * 100 >= verdict.refusedGraphs * 85, "\(verdict.cautious.joined(separator: "\n"))")
        #expect(verdict.stallingSizes * 100 >= verdict.refusedSizes * 95, "\(verdict.cautious.joined(separator: "\n"))")
        #expect(unchecked < seeds.count / 2)
    }

    // MARK: Each term of the rules is needed

    /// One rule lowered by one, and a chain that the lowered rules accept and that stops.
    struct Mutation: CustomTestStringConvertible {
        var name: String
        var lower: @Sendable (inout BudgetRules) -> Void
        var graph: BudgetGraph

        var testDescription: String { "\(name): \(graph.brief)" }
    }

    static let mutations: [Mutation] = [
        Mutation(name: "base", lower: { $0.base = -1 }, graph: tree([[(1, 0)]])),
        Mutation(name: "base, allocator", lower: { $0.base = -1 }, graph: row(node(.allocator))),
        Mutation(name: "floor", lower: { $0.floor = -1 }, graph: tree([[(1, 0)]], floor: 2)),
        Mutation(name: "hold", lower: { $0.hold = -1 }, graph: tree([[(1, 1)], [(1, 1)]])),
        Mutation(name: "hold, allocator", lower: { $0.hold = -1 }, graph: row(node(.allocator, hold: 1), sinkHold: 1)),
        Mutation(name: "hold, delay", lower: { $0.hold = -1 }, graph: row(node(.passThrough, hold: 2, delay: 2))),
        Mutation(name: "capacity", lower: { $0.capacity = -1 }, graph: diamond(node(.encoder, delay: 2), places: 1)),
        Mutation(
            name: "capacity of three", lower: { $0.capacity = -1 },
            graph: threeWay(node(.encoder, delay: 3), node(.allocator), places: 1)),
        Mutation(
            name: "capacity of two forks and joins", lower: { $0.capacity = -1 },
            graph: crossed(node(.encoder, delay: 4), places: 1)),
        Mutation(
            name: "drops before a delay", lower: { $0.gaps = -1 },
            graph: diamond(node(.encoder, delay: 1), places: 1, policy: .latest)),
        Mutation(
            name: "drops before a delay, longer queue", lower: { $0.gaps = -1 },
            graph: diamond(node(.encoder, delay: 2), places: 2, policy: .dropOldest, dropPlaces: 2)),
        Mutation(
            name: "drops the newest before a delay, another way misses", lower: { $0.newest = -1 },
            graph: twoWays(node(.encoder, delay: 1), match: .exact)),
        Mutation(
            name: "drops the newest before a delay, the leading way misses", lower: { $0.newest = -1 },
            graph: twoWays(node(.allocator, delay: 1), match: .nearest)),
        Mutation(name: "window", lower: { $0.window = -1 }, graph: missed(delay: 1)),
        Mutation(name: "window, longer queue", lower: { $0.window = -1 }, graph: missed(delay: 2)),
    ]

    @Test(arguments: mutations) func stopsWhenATermIsLowered(mutation: Mutation) throws {
        var rules = BudgetRules.standard
        mutation.lower(&rules)
        let lowered = BudgetPlan(mutation.graph, rules: rules)
        #expect(lowered.faults.isEmpty)
        #expect(try ModelChecker(lowered, sizes: lowered.pools.map(\.min)).run().stall != nil, "\(lowered.graph.brief)")
        let plan = BudgetPlan(mutation.graph)
        guard plan.faults.isEmpty else { return }
        #expect(try ModelChecker(plan, sizes: plan.pools.map(\.min)).run().stall == nil, "\(plan.graph.brief)")
    }

    @Test func waitsWhenNeedIsLowered() throws {
        var rules = BudgetRules.standard
        rules.need = -1
        for graph in [
            Self.tree([[(2, 1)]]), Self.row(Self.node(.allocator, hold: 1)),
            Self.row(Self.node(.passThrough, hold: 1, delay: 1)),
        ] {
            #expect(try ModelChecker(BudgetPlan(graph)).run(findsWaits: true).waited.isEmpty, "\(graph.brief)")
            #expect(
                try ModelChecker(BudgetPlan(graph, rules: rules)).run(findsWaits: true).waited.isEmpty == false,
                "\(graph.brief)")
        }
    }

    /// Two pools that wait for each other, by two joins.
    @Test func waitsNowhereWherePoolsWaitForEachOther() throws {
        let nodes = [
            Self.node(.source), Self.node(.allocator), Self.node(.encoder, delay: 3), Self.node(.encoder, delay: 3),
            Self.node(.sink, isJoin: true), Self.node(.sink, isJoin: true),
        ]
        let ends = [(0, 1), (0, 4), (0, 2), (1, 3), (1, 5), (3, 4), (2, 5)]
        let plan = BudgetPlan(BudgetGraph(nodes: nodes, edges: ends.map { Self.link(nodes, $0.0, $0.1, 1) }))
        let report = try ModelChecker(plan).run(findsWaits: true)
        #expect(report.stall == nil && report.waited.isEmpty)
    }

    @Test func refusesWhatNoQueueCanMend() {
        let plan = BudgetPlan(Self.diamond(Self.node(.encoder, delay: 1), places: 1, policy: .latest))
        #expect(plan.faults == [.dropsBeforeDelay(edge: 0, fork: 0, join: 2)])
        // A queue that drops its oldest items is made long enough.
        var graph = Self.twoWays(Self.node(.encoder, delay: 1), match: .exact)
        #expect(BudgetPlan(graph).faults == [.dropsBeforeDelay(edge: 0, fork: 0, join: 3)])
        graph.edges[0].policy = .dropOldest
        #expect(BudgetPlan(graph).faults.isEmpty)
    }

    @Test func refusesAFixedQueueThatIsTooShortAndRaisesOthers() {
        var graph = Self.diamond(Self.node(.encoder, delay: 4), places: 2)
        #expect(BudgetPlan(graph).raised == [.init(edge: 2, from: 2, to: 4, join: 2, fork: 0)])
        graph.edges[2].isFixed = true
        #expect(BudgetPlan(graph).faults == [.queueTooShort(edge: 2, capacity: 2, required: 4, fork: 0, join: 2)])
    }

    @Test func refusesAPoolBelowMin() {
        let graph = Self.tree([[(1, 1)], [(1, 1)]])
        #expect(
            BudgetPlan(graph, sizes: [0: 2]).faults == [.poolTooSmall(allocator: 0, isCopyPool: false, size: 2, min: 3)]
        )
        #expect(BudgetPlan(graph, sizes: [0: 3]).faults.isEmpty)
    }

    // MARK: Helpers

    /// Of each family with joins, how many graphs of a normal run are small enough to see every order of steps at `need`.
    private static let leastAtNeed = (
        waiting: [
            "diamond": 61, "diamond with two stages": 20, "diamond in a row": 11, "diamond behind a stage": 38,
            "three-way join": 19, "three-way join of three stages": 5, "two joins": 15, "two joins side by side": 7,
            "two sources": 51,
        ],
        dropping: [
            "diamond": 50, "diamond in a row": 45, "diamond with two stages": 21, "three-way join": 21,
            "two joins": 31, "two sources": 50,
        ],
        matching: [
            "nearest: diamond": 62, "nearest: diamond with drops": 32, "nearest: diamond in a row": 66,
            "nearest: diamond with two stages": 19, "nearest: three-way join": 21, "nearest: two joins": 19,
            "nearest: two sources": 31, "nearest: two sources, two joins": 7, "newest: diamond": 26,
            "newest: diamond in a row": 32, "newest: two sources": 17, "newest: two joins": 23,
        ]
    )

    /// With joins only `need` is checked, so it has to be enough of it.
    private static func expectEnough(
        _ verdict: BudgetVerdict, of family: SmallGraphs.Family, _ least: [String: Int],
        _ location: SourceLocation = #_sourceLocation
    ) {
        guard !isSanitized else { return }
        if let least = least[family.name] {
            #expect(verdict.checkedNeeds >= least, sourceLocation: location)
        } else {
            #expect(verdict.checks * 3 >= min(sample, family.count), sourceLocation: location)
        }
    }

    private static func verdict(
        of graphs: [BudgetGraph], sparse: (BudgetGraph) -> Set<Int> = { _ in [] }
    ) -> (verdict: BudgetVerdict, unchecked: Int) {
        var verdict = BudgetVerdict()
        var unchecked = 0
        for graph in graphs {
            do {
                verdict += try BudgetVerdict(
                    graph, limit: graph.nodes.contains(where: \.isJoin) ? limitWithJoins : limit, findsNeed: isSoak,
                    skips: Dictionary(uniqueKeysWithValues: sparse(graph).map { ($0, 1) }))
            } catch {
                unchecked += 1
            }
        }
        return (verdict, unchecked)
    }

    private static func report(_ name: String, _ verdict: BudgetVerdict, _ unchecked: Int) {
        print("\(name): \(verdict.text); too large: \(unchecked)")
    }

    private static func stalls(_ graph: BudgetGraph, _ sizes: [Int]) throws -> Bool {
        let pools = sizes.enumerated().map { ModelChecker.Pool(allocator: $0, isCopyPool: false, size: $1) }
        return try ModelChecker(graph, pools: pools).run().stall != nil
    }

    static func node(
        _ kind: BudgetGraph.Kind, hold: Int = 0, delay: Int = 0, floor: Int = 0, modifies: Bool = false,
        isJoin: Bool = false,
        isLive: Bool = false
    ) -> BudgetGraph.Node {
        var node = BudgetGraph.Node("\(kind)", kind)
        node.hold = hold
        node.delay = delay
        node.floor = floor
        node.modifies = modifies
        node.isJoin = isJoin
        node.isLive = isLive
        return node
    }

    private static func link(
        _ nodes: [BudgetGraph.Node], _ from: Int, _ to: Int, _ capacity: Int, _ policy: DropPolicy = .wait
    ) -> BudgetGraph.Edge {
        .init(from, to, capacity: capacity, policy: policy, carriesUnits: nodes[from].kind == .encoder)
    }

    /// A source and branches of stages with a queue before each.
    static func tree(_ branches: [[(places: Int, hold: Int)]], floor: Int = 0) -> BudgetGraph {
        var graph = BudgetGraph(nodes: [node(.source, floor: floor)], edges: [])
        for branch in branches {
            var from = 0
            for (index, stage) in branch.enumerated() {
                graph.nodes.append(node(index == branch.count - 1 ? .sink : .passThrough, hold: stage.hold))
                graph.edges.append(.init(from, graph.nodes.count - 1, capacity: stage.places))
                from = graph.nodes.count - 1
            }
        }
        return graph
    }

    static func row(_ middle: BudgetGraph.Node, floor: Int = 0, sinkHold: Int = 0) -> BudgetGraph {
        let nodes = [node(.source, floor: floor), middle, node(.sink, hold: sinkHold)]
        return BudgetGraph(nodes: nodes, edges: [link(nodes, 0, 1, 1), link(nodes, 1, 2, 1)])
    }

    /// source → slow → join, source → join.
    static func diamond(
        _ slow: BudgetGraph.Node, places: Int, policy: DropPolicy = .wait, dropPlaces: Int = 1, joinHold: Int = 0,
        isLive: Bool = false
    ) -> BudgetGraph {
        let nodes = [node(.source, isLive: isLive), slow, node(.sink, hold: joinHold, isJoin: true)]
        return BudgetGraph(
            nodes: nodes,
            edges: [link(nodes, 0, 1, dropPlaces, policy), link(nodes, 1, 2, 1), link(nodes, 0, 2, places)])
    }

    /// source → join, which this input leads; source → allocator that delays → filter that may drop → join.
    static func missed(delay: Int) -> BudgetGraph {
        var join = node(.sink, isJoin: true)
        join.match = .nearest
        let nodes = [node(.source), node(.allocator, delay: delay), node(.passThrough), join]
        return BudgetGraph(
            nodes: nodes,
            edges: [link(nodes, 0, 1, 1), link(nodes, 0, 3, 1), link(nodes, 1, 2, 1), link(nodes, 2, 3, 1)])
    }

    /// source → slow → join, whose queue drops the newest, and source → filter → join, which leads where one does.
    static func twoWays(_ slow: BudgetGraph.Node, match: JoinMatch) -> BudgetGraph {
        var join = node(.sink, isJoin: true)
        (join.match, join.lead) = (match, match == .exact ? 0 : 1)
        let nodes = [node(.source), slow, node(.passThrough), join]
        return BudgetGraph(
            nodes: nodes,
            edges: [
                link(nodes, 0, 1, 2, .dropNewest), link(nodes, 1, 3, 1), link(nodes, 0, 2, 1), link(nodes, 2, 3, 1),
            ])
    }

    /// source → a → join, source → b → join, source → join.
    static func threeWay(_ a: BudgetGraph.Node, _ b: BudgetGraph.Node, places: Int) -> BudgetGraph {
        let nodes = [node(.source), a, b, node(.sink, isJoin: true)]
        return BudgetGraph(
            nodes: nodes,
            edges: [
                link(nodes, 0, 1, 1), link(nodes, 0, 2, 1), link(nodes, 1, 3, 1), link(nodes, 2, 3, places),
                link(nodes, 0, 3, places),
            ])
    }

    /// Two forks behind a source, and two joins that each take from both; `slow` lies before one of four.
    static func crossed(_ slow: BudgetGraph.Node, places: Int) -> BudgetGraph {
        let nodes = [
            node(.source), node(.passThrough), node(.passThrough), slow, node(.sink, isJoin: true),
            node(.sink, isJoin: true),
        ]
        return BudgetGraph(
            nodes: nodes,
            edges: [
                link(nodes, 0, 1, 3), link(nodes, 0, 2, 3), link(nodes, 1, 3, 1), link(nodes, 3, 4, 1),
                link(nodes, 2, 4, places),
                link(nodes, 1, 5, places), link(nodes, 2, 5, places),
            ])
    }
}

extension SmallGraphs.Family: CustomTestStringConvertible {
    var testDescription: String { name }
}
