// SPDX-License-Identifier: Apache-2.0

@testable import FrameCore

/// Families of chains of at most 5 stages, enumerated: each has a shape and, for each of its stages and links, a list
/// of variants.
struct SmallGraphs {
    /// Says of a stage what kind it is and what it holds.
    struct Variant {
        var kind: BudgetGraph.Kind
        var hold = 0
        var delay = 0
        var floor = 0
        var modifies = false
        var isLive = false
        /// A source that gives no item of some times.
        var isSparse = false
        /// A join.
        var match = JoinMatch.exact
        var lead = 0
        /// Keeps the last picture of the inputs that do not lead.
        var keeps = false
    }

    struct Link {
        var capacity: Int
        var policy = DropPolicy.wait
    }

    // Where all links wait, few orders of steps need to be seen, so stages may be richer.
    private static let pausable = [Variant(kind: .source), Variant(kind: .source, floor: 1)]
    private static let sinks = [Variant(kind: .sink), Variant(kind: .sink, hold: 1), Variant(kind: .sink, hold: 2)]
    private static let stages = [
        Variant(kind: .passThrough), Variant(kind: .passThrough, hold: 1),
        Variant(kind: .passThrough, hold: 1, delay: 1),
        Variant(kind: .passThrough, hold: 2, delay: 2), Variant(kind: .passThrough, hold: 2, delay: 1),
        Variant(kind: .allocator),
        Variant(kind: .allocator, hold: 1), Variant(kind: .allocator, delay: 2),
        Variant(kind: .allocator, hold: 1, delay: 1),
        Variant(kind: .encoder), Variant(kind: .encoder, delay: 1), Variant(kind: .encoder, delay: 3),
        Variant(kind: .encoder, hold: 1),
    ]
    private static let joins = [
        Variant(kind: .sink), Variant(kind: .sink, hold: 1), Variant(kind: .allocator),
        Variant(kind: .allocator, hold: 1),
        Variant(kind: .passThrough), Variant(kind: .passThrough, hold: 1), Variant(kind: .encoder),
    ]
    private static let places = [Link(capacity: 1), Link(capacity: 2), Link(capacity: 3)]
    private static let oneOrInline = [Link(capacity: 0), Link(capacity: 1), Link(capacity: 2)]
    private static let inlineOrOne = inline + one

    // Where links drop or writers look whether they are alone, every order counts.
    private static let anySources = pausable + [Variant(kind: .source, isLive: true)]
    private static let smallSinks = Array(sinks.dropLast())
    private static let smallStages = [
        Variant(kind: .passThrough), Variant(kind: .passThrough, hold: 1), Variant(kind: .passThrough, modifies: true),
        Variant(kind: .passThrough, hold: 1, modifies: true), Variant(kind: .passThrough, hold: 1, delay: 1),
        Variant(kind: .allocator),
        Variant(kind: .allocator, hold: 1), Variant(kind: .allocator, delay: 1), Variant(kind: .encoder),
        Variant(kind: .encoder, delay: 1),
    ]
    private static let smallJoins = [Variant(kind: .sink), Variant(kind: .allocator), Variant(kind: .passThrough)]
    private static let anyQueues = [
        Link(capacity: 1), Link(capacity: 2), Link(capacity: 1, policy: .latest),
        Link(capacity: 1, policy: .dropOldest),
        Link(capacity: 2, policy: .dropNewest), Link(capacity: 3, policy: .dropOldest),
    ]
    private static let anyLinks = [Link(capacity: 0), Link(capacity: 1)] + anyQueues.dropFirst(2)
    private static let one = [Link(capacity: 1)]
    private static let inline = [Link(capacity: 0)]

    /// `stages` and `links` are the choices of each; `ends` are the links' producers and consumers.
    struct Family {
        var name: String
        var stages: [[Variant]]
        var ends: [(Int, Int)]
        var links: [[Link]]

        var count: Int { (stages.map(\.count) + links.map(\.count)).reduce(1, *) }

