// SPDX-License-Identifier: Apache-2.0

/// Live options that commands have set since the chain file's options were applied, by the stage's id.
struct LiveOptions {
    /// An option, and how many had been set before it. A change knows by that which were set after it was planned, even
    /// where the value is the same.
    struct Entry {
        var member: JSONNode.Member
        fileprivate var number: Int
    }

    private var entries: [String: [Entry]] = [:]
    /// How many options commands have set.
    private(set) var count = 0

    /// The ids of the stages with such options.
    var stages: [String] { Array(entries.keys) }

    subscript(id: String) -> [JSONNode.Member] { entries[id, default: []].map(\.member) }

    /// The options of `id` that commands have set since there were `count`.
    func set(of id: String, after count: Int) -> [JSONNode.Member] {
        entries[id, default: []].filter { $0.number >= count }.map(\.member)
    }

    mutating func set(_ id: String, _ options: [JSONNode.Member]) {
        restore(
            id,
            options.map { member in
                defer { count += 1 }
                return Entry(member: member, number: count)
            })
    }

    /// Puts back what ``forget(_:keys:)`` has returned.
    mutating func restore(_ id: String, _ options: [Entry]) {
        guard !options.isEmpty else { return }
        forget(id, keys: options.map(\.member.key))
        entries[id, default: []] += options
    }

    /// Forgets these options, and returns them.
    @discardableResult mutating func forget(_ id: String, keys: [String]) -> [Entry] {
        let forgotten = entries[id, default: []].filter { keys.contains($0.member.key) }
        keep(id) { !keys.contains($0.member.key) }
        return forgotten
    }

    /// Forgets what commands had set when there were `count`; later ones hold on.
    mutating func forget(_ id: String, before count: Int) { keep(id) { $0.number >= count } }

    mutating func forget(_ id: String) { entries[id] = nil }

    private mutating func keep(_ id: String, where isKept: (Entry) -> Bool) {
        let kept = entries[id, default: []].filter(isKept)
        entries[id] = kept.isEmpty ? nil : kept
    }
}
