// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// What a running chain does at this moment: rates, losses, and words for what is wrong.
///
/// The control server computes it (``LiveRates``) and gives it as JSON. Who reads it draws it, and computes nothing.
public struct LiveFigures {
    /// 99 of 100 items take no longer.
    public enum Percentile: Equatable {
        /// Seconds, within 6 %.
        case exact(Double)
        /// An upper bound, seconds: the histogram's buckets say no more of the last seconds.
        case atMost(Double)
        case above(Double)
    }

    public struct Hurt: Equatable {
        public enum Level: String { case bad, warn, rest }
        public var level: Level
        /// For a table or a node of a graph.
        public var word: String
        public var sentence: String
    }

    public struct Stage {
        public var id: String
        public var use: String
        public var kind: String
        public var state: String
        /// Items a second: input of a sink, output of other stages.
        public var rate: Double?
        /// Seconds that an item waits before the stage in its queue, or that a live source waits for its device or
        /// clock; nil where nothing waits.
        public var wait: Double?
        /// Share of the time that the stage itself works, without its waits and what runs inline behind it.
        public var busy: Double?
        /// The mean time of work for an item, and from its capture until the stage has handed it on, seconds.
        public var busySeconds: Double?
        public var latencySeconds: Double?
        public var p99: Percentile?
        public var queues: [(depth: Int, capacity: Int)]
        public var held: Int
        public var heldLimit: Int
        public var oldestSeconds: Double
        /// Drops a second, including those of its queues.
        public var dropRate: Double?
        public var drops: Int
        /// Items lost in the last ten seconds, and in all, without drops that somebody asked for.
        public var lost: Int
        public var lostInAll: Int
        /// Items before it whose place a newer one took, as its links' policy says.
        public var replaced: Int
        /// The format of its output, or of a sink's input; empty when not known.
        public var format: String
        public var hurts: [Hurt]
    }

    public struct Link {
        public var from: String
        public var to: String
        public var depth: Int
        public var capacity: Int
        public var rate: Double?
        public var drops: Int
        /// Items whose place a newer one took, as the link's policy says.
        public var replaced: Int
        /// Items lost in the last ten seconds, without drops that somebody asked for.
        public var lost: Int
        public var isFull: Bool
    }

    public struct Pool {
        public var name: String
        public var buffers: Int
        public var free: Int
        /// Share of the time in which a thread waited for a buffer.
        public var starved: Double?
    }

    public struct Latency {
        public var sink: String
        public var seconds: Double
        public var p99: Percentile?
    }

    public internal(set) var name = ""
    public internal(set) var state = ""
    public internal(set) var isHealthy = false
    public internal(set) var problems: [String] = []
    public internal(set) var stages: [Stage] = []
    public internal(set) var links: [Link] = []
    public internal(set) var pools: [Pool] = []
    /// Items a second of all sources.
    public internal(set) var captured: Double?
    /// The latency from capture to the slowest sink.
    public internal(set) var latency: Latency?
    /// Share of one processor core.
    public internal(set) var processor: Double?
    public internal(set) var residentBytes: Int?
    public internal(set) var uptimeSeconds: Double?
}

// MARK: - As JSON

/// A member of an object.
private typealias Member = (key: String, value: JSONNode)

private func number(_ value: Double?) -> JSONNode { value.map { .number($0) } ?? .null }

extension LiveFigures {
    /// As `framehost top --json` prints it; times in seconds, shares from 0 to 1, null for what is not known yet.
    public var json: JSONNode {
        .object([
            ("name", .string(name)), ("state", .string(state)), ("healthy", .bool(isHealthy)),
            ("problems", .array(problems.map { .string($0) })), ("captured", number(captured)),
            ("latency", latency?.json ?? .null),
            ("uptimeSeconds", number(uptimeSeconds)), ("processor", number(processor)),
            ("residentBytes", residentBytes.map { .number($0) } ?? .null),
            ("stages", .array(stages.map(\.json))), ("links", .array(links.map(\.json))),
            ("pools", .array(pools.map(\.json))),
        ])
    }

    /// - Parameter json: Of a server: each list and number is bounded here. Nil where it is no such object.
    public init?(_ json: JSONNode) {
        guard json["stages"]?.asArray != nil, json["state"]?.asString != nil else { return nil }
        name = Bounded.text(json["name"])
        state = Bounded.text(json["state"])
        isHealthy = json["healthy"]?.asBool ?? false
        problems = Bounded.sentences(json["problems"])
        captured = Bounded.known(json["captured"])
        latency = json["latency"].flatMap(Latency.init)
        uptimeSeconds = Bounded.known(json["uptimeSeconds"])
        processor = Bounded.known(json["processor"])
        residentBytes = json["residentBytes"]?.asInt.map { _ in Bounded.count(json["residentBytes"]) }
        stages = Bounded.list(json["stages"]).map(Stage.init)
        links = Bounded.list(json["links"]).map(Link.init)
        pools = Bounded.list(json["pools"]).map(Pool.init)
    }
}

