// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// The item that a stage has in hand or had last, for its events and for the report of a crash.
struct CurrentItem: ~Copyable, Sendable {
    private let sequence = Atomic<UInt64>(.max)
    private let time = Atomic<Int64>(.min)

    /// [stage thread] `pts` is nil in a source, whose next item has no time yet.
    @inline(__always)
    func set(_ number: UInt64, pts: MediaTime?) {
        sequence.store(number, ordering: .relaxed)
        time.store(pts?.nanoseconds ?? .min, ordering: .relaxed)
    }

    /// [stage thread] Sets the frame; the time stays.
    @inline(__always)
    func set(_ number: UInt64) { sequence.store(number, ordering: .relaxed) }

    /// [stage thread] Takes over the last item of `other`.
    func take(over other: borrowing CurrentItem) {
        sequence.store(other.sequence.load(ordering: .relaxed), ordering: .relaxed)
        time.store(other.time.load(ordering: .relaxed), ordering: .relaxed)
    }

    /// [any thread] Its sequence number; nil before the first.
    var frame: UInt64? {
        let number = sequence.load(ordering: .relaxed)
        return number == .max ? nil : number
    }

    /// [any thread]
    var pts: MediaTime? {
        let nanoseconds = time.load(ordering: .relaxed)
        return nanoseconds == .min ? nil : MediaTime(nanoseconds: nanoseconds)
    }
}
