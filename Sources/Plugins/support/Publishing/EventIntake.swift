// SPDX-License-Identifier: Apache-2.0

import FrameCore
import FrameSupport

/// Writes a run's events into a spool, on a thread of its own.
package final class EventIntake: Sendable {
    private let subscription: EventSubscription
    private let control: any RunControl
    private let filter: EventFilter
    private let identity: EventIdentity
    private let spool: Spool
    private let key: String
    private let (isStopping, hasEnded) = (WaitableFlag(), WaitableFlag())
    /// Used by the spool thread and by the sending thread.
    private let news: Locked<OutwardNews>

    /// - Parameters:
    ///   - key: The service's key in the chain file.
    ///   - news: Makes the events about losses and about the disk.
    package init(
        _ control: any RunControl, key: String, filter: EventFilter, identity: EventIdentity, spool: Spool,
        news: Locked<OutwardNews>
    ) {
        subscription = control.subscribe(capacity: EventSubscription.capacity)
        self.control = control
        self.key = key
        self.filter = filter
        self.identity = identity
        self.spool = spool
        self.news = news
    }

    /// [control thread]
    ///
    /// - Throws: ``FrameHostError`` `.exhausted`.
    package func start() throws {
        try ServiceThread.start(name: "\(key)/spool") { [self] in
            var looked = MonotonicTime.milliseconds()
            while !isStopping.isRaised {
                let now = MonotonicTime.milliseconds()
                if now - looked >= 1000 {
                    spool.look()
                    looked = now
                }
                if subscription.wait(seconds: 0.2) { takeOnce() }
                report()
            }
            hasEnded.raise()
        }
    }

    /// [thread of the end] Writes the last events, with what was lost until now.
    ///
    /// - Parameter milliseconds: How long it may wait for the disk.
    package func stop(within milliseconds: Int) {
        isStopping.raise()
        subscription.endWaits()
        guard hasEnded.wait(milliseconds: milliseconds) else { return }
        takeOnce()
        report(isLast: true)
        takeOnce()
        spool.flush()
    }

    /// [thread of the end, after the sender has ended] Writes down what was acknowledged, and reports every loss that was
    /// not reported.
    package func finish() {
        guard hasEnded.wait(milliseconds: 1) else {
            // It waits for the disk, with the spool's lock. What it has not taken is lost.
            let (events, lost) = subscription.take()
            let losses: [Spool.Loss: Int] = [.notWritten: events.count { filter.takes($0) }, .tooFast: lost]
            let now = control.clock.now()
            news.withLock { $0.lost(losses.filter { $0.value > 0 }, now: now, isLast: true) }?.post(control)
            return
        }
        spool.countLeft()
        report(isLast: true)
    }

    private func takeOnce() {
        let (events, lost) = subscription.take()
        spool.count(.tooFast, lost)
        let chosen = events.filter { filter.takes($0) }
        guard !chosen.isEmpty else { return }
        let (host, chain) = (identity.host, control.chainName)
        spool.append(chosen) { event, number in
            let id = identity.id(number)
            let text = EventText.make(control.json(of: event), id: id, number: number, host: host, chain: chain)
            guard text.utf8.count <= EventText.mostBytes else { return nil }
            return SpoolRecord(number: number, id: id, event: EventName.word(event.name), text: text)
        }
    }

    private func report(isLast: Bool = false) {
        if spool.fault != nil { spool.flush() }
        let (losses, fault, now) = (spool.takeLosses(), spool.fault, control.clock.now())
        for said in news.withLock({ $0.ofSpool(losses: losses, fault: fault, now: now, isLast: isLast) }) {
            said.post(control)
        }
    }
}