extension LiveFigures.Percentile {
    fileprivate static func members(_ percentile: Self?) -> [Member] {
        let (seconds, isBound, above): (Double?, Bool, Double?) =
            switch percentile {
            case .exact(let seconds): (seconds, false, nil)
            case .atMost(let seconds): (seconds, true, nil)
            case .above(let seconds): (nil, false, seconds)
            case nil: (nil, false, nil)
            }
        return [
            ("p99Seconds", number(seconds)), ("p99IsBound", .bool(isBound)), ("p99AboveSeconds", number(above)),
        ]
    }

    fileprivate init?(_ json: JSONNode) {
        if let seconds = Bounded.known(json["p99Seconds"]) {
            self = json["p99IsBound"]?.asBool == true ? .atMost(seconds) : .exact(seconds)
        } else if let above = Bounded.known(json["p99AboveSeconds"]) {
            self = .above(above)
        } else {
            return nil
        }
    }
}

extension LiveFigures.Latency {
    fileprivate var json: JSONNode {
        .object([("sink", .string(sink)), ("seconds", .number(seconds))] + LiveFigures.Percentile.members(p99))
    }

    fileprivate init?(_ json: JSONNode) {
        guard let seconds = Bounded.known(json["seconds"]) else { return nil }
        self.init(sink: Bounded.text(json["sink"]), seconds: seconds, p99: LiveFigures.Percentile(json))
    }
}

extension LiveFigures.Hurt {
    fileprivate var json: JSONNode {
        ["level": .string(level.rawValue), "word": .string(word), "text": .string(sentence)]
    }

    fileprivate init(_ json: JSONNode) {
        level = Level(rawValue: Bounded.text(json["level"])) ?? .warn
        word = Bounded.text(json["word"])
        sentence = Bounded.sentence(json["text"])
    }
}

extension LiveFigures.Stage {
    fileprivate var json: JSONNode {
        let queues = queues.map { queue -> JSONNode in
            ["depth": .number(queue.depth), "capacity": .number(queue.capacity)]
        }
        let before: [Member] = [
            ("id", .string(id)), ("use", .string(use)), ("kind", .string(kind)), ("state", .string(state)),
            ("rate", number(rate)), ("waitSeconds", number(wait)), ("busy", number(busy)),
            ("busySeconds", number(busySeconds)), ("latencySeconds", number(latencySeconds)),
        ]
        return .object(
            before + LiveFigures.Percentile.members(p99) + [
                ("queues", .array(queues)),
                ("held", .number(held)), ("heldLimit", .number(heldLimit)),
                ("heldOldestSeconds", .number(oldestSeconds)), ("dropRate", number(dropRate)),
                ("drops", .number(drops)), ("lost", .number(lost)), ("lostInAll", .number(lostInAll)),
                ("replaced", .number(replaced)), ("format", .string(format)),
                ("problems", .array(hurts.filter { $0.level != .rest }.map { .string($0.sentence) })),
                ("notes", .array(hurts.map(\.json))),
            ])
    }

    fileprivate init(_ json: JSONNode) {
        id = Bounded.text(json["id"])
        use = Bounded.text(json["use"])
        kind = Bounded.text(json["kind"])
        state = Bounded.text(json["state"])
        rate = Bounded.known(json["rate"])
        wait = Bounded.known(json["waitSeconds"])
        busy = Bounded.known(json["busy"])
        busySeconds = Bounded.known(json["busySeconds"])
        latencySeconds = Bounded.known(json["latencySeconds"])
        p99 = LiveFigures.Percentile(json)
        queues = Bounded.list(json["queues"]).map { (Bounded.count($0["depth"]), Bounded.count($0["capacity"])) }
        held = Bounded.count(json["held"])
        heldLimit = Bounded.count(json["heldLimit"])
        oldestSeconds = Bounded.number(json["heldOldestSeconds"])
        dropRate = Bounded.known(json["dropRate"])
        drops = Bounded.count(json["drops"])
        lost = Bounded.count(json["lost"])
        lostInAll = Bounded.count(json["lostInAll"])
        replaced = Bounded.count(json["replaced"])
        format = Bounded.text(json["format"])
        hurts = Bounded.list(json["notes"]).prefix(100).map(LiveFigures.Hurt.init)
    }
}

extension LiveFigures.Link {
    fileprivate var json: JSONNode {
        [
            "from": .string(from), "to": .string(to), "depth": .number(depth), "capacity": .number(capacity),
            "rate": number(rate), "drops": .number(drops), "replaced": .number(replaced), "lost": .number(lost),
            "full": .bool(isFull),
        ]
    }

    fileprivate init(_ json: JSONNode) {
        from = Bounded.text(json["from"])
        to = Bounded.text(json["to"])
        depth = Bounded.count(json["depth"])
        capacity = Bounded.count(json["capacity"])
        rate = Bounded.known(json["rate"])
        drops = Bounded.count(json["drops"])
        replaced = Bounded.count(json["replaced"])
        lost = Bounded.count(json["lost"])
        isFull = json["full"]?.asBool ?? false
    }
}

extension LiveFigures.Pool {
    fileprivate var json: JSONNode {
        [
            "name": .string(name), "buffers": .number(buffers), "free": .number(free), "starved": number(starved),
        ]
    }

    fileprivate init(_ json: JSONNode) {
        name = Bounded.text(json["name"])
        buffers = Bounded.count(json["buffers"])
        free = Bounded.count(json["free"])
        starved = Bounded.known(json["starved"])
    }
}
