// SPDX-License-Identifier: Apache-2.0

/// Who has the buffers of a pool that is empty. [control thread]
struct PoolHolders {
    private struct Holding {
        var buffers = Set<Int32>()
        var oldest = Int64.max
    }

    private let pool: FramePool
    private let graph: RunningGraph
    /// Buffers in stages and in the queues before them, by the stages' numbers.
    private var stages: [Int: Holding] = [:]
    private var queued: [Int: Holding] = [:]
    private var all = Set<Int32>()
    private var runners: [Int: StageRunner] = [:]

    init(_ pool: FramePool, in graph: RunningGraph) {
        (self.pool, self.graph) = (pool, graph)
        for lease in pool.holders() {
            all.insert(lease.buffer)
            let index = Int(lease.holder) / 2
            guard lease.holder >= 0, let runner = graph.runner(number: index) else { continue }
            runners[index] = runner
            if lease.holder % 2 == 0 {
                stages[index, default: Holding()].buffers.insert(lease.buffer)
                if lease.since > 0 { stages[index]!.oldest = min(stages[index]!.oldest, lease.since) }
            } else {
                queued[index, default: Holding()].buffers.insert(lease.buffer)
            }
        }
    }

    /// Whether a stage has more buffers of this pool than it declares.
    private func isOver(_ number: Int, _ holding: Holding) -> Bool {
        guard let place = graph.runners.firstIndex(where: { $0.number == number }) else { return false }
        let most = graph.mostHeld(by: place)
        let isOwn = graph.budget(of: pool).map { $0.allocator == place && !$0.isCopyPool } ?? false
        return holding.buffers.count > (isOwn ? most.made : most.taken)
    }

    /// `recorder 3 (oldest 1.94 s, declared 2)`, `queue before h264 1`; the largest first.
    private func parts(now: Int64) -> [String] {
        var parts: [(count: Int, text: String)] = stages.map { index, holding in
            let demand = runners[index]!.demand
            let age = holding.oldest <= now ? "oldest \(Self.hundredths(now - holding.oldest)) s, " : ""
            let text = isOver(index, holding) || demand.hold > 0 ? " (\(age)declared \(demand.hold))" : ""
            return (holding.buffers.count, "\(runners[index]!.id) \(holding.buffers.count)\(text)")
        }
        parts += queued.map {
            ($0.value.buffers.count, "queue before \(runners[$0.key]!.id) \($0.value.buffers.count)")
        }
        return parts.sorted { ($0.count, $1.text) > ($1.count, $0.text) }.map(\.text)
    }

    /// The event, the same without a remedy as a part of a sentence, and the numbers of the stages that hold buffers:
    /// `the pool 'camera' has been empty for 212 ms (7 of 7 buffers held): recorder 3 (oldest 1.94 s, declared 2), face 2`
    ///
    /// - Parameter pause: For whose pause the buffers wait; nil where it is not for a pause.
    func report(now: Int64, pause: PausedWaits.Wait? = nil) -> (event: Event, sentence: String, holders: [Int]) {
        let ms = pool.starvedSinceTime.map { (now - $0) / 1_000_000 } ?? 0
        let parts = parts(now: now)
        let over = stages.filter { isOver($0.key, $0.value) }.keys.sorted().map { runners[$0]!.id }
        let blame =
            over.isEmpty
            ? "Look at what the stages with the most buffers wait for: a disk, a network, or a later stage."
            : over.count == 1
                ? "'\(over[0])' holds more buffers than it declares. Report this to the author of its plugin."
                : "\(quotedList(over, "and")) hold more buffers than they declare. Report this to the authors of their plugins."
        let figures =
            "pool '\(pool.name)' has been empty for \(ms) ms (\(all.count) of \(pool.bufferCount) buffers held)"
            + (parts.isEmpty ? "" : ": " + parts.joined(separator: ", "))
        let holders = stages.map { index, holding in
            [
                "stage": .string(runners[index]!.id), "held": .number(holding.buffers.count),
                "declared": .number(runners[index]!.demand.hold),
            ] as JSONNode
        }
        let event = Event(
            name: "out-of-buffers", stage: pool.name, level: .warning,
            text: "The \(figures)."
                + (pause.map { " \($0.sentence). \($0.remedy)" } ?? (parts.isEmpty ? "" : " \(blame)")),
            details: [
                "pool": .string(pool.name), "ms": .number(Int(ms)), "held": .number(all.count),
                "buffers": .number(pool.bufferCount), "holders": .array(holders),
                "overDeclaration": .array(over.map { .string($0) }),
            ], time: now)
        return (event, "the \(figures)", stages.keys.sorted())
    }

    private static func hundredths(_ ns: Int64) -> String {
        let value = ns / 10_000_000
        return "\(value / 100).\(value % 100 < 10 ? "0" : "")\(value % 100)"
    }
}
