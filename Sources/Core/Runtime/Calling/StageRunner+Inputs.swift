// SPDX-License-Identifier: Apache-2.0

/// Items of several inputs.
extension StageRunner {
    /// [stage thread] One item of a further input into a filter; false when the run was stopped.
    func takeCompanion(_ lease: consuming Lease, from index: Int) -> Bool {
        counters.taken.add()
        let record = lease.record
        guard !hasFailed, !isPaused, let filter = instance.multiFilter else {
            countDrop(hasFailed ? .failed : .paused)
            return true
        }
        record.pointee.holder.store(holderCode, ordering: .relaxed)
        record.pointee.hand(to: keeper)
        record.pointee.keep()
        thread.inside.store(Int32(number), ordering: .relaxed)
        // Nothing is given for it: it goes into the pictures.
        counters.merged.add()
        do {
            try filter.receive(Sample(lease), from: index)
            return true
        } catch {
            if isStop(error) { return false }
            fail(error, sequence: lastSequence, pts: context.item.pts)
            return true
        }
    }

    /// [stage thread] One item of one of several inputs into a sink or transform; false when the run was stopped.
    func take(_ lease: consuming Lease, from index: Int, isInTurn: Bool = true) -> Bool {
        lease.record.pointee.holder.store(holderCode, ordering: .relaxed)
        if let trace = thread.trace {
            trace.begin(.item, stage: number, frame: lease.record.pointee.header.sequenceNumber)
        }
        var time = histogram == nil ? 0 : clock.now()
        thread.elsewhere = 0
        let goesOn = accept(lease, since: time, from: index, isInTurn: isInTurn)
        if let trace = thread.trace { trace.end() }
        if histogram != nil { addTime(&time) }
        return goesOn
    }

    /// [stage thread] No item has come up to ``MultiTransform/idleTime``; false when the run was stopped.
    func giveWhileIdle() -> Bool {
        guard mode == .runs, let transform = instance.multiTransform, let output else { return true }
        thread.inside.store(Int32(number), ordering: .relaxed)
        do { try transform.idle(output) } catch {
            if isStop(error) {
                settleAfterStop()
                return false
            }
            fail(error, sequence: lastSequence, pts: context.item.pts)
        }
        return true
    }

    /// [stage thread] One item of each input into a join; false when the run was stopped.
    func merge(_ inputs: JoinInputs) -> Bool {
        guard case .join(let join) = instance.body, let output else { return true }
        let count = inputs.present
        let pts = inputs.pts
        counters.taken.add(count)
        if isPaused || hasFailed {
            for _ in 0..<count { countDrop(hasFailed ? .failed : .paused) }
            inputs.releaseAll()
            output.announceNothing(upTo: pts)
            return true
        }
        times.check.came(MediaTime(nanoseconds: pts))
        inputs.mark(keeper: keeper, holder: holderCode, now: clock.now())
        thread.inside.store(Int32(number), ordering: .relaxed)
        context.item.set(inputs.sequenceNumber, pts: MediaTime(nanoseconds: pts))
        let before = histogram == nil ? 0 : clock.now()
        thread.elsewhere = 0
        defer {
            if histogram != nil {
                var time = before
                addTime(&time)
            }
        }
        do {
            let emittedBefore = counters.emitted.value
            let answeredBefore = count == 0 ? counters.answered : 0
            counters.merged.add(max(count - 1, 0))
            try join.merge(inputs, output)
            inputs.releaseAll()
            // At a tick of the clock without a new item, the join makes the picture itself.
            if count == 0 { counters.made.add(counters.answered - answeredBefore) }
            if counters.emitted.value == emittedBefore { output.announceNothing(upTo: pts) }
            checkHold()
            return true
        } catch {
            inputs.releaseAll()
            if isStop(error) {
                settleAfterStop()
                return false
            }
            countFailed()
            fail(error, sequence: lastSequence, pts: MediaTime(nanoseconds: pts))
            output.announceNothing(upTo: pts)
            return true
        }
    }

    /// [stage thread] See ``Join/activeInput``.
    var activeInput: Int? {
        if case .join(let join) = instance.body { join.activeInput } else { nil }
    }
}

