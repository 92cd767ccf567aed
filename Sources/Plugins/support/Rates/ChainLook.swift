// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// One look at a running chain: counts since the start, and the present state.
///
/// It may come from a server: everything in it is ``Bounded``.
public struct ChainLook {
    struct Stage {
        var id: String
        /// The stage's number in its run, which no other stage ever has; nil of a server that does not tell it.
        var number: Int?
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
        /// Of the plan: whether it is a live source, and the format of its output, or of a sink's input.
        var isLive = false
        var format = ""

        /// Which stage it is: another one may get the same id, and its counters soon be higher.
        var identity: String { number.map { "\(use) \($0)" } ?? use }
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

    /// More reasons of drops, or bounds of histograms, than any stage has.
    private static let mostParts = 64

    /// - Parameters:
    ///   - status, metrics, figures: The answers of `/api/v1/…` with these names.
    ///   - now: Seconds of the client's clock, for a server that does not report its own.
    public init(status: JSONNode, metrics: JSONNode, figures: JSONNode, now: Double = 0) {
        let process = metrics["process"].flatMap(Process.init)
        self.process = process
        time = process?.uptimeSeconds ?? now
        name = Bounded.text(status["name"])
        state = Bounded.text(status["state"])
        isHealthy = status["healthy"]?.asBool ?? false
        problems = Bounded.sentences(status["problems"])
        let states = Self.byID(status["stages"])
        let percentiles = Self.byID(figures["stages"])
        stages = Bounded.list(metrics["stages"]).map { node in
            let id = Bounded.text(node["id"])
            return Stage(
                node, state: states[id]?["state"], reason: states[id]?["reason"], p99Us: percentiles[id]?["p99Us"])
        }
        links = Bounded.list(metrics["links"]).map(Link.init)
        pools = Bounded.list(metrics["pools"]).map(Pool.init)
    }

    /// Which stages and links there are. It changes when something is attached, detached or replaced.
    var structure: [String] { stages.map { "\($0.id) \($0.identity)" } + links.map { "\($0.from) \($0.to)" } }

    /// Adds what only the plan says. If the chain has changed meanwhile, what is missing stays empty.
    mutating func take(plan: JSONNode) {
        let planned = Self.byID(plan["stages"])
        let inputs = Dictionary(
            Bounded.list(plan["links"]).map { (Bounded.text($0["to"]), $0["format"]) },
            uniquingKeysWith: { first, _ in first })
        for index in stages.indices {
            guard let stage = planned[stages[index].id] else { continue }
            stages[index].isLive = stage["live"]?.asBool ?? false
            let output = stage["output"]?.asString == nil ? inputs[stages[index].id] ?? nil : stage["output"]
            stages[index].format = Bounded.text(output)
        }
    }

    /// Which stage each id names.
    var identities: [String: String] {
        Dictionary(stages.map { ($0.id, $0.identity) }, uniquingKeysWith: { $1 })
    }

    private static func byID(_ list: JSONNode?) -> [String: JSONNode] {
        Dictionary(Bounded.list(list).map { (Bounded.text($0["id"]), $0) }, uniquingKeysWith: { $1 })
    }

    // MARK: Counters

    /// `{ "queueFull": 3 }` as `drop.queueFull`; the second is their sum. Earlier versions had `replaced` among them.
    fileprivate static func drops(_ node: JSONNode?) -> (counters: [String: Double], sum: Int) {
        var counters: [String: Double] = [:]
        var sum = 0
        for member in (node?.asObject ?? []).prefix(mostParts) where member.key != "replaced" {
            let count = Bounded.count(member.value)
            counters["drop.\(member.key)"] = Double(count)
            sum += count
        }
        return (counters, sum)
    }

    /// Count, sum and cumulative counts by upper bound.
    fileprivate static func histogram(_ node: JSONNode?, as name: String) -> [String: Double] {
        guard let node else { return [:] }
        var counters = [
            name: Bounded.number(node["sumSeconds"]), "\(name).count": Double(Bounded.count(node["count"])),
        ]
        for bucket in (node["buckets"]?.asArray ?? []).prefix(mostParts) {
            guard let bound = bucket["le"]?.asDouble else { continue }
            counters["\(name).le.\(bound)"] = Double(Bounded.count(bucket["count"]))
        }
        return counters
    }
}

extension ChainLook.Stage {
    fileprivate init(_ node: JSONNode, state: JSONNode?, reason: JSONNode?, p99Us: JSONNode?) {
        let drops = ChainLook.drops(node["dropped"])
        id = Bounded.text(node["id"])
        number = node["number"]?.asInt
        use = Bounded.text(node["use"])
        kind = Bounded.text(node["kind"])
        self.state = Bounded.text(state)
        self.reason = Bounded.text(reason)
        counters = drops.counters
        counters["in"] = Double(Bounded.count(node["framesIn"]))
        counters["out"] = Double(Bounded.count(node["framesOut"]))
        counters.merge(ChainLook.histogram(node["busy"], as: "busy")) { $1 }
        counters.merge(ChainLook.histogram(node["latency"], as: "latency")) { $1 }
        held = Bounded.count(node["held"])
        heldLimit = Bounded.count(node["heldLimit"])
        oldestSeconds = Bounded.number(node["heldOldestSeconds"])
        self.drops = drops.sum
        p99Seconds = p99Us?.asDouble.map { min(max($0, 0), 1e12) / 1e6 }
    }
}

extension ChainLook.Link {
    fileprivate init(_ node: JSONNode) {
        let drops = ChainLook.drops(node["dropped"])
        from = Bounded.text(node["from"])
        to = Bounded.text(node["to"])
        depth = Bounded.count(node["depth"])
        capacity = Bounded.count(node["capacity"])
        counters = drops.counters
        counters["offered"] = Double(Bounded.count(node["offered"]))
        self.drops = drops.sum
        replaced = Bounded.count(node["replaced"] ?? node["dropped"]?["replaced"])
    }
}

extension ChainLook.Pool {
    fileprivate init(_ node: JSONNode) {
        name = Bounded.text(node["name"])
        buffers = Bounded.count(node["buffers"])
        free = Bounded.count(node["free"])
        counters = ["starved": Bounded.number(node["starvedSeconds"])]
    }
}

extension ChainLook.Process {
    fileprivate init?(_ node: JSONNode) {
        guard node["uptimeSeconds"]?.asDouble != nil else { return nil }
        uptimeSeconds = Bounded.number(node["uptimeSeconds"])
        processorSeconds = Bounded.number(node["processorSeconds"])
        residentBytes = Bounded.count(node["residentBytes"])
    }
}
