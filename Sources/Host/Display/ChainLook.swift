// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// One look at a running chain through its control server: counts since the start, and the present state.
///
/// Everything in it comes from a server and is bounded here: lists in length, numbers to finite values of 0 or more.
struct ChainLook {
    struct Stage {
        var id: String
        var use: String
        var kind: String
        var state: String
        /// Why it is recovering.
        var reason: String
        /// By name: `in`, `out`, `busy` (seconds), `busy.count`, `drop.REASON`, `busy.le.0.003`, …
        var counters: [String: Double]
        var held: Int
        var heldLimit: Int
        var oldestSeconds: Double
        var drops: Int
        /// 99 of 100 items since the stage started took at most this long; nil without an item.
        var p99Seconds: Double?
    }

    struct Link {
        var from: String
        var to: String
        var depth: Int
        var capacity: Int
        var counters: [String: Double]
        var drops: Int
        /// Items whose place a newer one took, as the link's policy says.
        var replaced: Int
    }

    struct Pool {
        var name: String
        var buffers: Int
        var free: Int
        var counters: [String: Double]
    }

    /// What the server's process uses of its machine.
    struct Process {
        var uptimeSeconds: Double
        var processorSeconds: Double
        var residentBytes: Int
    }

    /// Seconds of a monotonic clock: the server's own, where it reports it.
    var time: Double
    var name: String
    var state: String
    var isHealthy: Bool
    var problems: [String]
    var stages: [Stage]
    var links: [Link]
    var pools: [Pool]
    /// Nil where the server does not report it.
    var process: Process?

    /// More stages, links or pools than any chain has.
    static let most = 4000
    /// More reasons of drops, or bounds of histograms, than any stage has.
    private static let mostParts = 64

    /// - Parameters:
    ///   - status, metrics, figures: The answers of `/api/v1/…` with these names.
    ///   - now: Seconds of the client's clock, for a server that does not report its own.
    init(status: JSONNode, metrics: JSONNode, figures: JSONNode, now: Double) {
        let process = metrics["process"].flatMap(Process.init)
        self.process = process
        time = process?.uptimeSeconds ?? now
        name = Self.text(status["name"])
        state = Self.text(status["state"])
        isHealthy = status["healthy"]?.asBool ?? false
        problems = (status["problems"]?.asArray ?? []).prefix(100).compactMap {
            $0.asString.map { String($0.prefix(1000)) }
        }
        let states = Self.byID(status["stages"])
        let percentiles = Self.byID(figures["stages"])
        stages = (metrics["stages"]?.asArray ?? []).prefix(Self.most).map { node in
            let id = Self.text(node["id"])
            return Stage(
                node, state: states[id]?["state"], reason: states[id]?["reason"], p99Us: percentiles[id]?["p99Us"])
        }
        links = (metrics["links"]?.asArray ?? []).prefix(Self.most).map(Link.init)
        pools = (metrics["pools"]?.asArray ?? []).prefix(Self.most).map(Pool.init)
    }

    private static func byID(_ list: JSONNode?) -> [String: JSONNode] {
        var found: [String: JSONNode] = [:]
        for node in (list?.asArray ?? []).prefix(most) { found[text(node["id"])] = node }
        return found
    }

    // MARK: Bounds

    fileprivate static func text(_ node: JSONNode?) -> String { String((node?.asString ?? "").prefix(256)) }

    fileprivate static func count(_ node: JSONNode?) -> Int { min(max(node?.asInt ?? 0, 0), 1 << 53) }

    fileprivate static func number(_ node: JSONNode?) -> Double { min(max(node?.asDouble ?? 0, 0), 1e15) }

    /// `{ "queueFull": 3 }` as `drop.queueFull`; the second is their sum. Earlier versions had `replaced` among them.
    fileprivate static func drops(_ node: JSONNode?) -> (counters: [String: Double], sum: Int) {
        var counters: [String: Double] = [:]
        var sum = 0
        for member in (node?.asObject ?? []).prefix(mostParts) where member.key != "replaced" {
            let count = count(member.value)
            counters["drop.\(member.key)"] = Double(count)
            sum += count
        }
        return (counters, sum)
    }

    /// Count, sum and cumulative counts by upper bound.
    fileprivate static func histogram(_ node: JSONNode?, as name: String) -> [String: Double] {
        guard let node else { return [:] }
        var counters = [
            name: number(node["sumSeconds"]), "\(name).count": Double(count(node["count"])),
        ]
        for bucket in (node["buckets"]?.asArray ?? []).prefix(mostParts) {
            guard let bound = bucket["le"]?.asDouble else { continue }
            counters["\(name).le.\(bound)"] = Double(count(bucket["count"]))
        }
        return counters
    }
}

extension ChainLook.Stage {
    fileprivate init(_ node: JSONNode, state: JSONNode?, reason: JSONNode?, p99Us: JSONNode?) {
        let drops = ChainLook.drops(node["dropped"])
        id = ChainLook.text(node["id"])
        use = ChainLook.text(node["use"])
        kind = ChainLook.text(node["kind"])
        self.state = ChainLook.text(state)
        self.reason = ChainLook.text(reason)
        counters = drops.counters
        counters["in"] = Double(ChainLook.count(node["framesIn"]))
        counters["out"] = Double(ChainLook.count(node["framesOut"]))
        counters.merge(ChainLook.histogram(node["busy"], as: "busy")) { $1 }
        counters.merge(ChainLook.histogram(node["latency"], as: "latency")) { $1 }
        held = ChainLook.count(node["held"])
        heldLimit = ChainLook.count(node["heldLimit"])
        oldestSeconds = ChainLook.number(node["heldOldestSeconds"])
        self.drops = drops.sum
        p99Seconds = p99Us?.asDouble.map { min(max($0, 0), 1e12) / 1e6 }
    }
}

extension ChainLook.Link {
    fileprivate init(_ node: JSONNode) {
        let drops = ChainLook.drops(node["dropped"])
        from = ChainLook.text(node["from"])
        to = ChainLook.text(node["to"])
        depth = ChainLook.count(node["depth"])
        capacity = ChainLook.count(node["capacity"])
        counters = drops.counters
        counters["offered"] = Double(ChainLook.count(node["offered"]))
        self.drops = drops.sum
        replaced = ChainLook.count(node["replaced"] ?? node["dropped"]?["replaced"])
    }
}

extension ChainLook.Pool {
    fileprivate init(_ node: JSONNode) {
        name = ChainLook.text(node["name"])
        buffers = ChainLook.count(node["buffers"])
        free = ChainLook.count(node["free"])
        counters = ["starved": ChainLook.number(node["starvedSeconds"])]
    }
}

extension ChainLook.Process {
    fileprivate init?(_ node: JSONNode) {
        guard node["uptimeSeconds"]?.asDouble != nil else { return nil }
        uptimeSeconds = ChainLook.number(node["uptimeSeconds"])
        processorSeconds = ChainLook.number(node["processorSeconds"])
        residentBytes = ChainLook.count(node["residentBytes"])
    }
}
