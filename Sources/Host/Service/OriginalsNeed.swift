// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// Which commands need the right `originals` (docs/design/047-originals.md, "Rights"). [any thread]
///
/// Whoever has not got it can neither see what is hidden nor change what decides it: the privacy stages, and all stages
/// before them, which could move a face or a window out from under an area.
enum OriginalsNeed {
    /// Whether the command shows or records originals, or changes what a privacy stage hides. A command that nobody
    /// would carry out may count either way.
    static func isNeeded(by command: JSONNode, in chain: Chain) -> Bool {
        if decidesAnew(command["stages"]) || decidesAnew(command["with"]) { return true }
        let stages = chain.plan.stages
        let name = command["command"]?.asString
        guard stages.contains(where: { $0.demand.mustNotBePassed || $0.hiddenBy != nil }) else { return false }
        // A whole chain, or another file, says anew what is hidden.
        if name == "reload" { return command["chain"] != nil || command["file"] != nil }
        // A branch begins at a stage, and gets what that stage shows.
        let id = name == "attach" ? command["at"]?.asString : command["stage"]?.asString
        guard let id, let stage = stages.first(where: { $0.id == id }) else { return false }
        return !["pause", "resume"].contains(name)
            && (stage.demand.mustNotBePassed && name != "snapshot" && name != "attach" || stage.hiddenBy != nil)
    }

    /// Whether a stage, or one of several, asks for originals, or writes what another privacy stage may read.
    private static func decidesAnew(_ node: JSONNode?) -> Bool {
        if let stages = node?.asArray { return stages.contains { decidesAnew($0) } }
        return node?.asObject?.contains { member in
            member.key == "original" && member.value.asBool != false || member.key == "areasFile"
        } ?? false
    }
}
