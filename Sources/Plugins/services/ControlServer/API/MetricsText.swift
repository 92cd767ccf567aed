// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// Figures in Prometheus' text format, version 0.0.4: one family after the other, each sample once.
struct MetricsText {
    static let type = "text/plain; version=0.0.4; charset=utf-8"
    /// The most figures of a stage's own. A stage with thousands would make every scrape expensive.
    static let mostFigures = 200

    private struct Sample {
        /// After the family's name: `_bucket`, `_sum`, `_count`; else empty.
        var suffix: String
        var labels: [(String, String)]
        var value: String
    }

    private struct Family {
        var type: String
        var help: String
        var samples: [Sample] = []
    }

    private var names: [String] = []
    private var families: [String: Family] = [:]

    // MARK: What is told

    mutating func add(metrics: JSONNode, status: ChainStatus, chain: String, process: ProcessFigures) {
        add("chain_info", "gauge", "The chain that runs.", [("chain", chain)], "1")
        for state in ChainStatus.State.allCases {
            add(
                "chain_state", "gauge", "1 for the chain's current state.", [("state", state.rawValue)],
                state == status.state ? "1" : "0")
        }
        add("chain_healthy", "gauge", "1 while the chain is healthy.", [], status.isHealthy ? "1" : "0")
        add(
            "chain_problems", "gauge", "Number of reasons why the chain is not healthy.", [],
            "\(status.problems.count)")
        for stage in metrics["stages"]?.asArray ?? [] { add(stage: stage, status) }
        for link in metrics["links"]?.asArray ?? [] { add(link: link) }
        for pool in metrics["pools"]?.asArray ?? [] { add(pool: pool) }
        add(process)
    }

    mutating func add(viewers: ControlAPI.ViewerCount) {
        let help = "Viewers of the control server's streams."
        add("control_viewers", "gauge", help, [("stream", "events")], "\(viewers.events)")
        add("control_viewers", "gauge", help, [("stream", "pictures")], "\(viewers.pictures)")
        add("control_viewers", "gauge", help, [("stream", "previews")], "\(viewers.previews)")
    }

    private mutating func add(stage: JSONNode, _ status: ChainStatus) {
        let id = stage["id"]?.asString ?? ""
        let labels = [("stage", id)]
        add(
            "stage_info", "gauge", "A stage: its type and kind.",
            labels + [("use", stage["use"]?.asString ?? ""), ("kind", stage["kind"]?.asString ?? "")], "1")
        if let state = status.stages.first(where: { $0.id == id })?.state {
            for each in ChainStatus.State.allCases {
                add(
                    "stage_state", "gauge", "1 for the stage's current state.",
                    labels + [("state", each.rawValue)], each == state ? "1" : "0")
            }
        }
        func counter(_ name: String, _ help: String, _ key: String) -> (String, String, String, JSONNode?) {
            (name, "counter", help, stage[key])
        }
        func gauge(_ name: String, _ help: String, _ key: String) -> (String, String, String, JSONNode?) {
            (name, "gauge", help, stage[key])
        }
        for (name, type, help, value) in [
            counter("stage_frames_in_total", "Frames and access units that the stage has received.", "framesIn"),
            counter("stage_frames_out_total", "Frames and access units that the stage has given.", "framesOut"),
            counter(
                "stage_frames_delivered_total", "Frames and access units that were delivered at the stage.", "delivered"
            ),
            counter(
                "stage_pixel_copies_total", "Pictures copied for the stage because other stages held them too.",
                "pixelCopies"),
            gauge("stage_buffers_held", "Pool buffers that the stage holds.", "held"),
            gauge("stage_buffers_limit", "Pool buffers that the stage's budget lets it hold.", "heldLimit"),
            gauge(
                "stage_buffers_oldest_seconds", "How long the stage has held its oldest pool buffer.",
                "heldOldestSeconds"),
        ] {
            add(name, type, help, labels, value)
        }
        for member in stage["dropped"]?.asObject ?? [] {
            add(
                "stage_frames_dropped_total", "counter",
                "Frames and access units that were dropped at the stage, by reason.",
                labels + [("reason", member.key)], member.value)
        }
        add(histogram: stage["busy"], "stage_busy_seconds", "Time that the stage worked on each item.", labels)
        add(
            histogram: stage["latency"], "stage_latency_seconds",
            "Time from an item's capture until the stage had finished it.", labels)
        var left = Self.mostFigures
        add(figures: stage["figures"], "", labels, depth: 0, &left)
    }

    /// Adds the numbers and booleans among a stage's own figures, named by their path. Lists are left out.
    private mutating func add(
        figures: JSONNode?, _ way: String, _ labels: [(String, String)], depth: Int, _ left: inout Int
    ) {
        guard depth < 5, let members = figures?.asObject else { return }
        for member in members where left > 0 {
            let name = way.isEmpty ? member.key : "\(way).\(member.key)"
            switch member.value.value {
            case .number, .bool:
                left -= 1
                add(
                    "stage_figure", "gauge", "A figure of the stage's own; its name has the unit.",
                    labels + [("figure", name)], member.value)
            case .object: add(figures: member.value, name, labels, depth: depth + 1, &left)
            default: break
            }
        }
    }

