// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// Delays a drain until the commands before it are answered, such as a snapshot or a pause. Otherwise the sources
/// would end before the commands are carried out.
///
/// A stage that hangs delays a drain no longer than ``patience``. [any thread]
final class DrainOrder: Sendable {
    /// Nanoseconds; longer than a stage may take for a picture or a change.
    static let patience: Int64 = 3_000_000_000

    private struct State {
        var nextNumber = 0
        var open: Set<Int> = []
        /// A waiting drain: the commands it waits for, and its deadline on the chain clock.
        var waiting: (commands: Set<Int>, until: Int64)?
    }

    private let state = Mutex(State())

    /// Counts a command that starts. Its number is for ``ended(_:)``.
    func begin() -> Int {
        state.withLock { state in
            state.nextNumber += 1
            state.open.insert(state.nextNumber)
            return state.nextNumber
        }
    }

    /// Notes that a command is answered.
    ///
    /// - Returns: Whether the chain is to be drained now.
    func ended(_ number: Int) -> Bool {
        state.withLock { state in
            state.open.remove(number)
            state.waiting?.commands.remove(number)
            guard state.waiting?.commands.isEmpty == true else { return false }
            state.waiting = nil
            return true
        }
    }

    /// Asks for a drain.
    ///
    /// - Returns: Whether the chain must be drained now. Otherwise ``ended(_:)`` or ``isDue(now:)`` tells when.
    func drain(now: Int64) -> Bool {
        state.withLock { state in
            guard !state.open.isEmpty else { return true }
            if state.waiting == nil { state.waiting = (state.open, now + Self.patience) }
            return false
        }
    }

    /// [control thread] Whether a drain has waited long enough, so that the chain must be drained now.
    func isDue(now: Int64) -> Bool {
        state.withLock { state in
            guard let waiting = state.waiting, now >= waiting.until else { return false }
            state.waiting = nil
            return true
        }
    }
}