        subscript(number: Int) -> BudgetGraph {
            var rest = number
            func pick<Choice>(_ choices: [Choice]) -> Choice {
                defer { rest /= choices.count }
                return choices[rest % choices.count]
            }
            var isKeeping: [Bool] = []
            let nodes = stages.enumerated().map { index, choices in
                let variant = pick(choices)
                var node = BudgetGraph.Node("\(variant.kind)\(index)", variant.kind)
                node.hold = variant.hold
                node.delay = variant.delay
                node.floor = variant.floor
                node.modifies = variant.modifies
                node.isLive = variant.isLive
                node.isJoin = ends.filter { $0.1 == index }.count > 1
                node.match = variant.match
                node.lead = variant.lead
                isKeeping.append(variant.keeps || (variant.match == .newest && node.isJoin))
                return node
            }
            let edges = ends.enumerated().map { index, ends in
                var link = pick(links[index])
                let consumer = nodes[ends.1]
                let input = self.ends[..<index].count { $0.1 == ends.1 }
                let leads = !consumer.isJoin || consumer.match == .exact || input == consumer.lead
                if !leads, consumer.match == .newest { link = Link(capacity: 1, policy: .latest) }
                let units = nodes[ends.0].kind == .encoder
                let policy: DropPolicy = units && link.policy != .wait ? .dropToKeyframe : link.policy
                return BudgetGraph.Edge(
                    ends.0, ends.1, capacity: link.capacity, policy: policy, carriesUnits: units,
                    keeps: isKeeping[ends.1] && !leads && !units ? 1 : 0)
            }
            return BudgetGraph(nodes: nodes, edges: edges)
        }

        /// Sources of the chain of this number that give no item of some times.
        func sparse(_ graph: BudgetGraph) -> Set<Int> {
            Set(stages.indices.filter { stages[$0].contains { $0.isSparse } })
        }

        /// All of them, or about `most`, spread evenly over all choices.
        func sample(_ most: Int?) -> [BudgetGraph] {
            guard let most, most < count else { return (0..<count).map { self[$0] } }
            // A step that shares no factor with the count visits every choice of every stage and link.
            var step = Int(Double(count) * 0.618)
            while Self.commonDivisor(step, count) != 1 { step += 1 }
            return (0..<most).map { self[$0 * step % count] }
        }

        private static func commonDivisor(_ a: Int, _ b: Int) -> Int { b == 0 ? a : commonDivisor(b, a % b) }
    }

    /// Shapes in which every link waits and the source does.
    static let waiting: [Family] = [
        Family(
            name: "chain", stages: [pausable, stages, stages, sinks], ends: [(0, 1), (1, 2), (2, 3)],
            links: [oneOrInline, places, oneOrInline]),
        Family(
            name: "pools in a row",
            stages: [
                pausable, stages.filter { $0.kind == .allocator }, stages.filter { $0.kind == .allocator }, stages,
                sinks,
            ],
            ends: [(0, 1), (1, 2), (2, 3), (3, 4)], links: [oneOrInline, one, oneOrInline, one]),
        Family(
            name: "fork", stages: [pausable, sinks, sinks, sinks], ends: [(0, 1), (0, 2), (0, 3)],
            links: [places, places, places]),
        Family(
            name: "forks with stages", stages: [pausable, stages, stages, sinks, sinks],
            ends: [(0, 1), (0, 2), (1, 3), (2, 4)],
            links: [places, one, oneOrInline, one]),
        Family(
            name: "fork behind a stage", stages: [pausable, stages, stages, sinks, sinks],
            ends: [(0, 1), (1, 2), (1, 3), (2, 4)],
            links: [oneOrInline, places, one, oneOrInline]),
        Family(
            name: "diamond", stages: [pausable, stages, joins.filter(isSink)], ends: [(0, 1), (1, 2), (0, 2)],
            links: [places, places, places]),
        Family(
            name: "diamond with two stages", stages: [pausable, stages, stages, joins.filter(isSink)],
            ends: [(0, 1), (0, 2), (1, 3), (2, 3)], links: [one, places, one, places]),
        Family(
            name: "diamond in a row", stages: [pausable, stages, joins.filter { !isSink($0) }, stages, sinks],
            ends: [(0, 1), (1, 2), (0, 2), (2, 3), (3, 4)], links: [one, one, places, oneOrInline, one]),
        Family(
            name: "diamond behind a stage", stages: [pausable, stages, stages, joins.filter(isSink)],
            ends: [(0, 1), (1, 2), (2, 3), (1, 3)], links: [oneOrInline, places, one, places]),
        Family(
            name: "three-way join", stages: [pausable, stages, stages, joins.filter(isSink)],
            ends: [(0, 1), (0, 2), (1, 3), (2, 3), (0, 3)], links: [one, places, one, one, places]),
        Family(
            name: "three-way join of three stages", stages: [pausable, stages, stages, stages, joins.filter(isSink)],
            ends: [(0, 1), (0, 2), (0, 3), (1, 4), (2, 4), (3, 4)], links: [one, one, places, one, one, one]),
        Family(
            name: "two joins", stages: [pausable, stages, joins.filter { !isSink($0) }, stages, joins.filter(isSink)],
            ends: [(0, 1), (0, 2), (1, 2), (2, 3), (0, 4), (3, 4)], links: [one, places, one, one, places, one]),
        Family(
            name: "two joins side by side",
            stages: [pausable, stages, stages, joins.filter(isSink), joins.filter(isSink)],
            ends: [(0, 1), (0, 2), (1, 3), (2, 3), (1, 4), (2, 4)], links: [one, places, one, places, one, one]),
        Family(
            name: "two sources",
            stages: [pausable, pausable, smallStages.filter { !$0.modifies }, joins.filter(isSink)],
            ends: [(0, 2), (2, 3), (1, 3)], links: [inline + one, one, places]),
    ]

