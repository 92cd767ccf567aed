// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// What a plugin has beside stages, as people and programs read it: a service, a picture encoder.
struct ServiceText {
    let id: String
    let summary: String
    /// `service`, `encoder`.
    let kind: String
    /// The chain file's key for it; nil where no chain file names it.
    var key: String?
    /// A sentence on how it is used.
    let use: String
    var options: [OptionField] = []

    var text: String {
        var lines = Terminal.folded("\(id): \(summary)", to: Terminal.columns) + [""]
        lines.append(Terminal.table([["kind", kind], ["use", use]], columns: Terminal.columns))
        if kind == "service" {
            lines.append("\nOptions")
            lines.append(options.isEmpty ? "  none" : StageText.table(options))
        }
        return lines.joined(separator: "\n")
    }

    var json: JSONNode {
        .object([
            ("id", .string(id)), ("summary", .string(summary)), ("kind", .string(kind)),
            ("key", key.map { .string($0) } ?? .null), ("use", .string(use)),
            ("options", .array(options.map(StageText.json))),
        ])
    }
}
