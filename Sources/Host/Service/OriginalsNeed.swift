// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// Which commands need the right `originals` (docs/design/047-originals.md, "Rights"). [any thread]
enum OriginalsNeed {
    /// Whether the command shows or records originals, or changes what a privacy stage hides. A command that nobody
    /// would carry out may count either way.
    static func isNeeded(by command: JSONNode, in chain: Chain) -> Bool {
        let hides = chain.plan.stages.contains { $0.demand.mustNotBePassed || $0.hiddenBy != nil }
        // A whole chain, or another file, says anew what is hidden.
        if hides, command["command"]?.asString == "reload", command["chain"] != nil || command["file"] != nil {
            return true
        }
        if asksForOriginals(command["stages"]) || asksForOriginals(command["with"]) { return true }
        guard let stage = command["stage"]?.asString else { return false }
        switch command["command"]?.asString {
        case "snapshot": return chain.showsOriginals(stage)
        case "pause", "resume": return false
        default: return chain.isPrivacyStage(stage)
        }
    }

    private static func asksForOriginals(_ node: JSONNode?) -> Bool {
        if let stages = node?.asArray { return stages.contains { asksForOriginals($0) } }
        return node?.asObject?.contains { $0.key == "original" && $0.value.asBool != false } ?? false
    }
}
