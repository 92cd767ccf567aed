// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// Reads where the stages of a chain file take their input from: `from`, `link` and `join`, and the further outputs that
/// these name.
struct LinkReader: ChainPartReader {
    let name: String
    /// Indices of the stages, by id.
    let ids: [String: Int]
    /// Stages in the file.
    let stageCount: Int
    var faults: [FrameHostError] = []
    /// Whether a stage's input is unknown, so that the links cannot be checked further.
    private(set) var hasBrokenFrom = false
    /// Outputs beside the first that some stage takes. Their indices follow those of the file's stages.
    private var furtherOutputs: [FurtherOutput] = []

    init(name: String, ids: [String: Int], stageCount: Int) {
        self.name = name
        self.ids = ids
        self.stageCount = stageCount
    }

    mutating func readFrom(_ node: JSONNode?, _ path: String, _ index: Int, isSource: Bool) -> [Int] {
        guard let node else { return isSource || index == 0 ? [] : [index - 1] }
        let names: [(String, TextPlace)]
        if let one = node.asString {
            names = [(one, node.place)]
        } else if let several = node.asArray, !several.isEmpty, several.allSatisfy({ $0.asString != nil }) {
            names = several.map { ($0.asString!, $0.place) }
        } else {
            hasBrokenFrom = true
            fault(
                node, "\(path).from", "expected a stage's id or a list of ids, found \(node.text())",
                "Write \"from\": \"id\".")
            return []
        }
        return names.compactMap { name, place in
            let parts = name.split(separator: ".", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
            guard let found = ids[parts[0]] else {
                hasBrokenFrom = true
                fault(
                    place, "\(path).from", "no stage '\(ChainFile.isValidID(parts[0]) ? parts[0] : name)'",
                    remedyOfUnknownStage(parts[0], in: ids.sorted { $0.value < $1.value }.map(\.key)))
                return nil
            }
            guard parts.count == 2, parts[1] != "video" else { return found }
            let output = FurtherOutput(stage: found, name: parts[1], place: place, path: "\(path).from")
            if let known = furtherOutputs.firstIndex(where: { $0.stage == found && $0.name == parts[1] }) {
                return stageCount + known
            }
            furtherOutputs.append(output)
            return stageCount + furtherOutputs.count - 1
        }
    }

    /// Adds a source for each further output that is named (`clip.audio`). It is of the kind that the stage's
    /// plugin gives, and has the stage's options.
    mutating func addFurtherOutputs(complete: Bool, _ request: inout ChainRequest) {
        for output in furtherOutputs {
            let id = ids.first { $0.value == output.stage }?.key ?? ""
            guard complete else { continue }
            let stage = request.stages[output.stage]
            let all = stage.type.info.furtherOutputs
            guard let found = all.first(where: { $0.name == output.name }) else {
                hasBrokenFrom = true
                let others = all.map { "\"\(id).\($0.name)\"" }
                fault(
                    output.place, output.path, "'\(id)' has no output '\(output.name)'",
                    "Write \"from\": \((["\"\(id)\""] + others).joined(separator: " or ")).")
                continue
            }
            var further = StageRequest(
                id: "\(id).\(output.name)", type: found.type, options: stage.options, from: [], onError: stage.onError,
                fileIndex: stage.fileIndex, place: stage.place)
            (further.ownPlaces, further.settings) = (stage.ownPlaces, stage.settings)
            request.stages.append(further)
        }
        guard hasBrokenFrom else {
            if complete { leaveOutUnreadSources(&request) }
            return
        }
        for index in request.stages.indices {
            request.stages[index].from = request.stages[index].from.filter { $0 < request.stages.count }
        }
    }

    /// Where nobody takes the first output of a source, but a further one that needs nothing of it, the further one takes
    /// its place: a file whose sound alone is wanted is not decoded, and need have no pictures.
    private func leaveOutUnreadSources(_ request: inout ChainRequest) {
        for (number, output) in furtherOutputs.enumerated().reversed() {
            let (first, further) = (output.stage, stageCount + number)
            let isOnlyOne = furtherOutputs.filter { $0.stage == first }.count == 1
            let standsAlone = request.stages[first].type.info.furtherOutputs.contains {
                $0.name == output.name && $0.standsAlone
            }
            guard isOnlyOne, standsAlone, !request.stages[first].isUnread,
                !request.stages.contains(where: { $0.from.contains(first) })
            else { continue }
            request.stages[first] = request.stages.remove(at: further)
            for index in request.stages.indices {
                request.stages[index].from = request.stages[index].from.map {
                    $0 == further ? first : $0 > further ? $0 - 1 : $0
                }
            }
        }
    }

    /// A further output that a `from` names.
    private struct FurtherOutput {
        var stage: Int
        var name: String
        var place: TextPlace
        var path: String
    }

    mutating func readLink(_ node: JSONNode?, _ path: String) -> LinkRequest {
        var link = LinkRequest()
        guard let node else { return link }
        read(node, "\(path).link", as: ChainKeys.link, into: &link)
        if link.whenFull == .latest, let queue = link.queue, queue != 1 {
            fault(
                node, "\(path).link.queue", "must be 1 with \"whenFull\": \"latest\", but is \(queue)",
                "Leave 'queue' out, or choose another 'whenFull'.")
        }
        if link.queue == 0, link.whenFull != nil {
            fault(
                node, "\(path).link", "'whenFull' has no effect with \"queue\": 0",
                "Leave 'whenFull' out, or set 'queue' to 1 or more.")
        }
        return link
    }

    mutating func readJoin(_ node: JSONNode?, _ path: String, _ from: [Int]) -> JoinRequest? {
        guard let node else { return nil }
        var join = JoinRequest()
        guard read(node, "\(path).join", as: ChainKeys.join, into: &join) else { return nil }
        if let lead = node["lead"] { join.lead = readLead(lead, "\(path).join.lead", from) }
        return join
    }

    /// The position in `from` of the stage that leads.
    private mutating func readLead(_ node: JSONNode, _ key: String, _ from: [Int]) -> Int? {
        guard let id = node.asString else {
            fault(node, key, "expected a stage's id, found \(node.text())", "Write \"lead\": \"id\".")
            return nil
        }
        if let index = ids[id], let input = from.firstIndex(of: index) { return input }
        // The fault of `from` says enough.
        guard !from.isEmpty, !hasBrokenFrom else { return nil }
        let inputs = ids.filter { from.contains($0.value) }.sorted { $0.value < $1.value }.map(\.key)
        fault(
            node, key, "'\(id)' must be one of the inputs",
            didYouMean(
                id, in: inputs, else: inputs.isEmpty ? "Leave 'lead' out." : "Name \(quotedList(inputs, "or"))."))
        return nil
    }
}
