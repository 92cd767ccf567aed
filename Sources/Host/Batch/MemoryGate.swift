// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Synchronization

/// Decides which workers may start, so that all running workers fit into memory. Each worker first plans, and reports
/// its need. [any thread]
final class MemoryGate: Sendable {
    /// The memory that a worker takes beside its plan: the program, its libraries, their buffers.
    static let baseBytes = 96 << 20

    private struct State {
        var taken = 0
        var running = 0
        var largest = 0
    }

    /// The memory that all workers may take together; nil if the system does not say how much there is.
    let bytes: Int?
    private let state = Mutex(State())

    init() { bytes = AvailableMemory.now().map { $0.bytes / 10 * 9 } }

    enum Answer: Equatable {
        case go
        /// Other workers have the memory that this worker needs.
        case wait
        /// The worker would not fit even if it ran alone.
        case never
    }

    /// Asks for the memory that a plan takes. The worker has that memory if the answer is `go`.
    func ask(_ planned: Int) -> Answer {
        guard let bytes else { return .go }
        let (needed, tooMuch) = planned.addingReportingOverflow(Self.baseBytes)
        return state.withLock { state in
            state.largest = max(state.largest, tooMuch ? .max : needed)
            guard !tooMuch, needed <= bytes else { return .never }
            // Other programs take memory too, so the memory that is free now counts as well. One worker may always go.
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

    /// Gives back the memory that a worker had.
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