    /// Shapes in which links drop, sources are live and stages write.
    static let dropping: [Family] = [
        Family(name: "one stage", stages: [anySources, sinks], ends: [(0, 1)], links: [anyLinks]),
        Family(
            name: "chain of two", stages: [anySources, smallStages, smallSinks], ends: [(0, 1), (1, 2)],
            links: [anyLinks, anyLinks]),
        Family(
            name: "chain of three", stages: [anySources, smallStages, smallStages, smallSinks],
            ends: [(0, 1), (1, 2), (2, 3)],
            links: [inline, anyLinks, anyLinks]),
        Family(
            name: "fork", stages: [anySources, smallSinks, smallSinks], ends: [(0, 1), (0, 2)],
            links: [anyQueues, anyQueues]),
        Family(
            name: "fork with a stage", stages: [anySources, smallStages, smallSinks, smallSinks],
            ends: [(0, 1), (1, 2), (0, 3)],
            links: [anyQueues, inline, anyQueues]),
        Family(
            name: "fork behind a stage", stages: [anySources, smallStages, smallSinks, smallSinks],
            ends: [(0, 1), (1, 2), (1, 3)],
            links: [inline, anyQueues, anyQueues]),
        Family(
            name: "two writers",
            stages: [
                anySources, smallStages.filter(\.modifies), smallStages.filter(\.modifies), smallSinks, smallSinks,
            ],
            ends: [(0, 1), (0, 2), (1, 3), (2, 4)], links: [anyQueues, one, inline, inline]),
        Family(
            name: "a writer behind a writer",
            stages: [
                anySources, smallStages.filter(\.modifies), smallStages.filter(\.modifies), smallSinks, smallSinks,
            ],
            ends: [(0, 1), (1, 2), (2, 3), (1, 4)], links: [inline, anyQueues, inline, one]),
        Family(
            name: "diamond", stages: [anySources, smallStages, smallJoins.filter(isSink)],
            ends: [(0, 1), (1, 2), (0, 2)],
            links: [anyQueues, anyQueues, anyQueues]),
        Family(
            name: "diamond with two stages", stages: [anySources, smallStages, smallStages, smallJoins.filter(isSink)],
            ends: [(0, 1), (0, 2), (1, 3), (2, 3)], links: [anyQueues, one, anyQueues, one]),
        Family(
            name: "diamond in a row", stages: [anySources, smallStages, smallJoins.filter { !isSink($0) }, smallSinks],
            ends: [(0, 1), (1, 2), (0, 2), (2, 3)], links: [anyQueues, one, anyQueues, inline]),
        Family(
            name: "three-way join", stages: [anySources, smallStages, smallStages, smallJoins.filter(isSink)],
            ends: [(0, 1), (0, 2), (1, 3), (2, 3), (0, 3)], links: [one, anyQueues, one, one, anyQueues]),
        Family(
            name: "two joins",
            stages: [anySources, smallStages, smallJoins.filter { !isSink($0) }, smallJoins.filter(isSink)],
            ends: [(0, 1), (0, 2), (1, 2), (0, 3), (2, 3)], links: [one, anyQueues, one, anyQueues, one]),
        Family(
            name: "two sources", stages: [anySources, anySources, smallStages, smallJoins.filter(isSink)],
            ends: [(0, 2), (2, 3), (1, 3)], links: [inline, anyQueues, anyQueues]),
    ]

