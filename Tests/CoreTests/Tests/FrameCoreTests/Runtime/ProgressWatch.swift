// SPDX-License-Identifier: Apache-2.0

@testable import FrameCore

/// Sees that a chain stands still: by looks at which no item got on, in place of time. A starved process looks as rarely
/// as its stages get on.
struct ProgressWatch {
    /// At 50 ms and more from look to look.
    static let looksNeeded = 1200
    private(set) var items = -1
    /// What the chain looked like; empty while it gets on.
    private(set) var standstill = ""
    private(set) var isOver = false
    private var looks = 0

    /// True once, when the chain has stood still for long enough.
    mutating func hasStoodStill(_ chain: Chain) -> Bool {
        let ledger = chain.ledger
        let count = ledger.captured + ledger.delivered + ledger.merged + ledger.dropped
        looks += 1
        if count != items {
            items = count
            looks = 0
        }
        guard looks > Self.looksNeeded, !isOver else { return false }
        isOver = true
        standstill = Self.describe(chain)
        return true
    }

    /// Stages, queues and pools.
    private static func describe(_ chain: Chain) -> String {
        var lines = chain.runners.map { runner in
            "\(runner.id) \(runner.info.id) hold \(runner.demand.hold) delay \(runner.demand.delay) floor \(runner.demand.floor)\(runner.demand.isLive ? " live" : ""): taken \(runner.counters.taken.value) made \(runner.counters.made.value) emitted \(runner.counters.emitted.value) held \(runner.heldNow) kept \(runner.keptNow) inside \(runner.thread.inside.load(ordering: .relaxed)) thread \(chain.plan.stages[runner.number].thread)"
        }
        for link in chain.plan.links {
            let queue = chain.queues.first { $0.link.from == link.from && $0.link.to == link.to }?.queue
            let depth = queue.map { "\($0.snapshot().depth)" } ?? "inline"
            lines.append(
                "\(chain.runners[link.from].id) → \(chain.runners[link.to].id): \(depth) of \(link.settings.capacity) \(link.settings.policy)"
            )
        }
        for pool in chain.pools { lines.append("pool \(pool.name): \(pool.freeCount) of \(pool.bufferCount) free") }
        return lines.joined(separator: "\n")
    }
}
