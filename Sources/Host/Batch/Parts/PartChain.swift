// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Glibc

/// How a chain becomes one that makes a part of its file, or that joins parts. docs/design/027-parts.md.
struct PartChain {
    let registry: PluginRegistry

    private static let recorder = "recorder"
    /// Options of a file's source that choose its track and the range of times that counts as the whole.
    private static let rangeOptions: Set<String> = ["path", "track", "start", "duration"]

    /// The chain with a file of access units in the place of each recording.
    ///
    /// - Throws: ``FrameHostError`` where the chain cannot be divided, or a plugin is missing.
    func part(_ part: TimelinePart, of request: ChainRequest) throws -> ChainRequest {
        if let rule = request.rules.first {
            throw FrameHostError(
                .invalidConfiguration, place: FaultPlace(file: request.file, position: nil, path: rule.path),
                what:
                    "rules cannot be used with --parts: what a rule does may depend on what happened in an earlier part",
                remedy: "Leave the rules out, or process the file as a whole, without --parts.")
        }
        var request = request
        request.part = part
        let sink = try stage("part-sink", request)
        let output = getenv("output").map { String(cString: $0) }
        for index in request.stages.indices where request.stages[index].type.info.id == Self.recorder {
            if let output, let path = request.stages[index].options.last(where: { $0.key == "path" })?.value.asString,
                path.firstRange(of: output) == nil
            {
                throw FrameHostError(
                    .invalidConfiguration,
                    place: FaultPlace(
                        file: request.file, position: request.stages[index].place,
                        path: "stages[\(request.stages[index].fileIndex)].path"),
                    what: "all parts would write '\(path)'", remedy: "Begin the name with ${output}.")
            }
            request.stages[index].type = sink
            request.stages[index].options.removeAll { $0.key != "path" }
        }
        return request
    }

    /// Only the recorders, each with its parts as the source.
    ///
    /// - Parameters:
    ///   - output: What `${output}` is for the join.
    ///   - parts: What it was for the parts, in order.
    func join(_ parts: [String], into output: String, of request: ChainRequest) throws -> ChainRequest {
        var joined = request
        joined.stages = []
        joined.buffers = [:]
        let source = try stage("part-source", request)
        for recorder in request.stages where recorder.type.info.id == Self.recorder {
            guard let path = recorder.options.last(where: { $0.key == "path" })?.value.asString else { continue }
            var options = sourceOptions(of: recorder, request)
            let names = parts.map { JSONNode.string(path.replacingFirst(output, with: $0)) }
            options.append(JSONNode.Member(key: "parts", value: .array(names)))
            joined.stages.append(
                StageRequest(
                    id: "\(recorder.id)-parts", type: source, options: options, fileIndex: recorder.fileIndex,
                    place: recorder.place))
            var recorder = recorder
            recorder.from = [joined.stages.count - 1]
            joined.stages.append(recorder)
        }
        return joined
    }

    /// The options of the source that the recorder's pictures come from.
    private func sourceOptions(of recorder: StageRequest, _ request: ChainRequest) -> [JSONNode.Member] {
        var stage = recorder
        // At most as many steps as there are stages, since the links may form a cycle.
        for _ in request.stages {
            guard let before = stage.from.first, request.stages.indices.contains(before) else { break }
            stage = request.stages[before]
        }
        return stage.options.filter { Self.rangeOptions.contains($0.key) }
    }

    private func stage(_ id: String, _ request: ChainRequest) throws -> StageType {
        guard let type = try registry.stage(id) else {
            throw FrameHostError(
                .unavailable, place: FaultPlace(file: request.file),
                what: "--parts needs the stage type '\(id)', which no plugin has",
                remedy: "Put libFileSource.so into the folder of the other plugins.")
        }
        return type
    }
}

extension String {
    /// With the first `text` in it replaced.
    fileprivate func replacingFirst(_ text: String, with other: String) -> String {
        guard let range = firstRange(of: text) else { return self }
        return self[..<range.lowerBound] + other + self[range.upperBound...]
    }
}
