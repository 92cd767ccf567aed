// SPDX-License-Identifier: Apache-2.0

extension Chain {
    /// [control thread] Ends what is left, and says what came of the run.
    func finish(abandoned: [String], _ tick: () -> Void) -> Result {
        let wasCancelled = stop.isRaised
        stop.raise()
        changes.close()
        for stageThread in graph.everyStageThread { stageThread.state.closeMail() }
        for queue in graph.everyQueue { queue.discardAll(.stopped) }
        finishJobs(tick)
        let joins = plan.joins
        for (index, runner) in runners.enumerated() {
            runner.reportJoinLosses(joins[index]?.match, followsTimes: joins[index]?.followsTimes ?? false)
            runner.pictures.close()
            runner.units.close()
        }
        // The thread that would have judged these hangs.
        let left = judgements.withLock { $0.close().map(\.fault) }
        failures.withLock { $0 += left + restarts.unfinished(of: runners) }
        if abandoned.isEmpty {
            for runner in runners { runner.timeFault.map { fault in failures.withLock { $0.append(fault) } } }
        }
        let found = failures.withLock { $0 }
        let isWhole = abandoned.isEmpty && abandonedBranches.withLock(\.isEmpty)
        let faults = (isWhole ? ledgerFaults(afterDrain: !wasCancelled && found.isEmpty) : []).map {
            "\($0) \(FrameHostError.report)"
        }
        for pool in pools where pool.leaseGrowths > 0 {
            hub.post(
                Event(
                    name: "leases-grew", level: .warning,
                    text:
                        "Stages shared more frames of the pool '\(pool.name)' than their declared 'hold' allows, so memory had to be allocated \(pool.leaseGrowths == 1 ? "once" : "\(pool.leaseGrowths) times") while frames flowed."
                        + " In your own plugin, raise 'hold' in its StageInfo; otherwise report this, with the chain file.",
                    time: clock.now()))
        }
        for fault in faults {
            hub.post(Event(name: "ledger-fault", level: .error, text: fault, time: clock.now()))
        }
        dropWatch.look(at: self, now: systemNow(), isLast: true)
        let result = Result(
            failures: found, abandoned: abandoned + abandonedBranches.withLock { $0 }, ledgerFaults: faults,
            losses: callWatch.losses, drops: dropWatch.summary)
        setState(result.isSuccess ? .stopped : .failed, result.isSuccess ? "stopped" : "failed")
        healthWatch.look(at: self, now: systemNow(), isLast: true) { [] }
        endTrace()
        tick()
        return result
    }

    /// Waits for the jobs that stages have left.
    private func finishJobs(_ tick: () -> Void) {
        guard let job = jobs.current else { return }
        setState(.finishing, "finishing: \(job.title)")
        while !jobs.waitUntilIdle(atMost: 50_000_000) { tick() }
    }

    /// The fault of a drain that takes too long.
    func unfinishedDrain(_ threads: [ThreadState]) -> FrameHostError {
        let stuck = unfinished(threads)
        let (verb, need) = stuck.count == 1 ? ("is", "this stage needs") : ("are", "these stages need")
        return FrameHostError(
            .exhausted,
            what:
                "the drain did not finish in \(text(seconds: Double(drainNs) / 1e9)) s: \(stuck.joined(separator: ", ")) \(verb) still at work",
            remedy: "Raise \"drainSeconds\" in the chain file if \(need) longer.")
    }
}
