// SPDX-License-Identifier: Apache-2.0

/// Live options that commands have set since the chain file's options were applied, by the stage's number: a later
/// stage with the same id has options of its own.
struct LiveOptions {
    /// An option, and how many had been set before it. A change knows by that which were set after it was planned, even
    /// where the value is the same.
    struct Entry {
        var member: JSONNode.Member
        fileprivate var order: Int
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
        restore(
            stage,
            options.map { member in
                defer { count += 1 }
                return Entry(member: member, order: count)
            })
    }

    /// Puts back what ``forget(_:keys:)`` has returned.
    mutating func restore(_ stage: Int, _ options: [Entry]) {
        guard !options.isEmpty else { return }
        forget(stage, keys: options.map(\.member.key))
        entries[stage, default: []] += options
    }

    /// The options are those of another stage now. Where commands have set an option there too, the later one holds.
    mutating func move(from stage: Int, to other: Int) {
        let own = entries[other, default: []]
        restore(
            other,
            entries.removeValue(forKey: stage)?.filter { moved in
                !own.contains { $0.member.key == moved.member.key && $0.order > moved.order }
            } ?? [])
    }

    /// Forgets these options, and returns them.
    @discardableResult mutating func forget(_ stage: Int, keys: [String]) -> [Entry] {
        let forgotten = entries[stage, default: []].filter { keys.contains($0.member.key) }
        keep(stage) { !keys.contains($0.member.key) }
        return forgotten
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
