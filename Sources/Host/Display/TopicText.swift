// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// A topic of a stage type as people and programs read it.
struct TopicText {
    private let topic: StageTopic
    private let stage: StageType

    init(_ topic: StageTopic, of stage: StageType) {
        self.topic = topic
        self.stage = stage
    }

    var text: String {
        var lines = ["\(stage.info.id) \(topic.name)\(topic.summary.isEmpty ? "" : ": \(topic.summary)")"]
        if !topic.facts.isEmpty {
            lines += ["", Terminal.table(topic.facts.map { [$0.name, $0.value] }, columns: Terminal.columns)]
        }
        guard !topic.values.isEmpty else { return lines.joined(separator: "\n") }
        lines += ["\nValues of \"\(topic.option)\"", StageText.table(topic.values)]
        return lines.joined(separator: "\n")
    }

    var json: JSONNode {
        .object([
            ("stage", .string(stage.info.id)), ("name", .string(topic.name)), ("summary", .string(topic.summary)),
            ("facts", .object(topic.facts.map { ($0.name, .string($0.value)) })), ("option", .string(topic.option)),
            ("values", .array(topic.values.map(StageText.json))),
        ])
    }
}
