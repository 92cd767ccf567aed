/// Every item of a run accounted for. Counters are 64 bit with one writer each and never reset; `inFlight` is counted
/// in queues and stages, never computed as a remainder.
public struct Ledger: Sendable, Equatable {
    /// Given by sources.
    public var captured = 0
    /// Without a one-to-one parent: repeats, slates.
    public var made = 0
    /// Further leases at forks.
    public var copies = 0
    public var delivered = 0
    public var merged = 0
    public var idle = 0
    public var dropped = 0
    public var inFlight = 0

    /// Law 4.
    public var isBalanced: Bool { captured + made + copies == delivered + merged + idle + dropped + inFlight }
}

extension Chain {
    /// [control thread] The chain's ledger as of now: exact after a drain, close while running.
    public var ledger: Ledger {
        var ledger = Ledger()
        for runner in runners {
            if runner.kind == .source { ledger.captured += runner.made.value } else { ledger.made += runner.made.value }
            ledger.copies += runner.copies.value
            ledger.delivered += runner.delivered.value
            ledger.merged += runner.merged.value
            ledger.idle += runner.idle.value
            ledger.dropped += runner.unconnected.value + DropReason.allCases.reduce(0) { $0 + runner.dropCount($1) }
            ledger.inFlight += runner.heldNow
        }
        for (_, queue) in queues {
            let snapshot = queue.snapshot()
            ledger.dropped += snapshot.counts.dropped.reduce(0, +) + snapshot.counts.evicted.reduce(0, +)
            ledger.inFlight += snapshot.depth
        }
        return ledger
    }

    /// [control thread] The laws that do not hold, as sentences. Laws 1 to 4 hold exactly after a drain; law 5 always.
    func ledgerFaults(afterDrain: Bool) -> [String] {
        var faults: [String] = []
        for (_, queue) in queues {
            let (counts, depth, _) = queue.snapshot()
            let dropped = counts.dropped.reduce(0, +)
            let evicted = counts.evicted.reduce(0, +)
            if counts.offered != counts.accepted + dropped {
                faults.append(
                    "ledger, link \(queue.name): offered \(counts.offered) ≠ accepted \(counts.accepted) + dropped \(dropped)"
                )
            }
            if counts.accepted != counts.taken + evicted + depth {
                faults.append(
                    "ledger, link \(queue.name): accepted \(counts.accepted) ≠ taken \(counts.taken) + evicted \(evicted) + depth \(depth)"
                )
            }
        }
        for runner in runners {
            let come = runner.taken.value + runner.made.value
            let gone = runner.answered + runner.heldNow
            if come != gone {
                let verb = come > gone ? "swallowed \(come - gone)" : "gave \(gone - come) too many"
                faults.append(
                    "ledger, \(runner.title): taken \(runner.taken.value) + made \(runner.made.value) ≠ emitted, ended, dropped and held \(gone): the stage \(verb)"
                )
            }
            faults += outputFaults(runner)
        }
        if !ledger.isBalanced {
            let l = ledger
            faults.append(
                "ledger: captured \(l.captured) + made \(l.made) + copies \(l.copies) ≠ delivered \(l.delivered) + merged \(l.merged) + idle \(l.idle) + dropped \(l.dropped) + in flight \(l.inFlight)"
            )
        }
        for pool in pools {
            let (free, leased) = pool.census()
            if free + leased != pool.bufferCount {
                faults.append("ledger, pool \(pool.name): free \(free) + leased \(leased) ≠ \(pool.bufferCount)")
            }
        }
        if afterDrain {
            let flying = ledger.inFlight
            if flying != 0 { faults.append("ledger: \(flying) items still in flight after the drain") }
        }
        return faults
    }

    /// Law 2: each emission is offered once to each link.
    private func outputFaults(_ runner: StageRunner) -> [String] {
        guard let output = runner.output else { return [] }
        return output.links.compactMap { link in
            let offered = link.queue?.snapshot().counts.offered ?? link.inline!.stages[0].taken.value
            guard offered != runner.emitted.value else { return nil }
            return "ledger, output of \(runner.title): emitted \(runner.emitted.value) ≠ offered \(offered)"
        }
    }
}