    /// Shapes with joins whose inputs match by time, or take the newest.
    static let matching: [Family] = [
        Family(
            name: "nearest: diamond", stages: [pausable, matchedStages, nearest.filter(isSink)],
            ends: [(0, 1), (1, 2), (0, 2)], links: [places, places, places]),
        Family(
            name: "nearest: diamond with drops", stages: [anySources, matchedStages, nearest.filter(isSink)],
            ends: [(0, 1), (1, 2), (0, 2)], links: [anyQueues, anyQueues, anyQueues]),
        Family(
            name: "nearest: diamond with two stages",
            stages: [pausable, matchedStages, matchedStages, nearest.filter(isSink)],
            ends: [(0, 1), (0, 2), (1, 3), (2, 3)], links: [one, places, one, places]),
        Family(
            name: "nearest: diamond in a row",
            stages: [pausable, matchedStages, nearest.filter { !isSink($0) }, smallSinks],
            ends: [(0, 1), (1, 2), (0, 2), (2, 3)], links: [places, one, places, inline]),
        Family(
            name: "nearest: three-way join", stages: [pausable, matchedStages, matchedStages, nearest.filter(isSink)],
            ends: [(0, 1), (0, 2), (1, 3), (2, 3), (0, 3)], links: [one, places, one, one, places]),
        Family(
            name: "nearest: two joins",
            stages: [pausable, matchedStages, nearest.filter { !isSink($0) }, nearest.filter(isSink)],
            ends: [(0, 1), (0, 2), (1, 2), (0, 3), (2, 3)], links: [one, places, one, places, one]),
        Family(
            name: "nearest: two sources", stages: [pausable, sparse, matchedStages, nearest.filter(isSink)],
            ends: [(0, 2), (2, 3), (1, 3)], links: [inline + one, one, places]),
        Family(
            name: "nearest: two sources, two joins",
            stages: [pausable, sparse, nearest.filter(isSink), nearest.filter(isSink)],
            ends: [(0, 2), (1, 2), (0, 3), (1, 3)], links: [places, places, places, places]),
        Family(
            name: "newest: diamond", stages: [anySources, smallStages, newest.filter(isSink)],
            ends: [(0, 1), (1, 2), (0, 2)], links: [anyQueues, one, anyQueues]),
        Family(
            name: "newest: diamond in a row",
            stages: [anySources, smallStages, newest.filter { !isSink($0) }, smallSinks],
            ends: [(0, 1), (1, 2), (0, 2), (2, 3)], links: [anyQueues, one, one, inline]),
        Family(
            name: "newest: two sources", stages: [anySources, anySources, smallStages, newest.filter(isSink)],
            ends: [(0, 2), (2, 3), (1, 3)], links: [inline, anyQueues, anyQueues]),
        Family(
            name: "newest: two joins",
            stages: [anySources, smallStages, newest.filter { !isSink($0) }, smallJoins.filter(isSink)],
            ends: [(0, 1), (0, 2), (1, 2), (0, 3), (2, 3)], links: [one, one, one, places, one]),
    ]

    /// Shapes with a queue that drops before a stage that delays, beside ways that miss items. They have few stages and
    /// long queues.
    static let missing: [Family] = [
        Family(
            name: "two ways", stages: [plain, delaying, forwarding, exactOrNearest],
            ends: [(0, 1), (1, 3), (0, 2), (2, 3)], links: [longQueues, one, one, oneOrTwo]),
        Family(
            name: "three ways", stages: [plain, delaying, forwarding, exactOrNearest],
            ends: [(0, 1), (1, 3), (0, 2), (2, 3), (0, 3)], links: [longQueues, one, oneOrLatest, one, oneOrTwo]),
    ]

    /// Shapes that are small enough to be changed twice in every state. Some forks have a consumer that runs inline beside
    /// a queue, as a branch leaves it that was attached.
    static let changing: [Family] = [
        Family(
            name: "row", stages: [anySources, changedStages, smallSinks], ends: [(0, 1), (1, 2)],
            links: [inlineOrOne, inlineOrOne]),
        Family(
            name: "fork", stages: [anySources, smallSinks, smallSinks], ends: [(0, 1), (0, 2)],
            links: [inlineOrOne, one + [Link(capacity: 1, policy: .latest)]]),
        Family(
            name: "fork with a stage", stages: [[Variant(kind: .source)], changedStages, smallSinks, smallSinks],
            ends: [(0, 1), (1, 2), (0, 3)], links: [one, inline, one]),
        Family(
            name: "fork behind a stage", stages: [[Variant(kind: .source)], changedStages, smallSinks, smallSinks],
            ends: [(0, 1), (1, 2), (1, 3)], links: [inline, inlineOrOne, one]),
        Family(
            name: "writer behind a writer",
            stages: [
                [Variant(kind: .source)], [Variant(kind: .passThrough, modifies: true)],
                [Variant(kind: .passThrough, modifies: true)], [Variant(kind: .sink)], smallSinks,
            ], ends: [(0, 1), (1, 2), (2, 3), (0, 4)], links: [one, one, inline, one]),
        Family(
            name: "diamond", stages: [[Variant(kind: .source)], changedStages, smallSinks],
            ends: [(0, 1), (1, 2), (0, 2)],
            links: [one, one, one]),
        Family(
            name: "nearest: diamond", stages: [[Variant(kind: .source)], matchedStages, nearest.filter(isSink)],
            ends: [(0, 1), (1, 2), (0, 2)], links: [one, one, one]),
        Family(
            name: "newest: diamond", stages: [[Variant(kind: .source)], fewStages, newest.filter(isSink)],
            ends: [(0, 1), (1, 2), (0, 2)], links: [one, one, one]),
        Family(
            name: "two sources",
            stages: [anySources, pausable, fewStages, [Variant(kind: .sink)]],
            ends: [(0, 2), (2, 3), (1, 3)], links: [inline, one, one]),
    ]

