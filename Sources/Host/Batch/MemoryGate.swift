// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Synchronization

/// Decides which workers may start, so that all that run fit into memory. Each worker plans first and reports its need.
/// [any thread]
final class MemoryGate: Sendable {
    /// What a worker takes beside its plan: the program, its libraries, their buffers.
    static let baseBytes = 96 << 20

    private struct State {
        var taken = 0
        var running = 0
        var largest = 0
    }

    /// What all workers may take together; nil where the system does not say what there is.
    let bytes: Int?
    private let state = Mutex(State())

    init() { bytes = AvailableMemory.now().map { $0.bytes / 10 * 9 } }

    enum Answer: Equatable {
        case go
        /// Other workers have the memory that it needs.
        case wait
        /// It would not fit even alone.
        case never
    }

    /// Asks for what a plan takes, and keeps it where the answer is `go`.
    func ask(_ planned: Int) -> Answer {
        guard let bytes else { return .go }
        let (needed, tooMuch) = planned.addingReportingOverflow(Self.baseBytes)
        return state.withLock { state in
            state.largest = max(state.largest, tooMuch ? .max : needed)
            guard !tooMuch, needed <= bytes else { return .never }
            // Other programs take memory too: what there is now counts as well, but one worker always goes.
            guard state.running > 0 else {
                state.taken = needed
                state.running = 1
                return .go
            }
            guard needed <= bytes - state.taken, needed <= AvailableMemory.now()?.bytes ?? .max else { return .wait }
            state.taken += needed
            state.running += 1
            return .go
        }
    }

    /// Gives back what a worker had.
    func giveBack(_ planned: Int) {
        guard bytes != nil else { return }
        state.withLock { state in
            state.taken -= planned + Self.baseBytes
            state.running -= 1
        }
    }

    /// The most that a worker has asked for, with ``baseBytes``; 0 before any has.
    var largest: Int { state.withLock { $0.largest } }
}
