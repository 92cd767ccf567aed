// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// The least important level that is sent.
package enum PublishedLevel: String, OptionChoice {
    case debug, info, warning, error

    var level: Event.Level { Event.Level(rawValue: rawValue) ?? .info }
}

/// Which events are sent. Pure.
package struct EventFilter: Sendable {
    private let level: Event.Level
    /// Whole names. ``beginnings`` has those that were written with `*` behind them.
    private let names: Set<String>
    private let beginnings: [String]

    /// - Parameters:
    ///   - level: The least important level.
    ///   - events: Names; `recording-*` stands for all names with this beginning. Empty for all events.
    package init(level: PublishedLevel, events: [String]) {
        self.level = level.level
        names = Set(events.filter { !$0.hasSuffix("*") })
        beginnings = events.filter { $0.hasSuffix("*") }.map { String($0.dropLast()) }
    }

    package func takes(_ event: Event) -> Bool {
        guard event.level >= level else { return false }
        return (names.isEmpty && beginnings.isEmpty) || names.contains(event.name)
            || beginnings.contains { event.name.hasPrefix($0) }
    }

    /// The fault of the option `events`; nil where there is none.
    package static func fault(of events: [String]) -> OptionFault? {
        for name in events {
            let body = name.hasSuffix("*") ? name.dropLast() : Substring(name)
            guard body.utf8.allSatisfy({ (97...122).contains($0) || (48...57).contains($0) || $0 == 45 }),
                !name.isEmpty, name.utf8.count <= 64
            else {
                return OptionFault(
                    "'events' has \(JSONNode(.string(name)).text()), which must be the name of an event: 1 to 64 lower-case letters, digits and hyphens",
                    remedy:
                        "Write \"recording-did-stop\", or \"recording-*\" for all names with this beginning. `framehost describe TYPE` lists the events of a stage type, `framehost describe chain` all others.",
                    options: ["events"])
            }
        }
        return nil
    }
}

/// An event as the JSON that is sent.
package enum EventText {
    /// The most bytes that are sent. NATS takes 1 MiB by default, MQTT brokers often take less.
    package static let mostBytes = 262_144

    /// The members of `--events`, after `id`, `number`, `host` and `chain`. The event's own members of these names
    /// are in `details`, beside what the event has there itself.
    package static func make(_ event: JSONNode, id: String, number: UInt64, host: String, chain: String) -> String {
        let own: [JSONNode.Member] = [
            JSONNode.Member(key: "id", value: .string(id)), JSONNode.Member(key: "number", value: .number(number)),
            JSONNode.Member(key: "host", value: .string(host)), JSONNode.Member(key: "chain", value: .string(chain)),
        ]
        let taken = Set(own.map(\.key))
        let members = event.asObject ?? []
        let hidden = members.filter { taken.contains($0.key) }
        var all = own + members.filter { !taken.contains($0.key) }
        guard !hidden.isEmpty else { return JSONNode(.object(all)).text() }
        if let index = all.firstIndex(where: { $0.key == "details" }) {
            if let own = all[index].value.asObject {
                let more = hidden.filter { member in !own.contains { $0.key == member.key } }
                all[index].value = JSONNode(.object(own + more))
            }
        } else {
            all.append(JSONNode.Member(key: "details", value: JSONNode(.object(hidden))))
        }
        return JSONNode(.object(all)).text()
    }
}
