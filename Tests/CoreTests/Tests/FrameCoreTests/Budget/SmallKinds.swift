// SPDX-License-Identifier: Apache-2.0

@testable import FrameCore

/// Small chains with motion or sound, for the model checker.
struct SmallKinds {
    var name: String
    var graph: BudgetGraph
    /// How many later items a filter needs before a picture.
    var ahead: [Int: Int] = [:]
    /// Sources of rates of their own.
    var skips: [Int: Int] = [:]

    var brief: String { "\(name), ahead \(ahead.sorted { $0.key < $1.key }.map(\.value)): \(graph.brief)" }

    private static func node(
        _ kind: BudgetGraph.Kind, delay: Int = 0, hold: Int = 0, modifies: Bool = false, isJoin: Bool = false
    ) -> BudgetGraph.Node {
        var node = BudgetGraph.Node("\(kind)", kind)
        (node.delay, node.hold, node.modifies, node.isJoin) = (delay, hold, modifies, isJoin)
        return node
    }

    /// - Parameter ends: Producer, consumer, places.
    private init(_ name: String, _ nodes: [BudgetGraph.Node], _ ends: [(Int, Int, Int)], ahead: [Int: Int] = [:]) {
        self.name = name
        graph = BudgetGraph(
            nodes: nodes,
            edges: ends.map {
                BudgetGraph.Edge($0.0, $0.1, capacity: $0.2, carriesUnits: nodes[$0.0].kind == .encoder)
            })
        self.ahead = ahead
        // Between two pictures there are up to three items of motion, and the other way round.
        for node in nodes.indices where graph.incoming(node).isEmpty { skips[node] = node == 0 ? 2 : 1 }
    }

    init(_ kinds: KindsGraph, seed: UInt64) {
        name = "seed \(seed)"
        graph = kinds.graph
        for node in kinds.filters { ahead[node] = Int((seed / 7 + UInt64(node)) % 3) }
        for node in graph.nodes.indices where graph.incoming(node).isEmpty {
            skips[node] = graph.nodes[node].kind == .source ? 0 : 1
        }
    }

    private static let source = node(.source)
    private static let motion = node(.encoder)
    private static let sink = node(.sink)
    private static let filter = node(.passThrough)

    static let all: [SmallKinds] = {
        var all: [SmallKinds] = []
        for (first, second) in [(0, 0), (1, 0), (0, 1), (2, 0), (0, 2), (1, 1)] {
            let ahead = [2: first, 3: second]
            for places in 1...2 {
                all.append(
                    SmallKinds(
                        "two filters", [source, motion, filter, filter, sink, sink],
                        [(0, 2, 1), (1, 2, 1), (0, 3, places), (1, 3, 1), (2, 4, 0), (3, 5, 0)], ahead: ahead))
                all.append(
                    SmallKinds(
                        "filters in a row", [source, motion, filter, filter, sink],
                        [(0, 2, 1), (1, 2, 1), (2, 3, places), (1, 3, 1), (3, 4, 0)], ahead: ahead))
            }
            all.append(
                SmallKinds(
                    "filters in a row, join", [source, motion, filter, filter, node(.sink, isJoin: true)],
                    [(0, 2, 1), (1, 2, 1), (2, 3, 1), (1, 3, 1), (3, 4, 1), (0, 4, 1)], ahead: ahead))
        }
        for ahead in 0...2 {
            all.append(
                SmallKinds(
                    "filter and join", [source, motion, filter, node(.sink, isJoin: true)],
                    [(0, 2, 1), (1, 2, 1), (2, 3, 1), (0, 3, 1)], ahead: [2: ahead]))
            for delay in 0...1 {
                let encoder = node(.encoder, delay: delay)
                all.append(
                    SmallKinds(
                        "filter and sink", [source, motion, filter, sink, encoder, sink],
                        [(0, 2, 1), (1, 2, 1), (2, 3, 0), (0, 4, 1), (4, 5, 1), (1, 5, 1)], ahead: [2: ahead]))
                all.append(
                    SmallKinds(
                        "sink behind a filter", [source, motion, filter, encoder, sink],
                        [(0, 2, 1), (1, 2, 1), (2, 3, 0), (1, 4, 1), (3, 4, 1)], ahead: [2: ahead]))
                all.append(
                    SmallKinds(
                        "motion of the pictures", [source, encoder, filter, sink],
                        [(0, 1, 1), (0, 2, 2), (1, 2, 1), (2, 3, 0)], ahead: [2: ahead]))
                all.append(
                    SmallKinds(
                        "motion that is late", [source, motion, encoder, filter, sink, node(.encoder), sink],
                        [(1, 2, 1), (0, 3, 1), (2, 3, 1), (3, 4, 0), (0, 5, 1), (5, 6, 1), (1, 6, 1)],
                        ahead: [3: ahead]))
            }
            all.append(
                SmallKinds(
                    "filter and writer",
                    [source, motion, filter, sink, node(.passThrough, modifies: true), node(.encoder), sink],
                    [(0, 2, 1), (1, 2, 1), (2, 3, 0), (0, 4, 1), (4, 5, 0), (5, 6, 1), (1, 6, 1)], ahead: [2: ahead]))
        }
        for (first, second) in [(0, 0), (1, 0), (0, 2), (2, 1)] {
            let encoders = [node(.encoder, delay: first), node(.encoder, delay: second)]
            all.append(
                SmallKinds(
                    "two encoders", [source, motion] + encoders + [sink, sink],
                    [(0, 2, 1), (0, 3, 1), (2, 4, 1), (1, 4, 1), (1, 5, 1), (3, 5, 1)]))
        }
        for places in 1...2 {
            all.append(
                SmallKinds(
                    "one encoder", [source, motion, node(.encoder), sink, sink],
                    [(0, 2, 0), (2, 3, 1), (1, 3, 1), (1, 4, places), (2, 4, 1)]))
        }
        return all
    }()
}
