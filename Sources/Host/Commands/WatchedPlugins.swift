// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Glibc
import Synchronization

/// The plugins of a run that are loaded again whenever their files change.
final class WatchedPlugins: Sendable {
    /// The last change of each file, by its path.
    private let retries = Mutex<[String: PluginRetry]>([:])
    private let replies: CommandReplies

    init(_ replies: CommandReplies) { self.replies = replies }

    /// [any thread] Loads a watched plugin from its file, which has changed. A reload that the chain had no time for is
    /// tried again after a while. One that comes before the chain runs is tried as soon as it does.
    func reload(_ path: String, _ chain: Chain?, _ document: ChainDocument?) {
        // Nothing is to be done where the file is again the one that the chain uses.
        guard !isInUse(path, document) else {
            return retries.withLock { _ = $0[path]?.drop() }
        }
        let change = retries.withLock { $0[path, default: PluginRetry(path)].begin() }
        reload(path, change: change, chain, document)
    }

    private func isInUse(_ path: String, _ document: ChainDocument?) -> Bool {
        guard let sum = document?.sumInUse(of: path) else { return false }
        return PluginCopy.sum(of: path) == sum
    }

    /// [thread of the lookout] Tries those reloads of watched plugins again that are due. Nothing is left to do where the
    /// file is again the one that the chain uses.
    func retry(_ chain: Chain, _ document: ChainDocument) {
        let now = chain.clock.now()
        let due = retries.withLock { $0 }.filter { $0.value.isDue(now: now) }.keys.sorted()
        for path in due where access(path, R_OK) == 0 && !PluginCopy.isBeingWritten(path) {
            if isInUse(path, document) {
                retries.withLock { _ = $0[path]?.drop() }
                continue
            }
            guard let change = retries.withLock({ $0[path]?.beginAgain(now: now) }) else { continue }
            reload(path, change: change, chain, document)
        }
    }

    private func reload(_ path: String, change: Int, _ chain: Chain?, _ document: ChainDocument?) {
        guard let chain, let document else {
            retries.withLock { _ = $0[path]?.postpone(change) }
            return
        }
        let sum = Locked<UInt64?>(nil)
        document.reloadPlugin(
            path, chain, isWatched: true, loaded: { loaded in sum.withLock { $0 = loaded } },
            reply: { [replies, clock = chain.clock, weak self] answer in
                let (now, isBusy, tried) = (clock.now(), answer.isBusy, sum.withLock { $0 })
                let isReported =
                    self?.retries.withLock {
                        $0[path]?.ended(change, isBusy: isBusy, sum: tried, now: now) ?? true
                    } ?? true
                if isReported { replies.add(answer, number: 0, tag: nil, time: now) }
            })
    }
}
