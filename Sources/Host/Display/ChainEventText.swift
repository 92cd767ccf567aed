// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// The events of every chain, as people and programs read them.
enum ChainEventText {
    /// The name of these events in `framehost describe`.
    static let id = "chain"

    static var text: String {
        let groups: [(title: String, scope: ChainEvents.Scope)] = [
            ("Events of the chain", .chain), ("Events of the chain and of every stage", .both),
            ("Events of every stage", .stage),
        ]
        return groups.map { group in
            let events = ChainEvents.all.filter { $0.scope == group.scope }.map(\.event)
            return "\(group.title)\n\(StageText.table(events))"
        }.joined(separator: "\n\n")
    }

    static var json: JSONNode {
        .object([
            (
                "events",
                .array(
                    ChainEvents.all.map { entry in
                        let members = StageText.json(entry.event).asObject ?? []
                        return .object(members.map { ($0.key, $0.value) } + [("of", .string(entry.scope.rawValue))])
                    })
            )
        ])
    }
}