    private static let fewStages = [
        Variant(kind: .passThrough), Variant(kind: .passThrough, hold: 1), Variant(kind: .allocator),
        Variant(kind: .encoder),
    ]
    private static let changedStages =
        smallStages + [Variant(kind: .passThrough, hold: 2, delay: 1), Variant(kind: .encoder, delay: 2)]
    private static let sparse = [Variant(kind: .source, isSparse: true)]
    private static let matchedStages = [
        Variant(kind: .passThrough), Variant(kind: .passThrough, hold: 1), Variant(kind: .allocator),
        Variant(kind: .encoder), Variant(kind: .encoder, delay: 1), Variant(kind: .encoder, delay: 2),
        Variant(kind: .passThrough, hold: 1, delay: 1), Variant(kind: .allocator, delay: 1),
    ]
    private static let plain = [Variant(kind: .source)]
    private static let forwarding = [Variant(kind: .passThrough)]
    private static let delaying = [
        Variant(kind: .encoder, delay: 1), Variant(kind: .allocator, delay: 1),
        Variant(kind: .passThrough, hold: 1, delay: 1), Variant(kind: .encoder, delay: 2),
    ]
    private static let exactOrNearest = [
        Variant(kind: .sink), Variant(kind: .sink, match: .nearest), Variant(kind: .sink, match: .nearest, lead: 1),
    ]
    private static let longQueues = [
        Link(capacity: 2, policy: .dropNewest), Link(capacity: 3, policy: .dropNewest),
        Link(capacity: 2, policy: .dropOldest), Link(capacity: 3, policy: .dropOldest),
    ]
    private static let oneOrTwo = [Link(capacity: 1), Link(capacity: 2)]
    private static let oneOrLatest = [Link(capacity: 1), Link(capacity: 1, policy: .latest)]
    private static func joins(_ match: JoinMatch, _ keeps: [Bool]) -> [Variant] {
        [Variant(kind: .sink), Variant(kind: .sink, hold: 1), Variant(kind: .allocator), Variant(kind: .passThrough)]
            .flatMap { variant in
                keeps.flatMap { keeps in
                    [0, 1].map { lead in
                        var variant = variant
                        (variant.match, variant.lead, variant.keeps) = (match, lead, keeps)
                        return variant
                    }
                }
            }
    }
    private static let nearest = joins(.nearest, [false, true])
    private static let newest = joins(.newest, [true])

    private static func isSink(_ variant: Variant) -> Bool { variant.kind == .sink }
}

extension BudgetGraph {
    /// One line for people: `0:source live, 1:encoder d2, 2:sink J | 0-1->1, 0-2latest->2`.
    var brief: String {
        let stages = nodes.enumerated().map { index, node in
            "\(index):\(node.kind)" + (node.modifies ? " W" : "") + (node.hold > 0 ? " h\(node.hold)" : "")
                + (node.delay > 0 ? " d\(node.delay)" : "") + (node.floor > 0 ? " f\(node.floor)" : "")
                + (node.isLive ? " live" : "")
                + (node.isJoin ? " J\(node.match == .exact ? "" : " \(node.match) \(node.lead)")" : "")
        }
        let links = edges.map { edge in
            "\(edge.from)-\(edge.capacity)\(edge.policy == .wait ? "" : edge.policy.rawValue)\(edge.isFixed ? "!" : "")->\(edge.to)\(edge.keeps > 0 ? " k" : "")"
        }
        return stages.joined(separator: ", ") + " | " + links.joined(separator: ", ")
    }
}
