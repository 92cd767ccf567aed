// SPDX-License-Identifier: Apache-2.0

/// Live options that commands have set since the chain file's options were applied, by the stage's number: a later
/// stage with the same id has options of its own. They take effect in `StageInstance.set`, between two items.
struct LiveOptions {
    /// An option, and how many had been set before it. A change knows by that which were set after it was planned, even
    /// where the value is the same.
    private struct Entry {
        var member: JSONNode.Member
        var order: Int
    }

    private var entries: [Int: [Entry]] = [:]
    /// How many options commands have set.
    private(set) var count = 0

    subscript(stage: Int) -> [JSONNode.Member] { entries[stage, default: []].map(\.member) }

    /// By the stages' ids; without stages that have none.
    func byID(of runners: [StageRunner]) -> [String: [JSONNode.Member]] {
        Dictionary(uniqueKeysWithValues: runners.map { ($0.id, self[$0.number]) }).filter { !$0.value.isEmpty }
    }

    /// The options of a stage that commands have set since there were `count`.
    func options(of stage: Int, setAfter count: Int) -> [JSONNode.Member] {
        entries[stage, default: []].filter { $0.order >= count }.map(\.member)
    }

    mutating func set(_ stage: Int, _ options: [JSONNode.Member]) {
        for member in options {
            forget(stage, keys: [member.key])
            entries[stage, default: []].append(Entry(member: member, order: count))
            count += 1
        }
    }

    /// The options are those of another stage now. Where commands have set an option there too, the later one holds.
    mutating func move(from stage: Int, to other: Int) {
        let both = entries[other, default: []] + (entries.removeValue(forKey: stage) ?? [])
        entries[other] = both
        keep(other) { entry in
            !both.contains { $0.member.key == entry.member.key && $0.order > entry.order }
        }
    }

    /// Forgets these options, as far as they were set when there were `count`.
    mutating func forget(_ stage: Int, keys: [String], setBefore count: Int = .max) {
        keep(stage) { !keys.contains($0.member.key) || $0.order >= count }
    }

    /// Forgets what commands had set when there were `count`; later ones hold on.
    mutating func forget(_ stage: Int, setBefore count: Int) { keep(stage) { $0.order >= count } }

    mutating func forget(_ stage: Int) { entries[stage] = nil }

    /// Forgets the options of all other stages.
    mutating func keep(stages: Set<Int>) { entries = entries.filter { stages.contains($0.key) } }

    private mutating func keep(_ stage: Int, where isKept: (Entry) -> Bool) {
        let kept = entries[stage, default: []].filter(isKept)
        entries[stage] = kept.isEmpty ? nil : kept
    }
}
