// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// A kind of service as people and programs read it.
struct ServiceText {
    private let service: ServiceType

    init(_ service: ServiceType) { self.service = service }

    /// The chain file's key for it; nil for a service that no chain file can ask for.
    private var key: String? { ChainFile.services.first { $0.value == service.info.id }?.key }

    /// For people.
    var text: String {
        var lines = ["\(service.info.id): \(service.info.summary)", ""]
        lines.append(
            Terminal.table([["kind", "service"]] + (key.map { [["key", "\"\($0)\" of the chain file"]] } ?? [])))
        lines.append("\nOptions")
        lines.append(service.options.isEmpty ? "  none" : StageText.table(service.options))
        return lines.joined(separator: "\n")
    }

    /// For programs.
    var json: JSONNode {
        .object([
            ("id", .string(service.info.id)), ("summary", .string(service.info.summary)), ("kind", "service"),
            ("key", key.map { .string($0) } ?? .null), ("options", .array(service.options.map(StageText.json))),
        ])
    }
}
