// SPDX-License-Identifier: Apache-2.0

/// What a device tells of a video source: whether something moves there, whether there are faces.
struct EventProperty: Sendable, Hashable {
    enum Kind: String, Sendable, CaseIterable {
        case motion, faces
    }

    var kind: Kind
    /// The token of the video source.
    var source: String
}

/// Which properties are true, by the stages that say so. A value.
struct EventState: Sendable {
    /// A change of a property.
    struct Change: Sendable, Equatable {
        var property: EventProperty
        var isTrue: Bool
    }

    /// The stages that have said that it is true. Every property that the device has is a key.
    private var active: [EventProperty: Set<String>] = [:]
    private var stages: [EventProperty.Kind: [String: String]] = [:]

    /// All properties, in a fixed order.
    var all: [Change] {
        active.map { Change(property: $0.key, isTrue: !$0.value.isEmpty) }.sorted {
            ($0.property.source, $0.property.kind.rawValue) < ($1.property.source, $1.property.kind.rawValue)
        }
    }

    /// Which stages there are, and at which video source each looks. What a stage said that has gone is over.
    mutating func setStages(_ stages: [EventProperty.Kind: [String: String]]) -> [Change] {
        guard stages != self.stages else { return [] }
        self.stages = stages
        let before = active
        var next: [EventProperty: Set<String>] = [:]
        for (kind, sources) in stages {
            for (stage, source) in sources {
                let property = EventProperty(kind: kind, source: source)
                next[property, default: []].formUnion(before[property]?.contains(stage) == true ? [stage] : [])
            }
        }
        active = next
        return before.filter { !$0.value.isEmpty && (next[$0.key]?.isEmpty ?? true) }.keys.map {
            Change(property: $0, isTrue: false)
        }
    }

    /// A stage says whether it sees something.
    mutating func note(_ kind: EventProperty.Kind, stage: String, isTrue: Bool) -> Change? {
        guard let source = stages[kind]?[stage] else { return nil }
        let property = EventProperty(kind: kind, source: source)
        let was = active[property]?.isEmpty == false
        if isTrue { active[property, default: []].insert(stage) } else { active[property]?.remove(stage) }
        let isNow = active[property]?.isEmpty == false
        return was == isNow ? nil : Change(property: property, isTrue: isNow)
    }
}
