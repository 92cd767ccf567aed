// SPDX-License-Identifier: Apache-2.0

/// What became of the inputs of a run: for who must know whether all of a film arrived.
extension Chain {
    /// [any thread] The accounts of the sources that keep one, in the order of the chain.
    public var inputAccounts: [(stage: String, account: InputAccount)] {
        runners.compactMap { runner in
            runner.kind == .source ? runner.shown.context.inputAccount.map { (runner.id, $0) } : nil
        }
    }

    /// Items that were dropped although neither a stage nor a link of the chain is meant to drop them.
    public struct UnmeantDrop: Sendable, Equatable {
        /// The stage.
        public var stage: String
        /// Why: ``DropReason/failed``, ``DropReason/damaged``, ``DropReason/untilKeyframe``, or ``DropReason/byStage`` at
        /// an encoder.
        public var reason: DropReason
        /// How many.
        public var count: Int

        /// `3 items were dropped at 'rec' (stage failed)`.
        public var text: String {
            "\(count) \(count == 1 ? "item was" : "items were") dropped at '\(stage)' (\(reason.words(atLink: false)))"
        }
    }

    /// [any thread] See ``UnmeantDrop``. What links drop is what their `whenFull` asks for, and what stages drop by
    /// choice (``DropReason/byStage``), without a partner or while they are paused is what the chain asks for. An encoder
    /// of pictures has no choice: it drops those whose times it cannot use.
    public var unmeantDrops: [UnmeantDrop] {
        graph.everyRunner.flatMap { runner in
            let isEncoder = runner.kind == .transform && runner.shown.output?.encoded?.video != nil
            let reasons = [DropReason.failed, .damaged, .untilKeyframe] + (isEncoder ? [.byStage] : [])
            return reasons.compactMap { reason in
                let count = runner.dropCount(reason)
                return count > 0 ? UnmeantDrop(stage: runner.id, reason: reason, count: count) : nil
            }
        }
    }
}
