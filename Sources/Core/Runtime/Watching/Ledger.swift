// SPDX-License-Identifier: Apache-2.0

/// The account of all items of a run.
///
/// Each counter has one writer and is never reset. ``inFlight`` is counted in queues and stages, not computed as a
/// remainder, so that ``isBalanced`` finds every item that was lost.
public struct Ledger: Sendable, Equatable {
    /// Items that sources gave.
    public var captured = 0
    /// How many of ``captured`` are sound: blocks, or packets of encoded sound.
    public var capturedSound = 0
    /// How many of ``captured`` are blocks of motion.
    public var capturedMotion = 0
    /// Items that stages made without an input of their own: repeats, slates.
    public var made = 0
    /// Further leases that forks made.
    public var copies = 0
    /// Items that sinks took.
    public var delivered = 0
    /// Items that were merged into the answer to another item.
    public var merged = 0
    /// Items that sinks left out on purpose.
    public var idle = 0
    /// Items that were dropped.
    public var dropped = 0
    /// Items whose place in a link that keeps only the newest one a newer item took: a preview's, or an input's of a
    /// join by the newest picture. Nothing is wrong where that happens.
    public var replaced = 0
    /// Items in queues and stages.
    public var inFlight = 0

    /// Whether every item is accounted for.
    public var isBalanced: Bool {
        captured + made + copies == delivered + merged + idle + dropped + replaced + inFlight
    }
}

extension Ledger {
    /// The account of a stage: what it gave, took and has in hand.
    init(of runner: StageRunner) {
        if runner.kind == .source { captured = runner.counters.made.value } else { made = runner.counters.made.value }
        if runner.kind == .source {
            let format = runner.shown.output
            if format?.isSound == true { capturedSound = captured }
            if format?.motion != nil { capturedMotion = captured }
        }
        copies = runner.counters.copies.value
        delivered = runner.counters.delivered.value
        merged = runner.counters.merged.value
        idle = runner.counters.idle.value
        dropped = DropReason.allCases.reduce(0) { $0 + runner.counters.lost($1) }
        inFlight = runner.heldNow
    }

    /// The account of a link: what it dropped and holds.
    init(of queue: ItemQueue) {
        let (counts, depth, _) = queue.snapshot()
        replaced = counts.replaced
        dropped = counts.dropped.reduce(0, +) + counts.evicted.reduce(0, +) - replaced
        inFlight = depth
    }

    static func += (sum: inout Ledger, part: Ledger) {
        sum.captured += part.captured
        sum.capturedSound += part.capturedSound
        sum.capturedMotion += part.capturedMotion
        sum.made += part.made
        sum.copies += part.copies
        sum.delivered += part.delivered
        sum.merged += part.merged
        sum.idle += part.idle
        sum.dropped += part.dropped
        sum.replaced += part.replaced
        sum.inFlight += part.inFlight
    }
}

extension RunningGraph {
    /// [any thread] The present account: exact after a drain, approximate while the chain runs. Removed stages and
    /// links count too.
    var ledger: Ledger {
        var ledger = departed
        for runner in everyRunner { ledger += Ledger(of: runner) }
        for queue in everyQueue { ledger += Ledger(of: queue) }
        return ledger
    }

    /// The laws that are broken, as sentences. Laws 1 to 4 hold exactly after a drain; law 5 always.
    func ledgerFaults(afterDrain: Bool) -> [String] {
        var faults = everyQueue.flatMap(\.ledgerFaults) + everyRunner.flatMap(\.ledgerFaults)
        faults += runners.flatMap(\.outputFaults)
        let l = ledger
        if !l.isBalanced {
            faults.append(
                "Ledger: captured \(l.captured) + made \(l.made) + copies \(l.copies) ≠ delivered \(l.delivered) + merged \(l.merged) + idle \(l.idle) + dropped \(l.dropped) + replaced \(l.replaced) + in flight \(l.inFlight)."
            )
        }
        for pool in pools {
            let (free, leased) = pool.census()
            if free + leased != pool.bufferCount {
                faults.append("Ledger, pool \(pool.name): free \(free) + leased \(leased) ≠ \(pool.bufferCount).")
            }
        }
        if afterDrain, l.inFlight != 0 {
            faults.append(
                "Ledger: \(l.inFlight) \(l.inFlight == 1 ? "item is" : "items are") still in flight after the drain.")
        }
        return faults
    }
}

extension ItemQueue {
    /// Law 1.
    var ledgerFaults: [String] {
        let (counts, depth, _) = snapshot()
        let dropped = counts.dropped.reduce(0, +)
        let evicted = counts.evicted.reduce(0, +)
        var faults: [String] = []
        if counts.offered != counts.accepted + dropped {
            faults.append(
                "Ledger, link \(name): offered \(counts.offered) ≠ accepted \(counts.accepted) + dropped \(dropped).")
        }
        if counts.accepted != counts.taken + evicted + depth {
            faults.append(
                "Ledger, link \(name): accepted \(counts.accepted) ≠ taken \(counts.taken) + evicted \(evicted) + depth \(depth)."
            )
        }
        return faults
    }
}

extension StageRunner {
    /// Law 3, where it is broken: every item a stage took or made is emitted, ended, dropped or held.
    private var ledgerSentence: String? {
        let come = counters.taken.value + counters.made.value
        let gone = counters.answered + heldNow
        guard come != gone else { return nil }
        let count = come > gone ? come - gone : gone - come
        let items = "\(count) \(count == 1 ? "item" : "items")"
        let verb = come > gone ? "lost \(items)" : "gave \(items) too many"
        return
            "the stage \(verb): it took \(counters.taken.value) and made \(counters.made.value), but accounts for \(gone) (emitted, ended, dropped or held)"
    }

    /// The broken laws of one stage: law 3.
    var ledgerFaults: [String] { ledgerSentence.map { ["Ledger, \(title): \($0)."] } ?? [] }

    /// The same as a fault, for ``StageDriver``.
    var ledgerFault: FrameHostError? {
        ledgerSentence.map {
            FrameHostError(
                .broken, place: title, what: $0,
                remedy: "Emit or drop each item exactly once, and count in 'held' the items that are emitted later.")
        }
    }

    /// Law 2: each emission is offered once to each link.
    var outputFaults: [String] {
        (output?.links ?? []).compactMap { link in
            let emitted = counters.emitted.value - link.emittedBefore
            guard link.offered != emitted else { return nil }
            return "Ledger, output of \(title): emitted \(emitted) ≠ offered \(link.offered)."
        }
    }
}

extension Chain {
    /// [any thread] The chain's ledger as of now: exact after a drain, approximate while the chain runs.
    public var ledger: Ledger { graph.ledger }

    /// [control thread] What does not add up, as sentences. Removed stages and links count too.
    func ledgerFaults(afterDrain: Bool) -> [String] {
        departedFaults.withLock { $0 } + graph.ledgerFaults(afterDrain: afterDrain)
    }
}