    private mutating func add(link: JSONNode) {
        let labels = [("from", link["from"]?.asString ?? ""), ("to", link["to"]?.asString ?? "")]
        add("link_queue_depth", "gauge", "Items that wait in the link's queue.", labels, link["depth"])
        add("link_queue_capacity", "gauge", "Items that fit into the link's queue.", labels, link["capacity"])
        add("link_items_offered_total", "counter", "Items that were put on the link.", labels, link["offered"])
        for member in link["dropped"]?.asObject ?? [] {
            add(
                "link_items_dropped_total", "counter", "Items that were dropped at the link, by reason.",
                labels + [("reason", member.key)], member.value)
        }
        if let replaced = link["replaced"], replaced.asInt ?? 0 > 0 {
            add(
                "link_items_replaced_total", "counter",
                "Items whose place a newer one took at a link that keeps only the newest: no loss.", labels, replaced)
        }
    }

    private mutating func add(pool: JSONNode) {
        let labels = [("pool", pool["name"]?.asString ?? "")]
        add("pool_buffers", "gauge", "Buffers of the pool.", labels, pool["buffers"])
        add("pool_buffers_free", "gauge", "Buffers that are free.", labels, pool["free"])
        add("pool_buffers_min", "gauge", "Buffers below which the chain could stall.", labels, pool["min"])
        add("pool_buffers_need", "gauge", "Buffers with which no stage waits for another.", labels, pool["need"])
        add("pool_size_bytes", "gauge", "Memory of the pool.", labels, pool["bytes"])
        add(
            "pool_starved_seconds_total", "counter", "Time that stages waited for a buffer of the pool.", labels,
            pool["starvedSeconds"])
    }

    private mutating func add(_ process: ProcessFigures) {
        add(
            "process_resident_memory_bytes", "gauge", "Resident memory of the process.", [],
            "\(process.residentBytes)")
        add(
            "process_cpu_seconds_total", "counter", "Processor time of all threads.", [],
            JSONNode.number(process.processorSeconds))
        add("process_open_files", "gauge", "Open files and sockets.", [], "\(process.openFiles)")
    }

    private mutating func add(histogram: JSONNode?, _ name: String, _ help: String, _ labels: [(String, String)]) {
        guard let histogram, let buckets = histogram["buckets"]?.asArray else { return }
        var most = 0
        var samples: [Sample] = []
        for bucket in buckets {
            guard let bound = bucket["le"]?.asDouble, let count = bucket["count"]?.asInt else { continue }
            most = max(most, count)
            samples.append(Sample(suffix: "_bucket", labels: labels + [("le", "\(bound)")], value: "\(most)"))
        }
        most = max(most, histogram["count"]?.asInt ?? 0)
        samples.append(Sample(suffix: "_bucket", labels: labels + [("le", "+Inf")], value: "\(most)"))
        samples.append(Sample(suffix: "_sum", labels: labels, value: Self.text(histogram["sumSeconds"]) ?? "0"))
        samples.append(Sample(suffix: "_count", labels: labels, value: "\(most)"))
        add(samples, name, "histogram", help)
    }

    // MARK: Samples

    private mutating func add(
        _ name: String, _ type: String, _ help: String, _ labels: [(String, String)], _ value: JSONNode?
    ) {
        guard let text = Self.text(value) else { return }
        add(name, type, help, labels, text)
    }

    private mutating func add(
        _ name: String, _ type: String, _ help: String, _ labels: [(String, String)], _ value: String
    ) {
        add([Sample(suffix: "", labels: labels, value: value)], name, type, help)
    }

    private mutating func add(_ samples: [Sample], _ name: String, _ type: String, _ help: String) {
        if families[name] == nil {
            names.append(name)
            families[name] = Family(type: type, help: help)
        }
        families[name]!.samples += samples
    }

    /// A number as Prometheus reads it; nil for anything else.
    private static func text(_ node: JSONNode?) -> String? {
        switch node?.value {
        case .number(let text): node?.asDouble == nil ? nil : text
        case .bool(let flag): flag ? "1" : "0"
        default: nil
        }
    }

    // MARK: Text

    var bytes: [UInt8] {
        var text = ""
        for name in names {
            guard let family = families[name] else { continue }
            text += "# HELP framehost_\(name) \(family.help)\n# TYPE framehost_\(name) \(family.type)\n"
            var seen: [String: Int] = [:]
            for sample in family.samples {
                var labels = Self.labels(sample.labels)
                // For example two links from one stage to another: a number tells them apart.
                let times = (seen[sample.suffix + labels] ?? 0) + 1
                seen[sample.suffix + labels] = times
                if times > 1 { labels = Self.labels(sample.labels + [("number", "\(times)")]) }
                text += "framehost_\(name)\(sample.suffix)\(labels) \(sample.value)\n"
            }
        }
        return Array(text.utf8)
    }

    private static func labels(_ labels: [(String, String)]) -> String {
        guard !labels.isEmpty else { return "" }
        return "{" + labels.map { "\($0.0)=\"\(escaped($0.1))\"" }.joined(separator: ",") + "}"
    }

    private static func escaped(_ text: String) -> String {
        var result = ""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\\": result += "\\\\"
            case "\"": result += "\\\""
            case "\n": result += "\\n"
            default: result.unicodeScalars.append(scalar)
            }
        }
        return result
    }
}
