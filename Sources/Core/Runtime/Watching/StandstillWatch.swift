// SPDX-License-Identifier: Apache-2.0

/// Ends a run that can provably never go on: every thread waits for another thread of the chain, and none has made
/// progress for five seconds.
///
/// A wait for the clock or for a network reader does not count, nor does a thread that was woken and waits for a
/// processor: on a busy machine that may last. A chain with a live source, or with a stage whose own threads hold
/// frames (``StageDemand/workers``), is never ended. The watch counts looks rather than time, so that a process that
/// was suspended does not seem to stand still. The control thread calls it every 50 ms.
struct StandstillWatch {
    static let looksNeeded = 100
    private var progress = -1
    private var looks = 0

    /// The fault, once the chain has stood still for long enough.
    mutating func look(at chain: Chain, _ threads: [ThreadState]) -> FrameHostError? {
        let open = threads.filter { !$0.finished.load(ordering: .acquiring) }
        let now = Self.progress(of: chain)
        let mayGoOn =
            now != progress || !open.allSatisfy(Self.waits)
            || chain.runners.contains { $0.shown.demand.isLive || $0.shown.demand.workers > 0 || $0.isPaused }
        progress = now
        looks = mayGoOn ? 0 : looks + 1
        guard looks >= Self.looksNeeded,
            open.allSatisfy({ KernelThread.isAsleep($0.kernelNumber.load(ordering: .relaxed)) })
        else { return nil }
        // The threads were asked one after the other: one may have worked, and woken one that slept, between two of them.
        guard Self.progress(of: chain) == now, open.allSatisfy(Self.waits) else { return nil }
        return Self.fault(chain, open)
    }

    private static func progress(of chain: Chain) -> Int { chain.runners.reduce(0) { $0 &+ $1.progress } }

    private static func waits(_ thread: ThreadState) -> Bool {
        thread.inside.load(ordering: .relaxed) == ThreadState.Place.chainWait
            && !thread.finished.load(ordering: .acquiring)
    }

    private static func fault(_ chain: Chain, _ open: [ThreadState]) -> FrameHostError {
        let now = chain.clock.now()
        let keepers = chain.runners.filter { $0.keptNow > $0.shown.demand.hold * max($0.inputs?.count ?? 1, 1) }
        let pools = chain.pools.filter { $0.starvedSinceTime != nil }.map {
            PoolHolders($0, in: chain.graph).report(now: now).sentence
        }
        // A transform that waits with an item in hand has not answered this item yet.
        let owing = chain.runners.filter {
            ($0.kind == .transform || $0.kind == .join) && $0.counters.unanswered > $0.heldNow
        }
        var what =
            "the chain is deadlocked: \(open.count == 1 ? "its only thread waits" : "all \(open.count) threads wait for each other")"
        if !pools.isEmpty { what += "; " + pools.joined(separator: "; ") }
        if pools.isEmpty, !owing.isEmpty {
            what += "; \(owing.map(\.title).joined(separator: ", ")) neither emitted nor dropped an item"
        }
        let remedy: String
        if let keeper = keepers.first {
            remedy =
                "Report this to the author of \(keeper.shown.info.id): it must release its buffers, or declare a 'hold' of \(keeper.keptNow) in its StageInfo."
        } else if let stage = owing.first, pools.isEmpty {
            remedy =
                "Report this to the author of \(stage.shown.info.id): it must emit or drop every item that it takes."
        } else {
            remedy = "This is a bug of framehost: report it, with the chain file."
        }
        return FrameHostError(.exhausted, place: keepers.first?.title ?? "", what: what, remedy: remedy)
    }
}
