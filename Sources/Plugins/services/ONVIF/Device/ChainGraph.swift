// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// Stages and links of a plan, as `framehost check --json` prints it. Pure.
struct ChainGraph: Sendable {
    struct Stage: Sendable {
        var id: String
        var use: String
        var isSource: Bool
    }

    let stages: [Stage]
    /// The stages that a stage takes from, in the order of its inputs.
    private var inputs: [String: [String]] = [:]

    init(_ plan: JSONNode) {
        stages = (plan["stages"]?.asArray ?? []).compactMap { node in
            guard let id = node["id"]?.asString, let use = node["use"]?.asString else { return nil }
            return Stage(id: id, use: use, isSource: node["kind"]?.asString == "source")
        }
        for link in plan["links"]?.asArray ?? [] {
            guard let from = link["from"]?.asString, let to = link["to"]?.asString else { continue }
            inputs[to, default: []].append(from)
        }
    }

    func inputs(of id: String) -> [String] { inputs[id] ?? [] }

    func stages(using type: String) -> [Stage] { stages.filter { $0.use == type } }

    /// The first source from which a stage's items come, by the order of inputs; the stage itself where none is found.
    func source(of id: String) -> String {
        var (waiting, seen): ([String], Set<String>) = ([id], [id])
        while !waiting.isEmpty {
            let next = waiting.removeFirst()
            let before = inputs(of: next)
            if before.isEmpty || stages.contains(where: { $0.id == next && $0.isSource }) { return next }
            for one in before where seen.insert(one).inserted { waiting.append(one) }
        }
        return id
    }
}