/// What a join reports about items that found no partner.
extension StageRunner {
    /// [the join's thread] An item of `input` matched nothing. The 10th, the 100th, the 1,000th … is reported.
    func warnOfUnmatched(_ input: Int) {
        guard let inputs else { return }
        let count = inputs.counts[input].unmatched.value
        guard count >= 10, Self.isPowerOfTen(count) else { return }
        let lead = inputs.names[inputs.lead]
        context.post(
            "items-unmatched", level: .warning,
            text:
                "\(title): \(count) items of '\(inputs.names[input])' matched no item of '\(lead)', the leading input:"
                + " they were too early, or another item was nearer."
                + " Put a stage 'rate' before the join if '\(inputs.names[input])' has the higher rate.",
            details: details(of: input))
    }

    /// [control thread, after the run] Reports each input that lost most of its items.
    ///
    /// - Parameters:
    ///   - match: How the join has matched its inputs.
    ///   - followsTimes: Whether it has given the newest item of each at the times of a rate.
    func reportJoinLosses(_ match: JoinMatch?, followsTimes: Bool) {
        guard let inputs else { return }
        for input in 0..<inputs.count {
            guard let text = lossText(inputs, input, match, followsTimes) else { continue }
            context.post(
                "input-mostly-unmatched", level: .warning, text: "\(title): \(text)", details: details(of: input))
        }
    }

    private func lossText(_ inputs: JoinInputs, _ input: Int, _ match: JoinMatch?, _ followsTimes: Bool) -> String? {
        let counts = inputs.counts + input
        let (given, unmatched) = (counts.pointee.given.value, counts.pointee.unmatched.value)
        let (incomplete, afterEnd) = (counts.pointee.incomplete.value, counts.pointee.missingAfterEnd.value)
        let name = inputs.names[input]
        if unmatched > given, followsTimes {
            return
                "\(unmatched) of \(given + unmatched) pictures of '\(name)' are not shown, since it has more than twice the rate of the output. Set a higher 'rate'."
        }
        if unmatched > given {
            return "\(unmatched) of \(given + unmatched) items of '\(name)' matched no item of the leading input."
                + " Put a stage 'rate' before the join so that '\(name)' and the leading input have one rate, or name another input as \"lead\". If their rates are the same, check the times at which they begin."
        }
        if incomplete > given / 2 {
            let remedy =
                switch match {
                case .exact:
                    " Use \"join\": { \"match\": \"nearest\" }, and a stage 'rate' where the rates differ; for live sources \"newest\". If the rates are the same, check the times at which the inputs begin."
                case .nearest:
                    " Put a stage 'rate' before the join where the rates of its inputs differ, or, for live sources, use \"join\": { \"match\": \"newest\" }."
                case .newest, nil: ""
                }
            return "\(incomplete) of \(given) items of '\(name)' found no match in another input.\(remedy)"
        }
        let calls = given + afterEnd + counts.pointee.missing.value + counts.pointee.repeated.value
        if afterEnd > calls / 2 {
            return "'\(name)' ended early: \(afterEnd) of \(calls) times it had no item."
                + " Use \"join\": { \"hold\": true } to keep its last picture, or \"whenEnded\": \"first\" to end with it."
        }
        return nil
    }

    private func details(of input: Int) -> JSONNode {
        guard let inputs else { return JSONNode(.object([])) }
        let members = [JSONNode.Member(key: "input", value: JSONNode(.string(inputs.names[input])))]
        return JSONNode(.object(members + Self.figures(inputs, input)))
    }

    /// [any thread] Figures of each input of a join; nil for other stages.
    var inputFigures: JSONNode? {
        guard let inputs else { return nil }
        return JSONNode(
            .array(
                (0..<inputs.count).map { input in
                    let name = JSONNode.Member(key: "from", value: JSONNode(.string(inputs.names[input])))
                    return JSONNode(.object([name] + Self.figures(inputs, input)))
                }))
    }

    private static func figures(_ inputs: JoinInputs, _ input: Int) -> [JSONNode.Member] {
        let counts = inputs.counts + input
        let missing = counts.pointee.missing.value + counts.pointee.missingAfterEnd.value
        let values = [
            ("given", counts.pointee.given.value), ("unmatched", counts.pointee.unmatched.value),
            ("repeated", counts.pointee.repeated.value), ("missing", missing),
        ]
        return values.map { JSONNode.Member(key: $0.0, value: JSONNode(.number(String($0.1)))) }
    }

    private static func isPowerOfTen(_ count: Int) -> Bool {
        var rest = count
        while rest > 1, rest % 10 == 0 { rest /= 10 }
        return rest == 1
    }
}
