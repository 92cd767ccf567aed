// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Synchronization

/// One of the chains of a ``ChainsSession``. `@unchecked Sendable`: each member says who uses it.
final class ChainsEntry: @unchecked Sendable {
    let chain: ChainList.Chain
    let index: Int
    let run: RunSession
    /// Set until it is handed to the control thread.
    var prepared: RunSession.Prepared?
    /// Set where the chain could not be planned because something is away; for its control thread from then on.
    var away: ChainAway?
    /// Why it is still away; empty once it runs.
    let awayReasons = Mutex<[String]>([])
    /// Whether the chain was left out.
    var isWrong = false
    /// Whether a signal came before the chain's turn.
    var isUnwanted = false
    let ending = Mutex<RunSession.Ending?>(nil)
    /// Whether the control thread has nothing left to do.
    let isOver = Mutex(false)

    init(_ chain: ChainList.Chain, _ index: Int, _ run: RunSession) {
        self.chain = chain
        self.index = index
        self.run = run
    }

    /// What a control thread is handed. `@unchecked Sendable`: only that thread uses it from its start on.
    final class Handover: @unchecked Sendable {
        private var prepared: RunSession.Prepared?

        init(_ prepared: RunSession.Prepared) { self.prepared = prepared }

        func take() -> RunSession.Prepared {
            defer { prepared = nil }
            return prepared!
        }
    }

    /// As `--stats` writes them.
    func figures(_ ending: RunSession.Ending?) -> JSONNode {
        let word =
            isWrong
            ? "left-out"
            : !awayReasons.withLock({ $0.isEmpty })
                ? "away" : isUnwanted ? "not-started" : ending?.status == 0 ? "done" : "failed"
        return .object([
            ("chain", .string(chain.name)), ("file", .string(chain.path)), ("status", .string(word)),
            ("faults", .array((ending?.faults ?? []).map { .string($0) })), ("figures", ending?.figures ?? .null),
        ])
    }
}
