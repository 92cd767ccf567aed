// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Synchronization

/// The chain file of a run that is read again whenever it changes.
final class WatchedChainFile: Sendable {
    /// The last change.
    private let retry = Mutex(ChangeRetry())
    private let replies: CommandReplies

    init(_ replies: CommandReplies) { self.replies = replies }

    /// What becomes of an attempt to reload.
    private enum Attempt {
        case made
        /// The chain runs as its file says, since a command or a signal has reloaded it.
        case isNeedless
        /// It would undo what came after it.
        case isOutdated
    }

    /// [control thread] Reloads the chain file where it has changed. A reload that the chain had no time for is
    /// tried again after a while, unless the chain was changed in another way meanwhile.
    func look(_ watch: inout FileWatch, _ chain: Chain, _ document: ChainDocument) {
        let now = chain.clock.now()
        let attempt: Int?
        if watch.hasChanged(now: now) {
            let changes = document.changes
            attempt = retry.withLock { $0.begin(changes: changes) }
        } else if retry.withLock({ $0.isDue(now: now) }), watch.isThere {
            attempt = retry.withLock { $0.beginAgain(now: now) }
        } else {
            attempt = nil
        }
        guard let change = attempt else { return }
        let outcome = Locked(Attempt.made)
        document.reload(
            chain,
            check: { [weak self, document] in
                let changes = document.changes
                guard self?.retry.withLock({ $0.isOutdated(change, changes: changes) }) == true else { return }
                let isNeedless = document.isAsItsFile
                outcome.withLock { $0 = isNeedless ? .isNeedless : .isOutdated }
                throw FrameHostError(
                    .unavailable,
                    what:
                        "framehost does not try the changed chain file again: a command has changed the chain meanwhile",
                    remedy: "Save the file again to use it.")
            },
            reply: { [replies, clock = chain.clock, weak self, weak chain] answer in
                let (now, isBusy) = (clock.now(), answer.isBusy)
                guard self?.retry.withLock({ $0.ended(change, isBusy: isBusy, now: now) }) ?? true else { return }
                switch outcome.withLock({ $0 }) {
                case .made:
                    let said = answer.ofReload("the chain file", chain, whenBusy: CommandAnswer.triesAgain)
                    replies.add(said, number: 0, tag: nil, time: now)
                case .isNeedless: break
                case .isOutdated: replies.add(answer, number: 0, tag: nil, time: now)
                }
            })
    }
}
