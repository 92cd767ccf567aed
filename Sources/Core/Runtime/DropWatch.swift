// SPDX-License-Identifier: Apache-2.0

/// Posts the event `frames-dropped` when items are dropped: at once, then at most every ten seconds for each stage or
/// link and each reason. The control thread calls it once a second.
struct DropWatch {
    static let repeatNs: Int64 = 10_000_000_000
    private static let pauseNs: Int64 = 1_000_000_000

    struct Told {
        var count: Int
        var at: Int64
    }

    /// By whose drops they are, and by why; of stages and links that are there.
    private(set) var told: [String: [DropReason: Told]] = [:]
    private var nextLook = Int64.min

    mutating func look(at chain: Chain, now: Int64) {
        guard now >= nextLook else { return }
        nextLook = now + Self.pauseNs
        let graph = chain.graph
        var present: Set<String> = []
        defer { told = told.filter { present.contains($0.key) } }
        for runner in graph.runners {
            present.insert("\(runner.number)")
            for reason in DropReason.allCases {
                let count = runner.dropCount(reason) + (reason == .unconnected ? runner.unconnected.value : 0)
                tell(chain, "\(runner.number)", runner.id, "at \(runner.id)", reason, count, now: now)
            }
        }
        for entry in graph.queues {
            let counts = entry.queue.snapshot().counts
            let (from, to) = (graph.runners[entry.link.from], graph.runners[entry.link.to])
            present.insert("\(from.number)-\(to.number)")
            for reason in DropReason.allCases {
                let count = counts.dropped[reason.rawValue] + counts.evicted[reason.rawValue]
                tell(
                    chain, "\(from.number)-\(to.number)", to.id, "between \(from.id) and \(to.id)", reason, count,
                    now: now)
            }
        }
    }

    private mutating func tell(
        _ chain: Chain, _ whose: String, _ stage: String, _ place: String, _ reason: DropReason, _ count: Int,
        now: Int64
    ) {
        guard count > 0 else { return }
        var last = told[whose]?[reason]
        // Another queue between the same two stages counts anew.
        if let before = last, count < before.count { last = nil }
        if let last, count == last.count || now - last.at < Self.repeatNs { return }
        told[whose, default: [:]][reason] = Told(count: count, at: now)
        let new = count - (last?.count ?? 0)
        chain.hub.post(
            Event(
                name: "frames-dropped", stage: stage, level: .debug,
                text: "\(new) dropped \(place) (\(reason.name)), \(count) in all.",
                details: [
                    "reason": .string(reason.name), "count": .number(new), "total": .number(count),
                    "place": .string(place),
                ], time: chain.clock.now()))
    }
}
