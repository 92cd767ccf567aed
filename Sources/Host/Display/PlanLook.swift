// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// A plan as `check --json` and `/api/v1/plan` give it. Every drawing of a chain is made from it, whoever made the
/// plan.
///
/// Everything in it may come from a server and is bounded here.
struct PlanLook {
    struct Stage {
        var id: String
        var use: String
        var kind: String
        var thread: Int
        var isInserted: Bool
        var isLive: Bool
        /// Nil for a sink.
        var output: String?
        /// The memory of its access units.
        var slab: (bytes: Int, units: Int)?
        var pools: [Pool]
    }

    struct Pool {
        var isForCopies: Bool
        var min: Int
        var need: Int
        var buffers: Int
        var bytes: Int
    }

    struct Link {
        var from: String
        var to: String
        var queue: Int
        var whenFull: String
        var isAutomatic: Bool
        var format: String
    }

    /// More stages or links than any chain has.
    static let most = 4000

    /// In the order of the plan.
    let ids: [String]
    private(set) var stages: [String: Stage] = [:]
    let links: [Link]
    let threads: Int
    /// Milliseconds; nil when not known.
    let usualLatencyMs: Double?
    let warnings: [String]

    /// - Throws: ``FrameHostError`` where it has more stages or links than any chain.
    init(_ plan: JSONNode, from place: String) throws {
        func text(_ node: JSONNode?) -> String { String((node?.asString ?? "").prefix(256)) }
        func count(_ node: JSONNode?) -> Int { Swift.min(max(node?.asInt ?? 0, 0), 1 << 53) }
        let (stages, links) = (plan["stages"]?.asArray ?? [], plan["links"]?.asArray ?? [])
        guard !stages.isEmpty, stages.count <= Self.most, links.count <= Self.most else {
            throw FrameHostError(
                .unavailable, place: place,
                what: "gives a plan of \(stages.count) stages and \(links.count) links, which no chain can have",
                remedy: "Check the address and the port.")
        }
        var ids: [String] = []
        for stage in stages {
            let id = text(stage["id"])
            if self.stages[id] == nil { ids.append(id) }
            self.stages[id] = Stage(
                id: id, use: text(stage["use"]), kind: text(stage["kind"]), thread: count(stage["thread"]),
                isInserted: stage["inserted"]?.asBool ?? false, isLive: stage["live"]?.asBool ?? false,
                output: stage["output"]?.asString.map { String($0.prefix(256)) }, slab: nil, pools: [])
        }
        self.ids = ids
        for pool in (plan["pools"]?.asArray ?? []).prefix(Self.most) {
            self.stages[text(pool["stage"])]?.pools.append(
                Pool(
                    isForCopies: pool["copies"]?.asBool ?? false, min: count(pool["min"]), need: count(pool["need"]),
                    buffers: count(pool["buffers"]), bytes: count(pool["bytes"])))
        }
        for slab in (plan["slabs"]?.asArray ?? []).prefix(Self.most) {
            self.stages[text(slab["stage"])]?.slab = (count(slab["bytes"]), count(slab["units"]))
        }
        self.links = links.map {
            Link(
                from: text($0["from"]), to: text($0["to"]), queue: count($0["queue"]), whenFull: text($0["whenFull"]),
                isAutomatic: $0["automatic"]?.asBool ?? false, format: text($0["format"]))
        }
        threads = count(plan["threads"])
        usualLatencyMs = plan["usualLatencyMs"]?.asDouble
        warnings = (plan["warnings"]?.asArray ?? []).prefix(100).compactMap {
            $0.asString.map { String($0.prefix(1000)) }
        }
    }

    /// What happens when the link's queue is full. On the thread of a live source nothing waits.
    func wordsWhenFull(_ link: Link) -> String {
        let thread = stages[link.from]?.thread
        let isLive = stages.values.contains { $0.kind == "source" && $0.isLive && $0.thread == thread }
        return link.whenFull == DropPolicy.wait.rawValue && isLive ? Self.drops : link.whenFull
    }

    /// What a full queue does to items that cannot wait for room.
    static let drops = "drops when full"
}
