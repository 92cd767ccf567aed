// SPDX-License-Identifier: Apache-2.0

import FrameCore
import PictureStamp

/// How long pictures took from their capture to here, by the time of capture in their own stream.
///
/// [stage thread] adds, [any thread] reads.
final class StreamLatency: Sendable {
    private struct State {
        /// The newest latencies, in a ring.
        var samples: [Int64] = []
        var next = 0
        var stamped = 0
        var unstamped = 0
        /// When the first picture came, nanoseconds since 1970.
        var begin: Int64?
    }

    /// A server gives a new reader what it has kept since the last keyframe: old pictures, at once. Pictures within
    /// this time after the first one are not counted, nanoseconds.
    private static let settling: Int64 = 1_000_000_000

    /// The most pictures that the figures cover: ten minutes at 30 a second.
    private static let capacity = 18_000
    private let state: Locked<State>

    init() {
        var state = State()
        state.samples.reserveCapacity(Self.capacity)
        self.state = Locked(state)
    }

    /// Looks at a picture's access unit.
    ///
    /// - Parameter now: Nanoseconds since 1970.
    func see(_ unit: borrowing AccessUnit, now: Int64) {
        let stamp = unit.withBytes { PictureStamp($0) }
        state.withLock { state in
            let begin = state.begin ?? now
            state.begin = begin
            // A clock that is set back ends the wait too.
            guard now < begin || now.subtractingReportingOverflow(begin).partialValue >= Self.settling else { return }
            guard let stamp else {
                state.unstamped += 1
                return
            }
            state.stamped += 1
            let (latency, isTooMuch) = now.subtractingReportingOverflow(stamp.capturedAt)
            guard !isTooMuch else { return }
            if state.samples.count < Self.capacity {
                state.samples.append(latency)
            } else {
                state.samples[state.next] = latency
                state.next = (state.next + 1) % Self.capacity
            }
        }
    }

    /// `pictures`, `unstamped`, and of those with a stamp `p50Ms`, `p99Ms`, `leastMs` and `mostMs`, null without any.
    var figures: JSONNode {
        let state = state.withLock { $0 }
        let sorted = state.samples.sorted()
        /// The smallest sample that at least `percent` of all do not exceed.
        func milliseconds(_ percent: Int) -> JSONNode {
            guard !sorted.isEmpty else { return .null }
            return .number(Double(sorted[max((sorted.count * percent + 99) / 100 - 1, 0)]) / 1e6)
        }
        return [
            "pictures": .number(state.stamped + state.unstamped), "unstamped": .number(state.unstamped),
            "p50Ms": milliseconds(50), "p99Ms": milliseconds(99), "leastMs": milliseconds(0),
            "mostMs": milliseconds(100),
        ]
    }
}
