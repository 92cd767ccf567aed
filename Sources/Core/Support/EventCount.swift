// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// A number that changes with every event, so that a thread can see whether something has happened since it last
/// looked.
///
/// It wraps around: after 2^32 events, which a queue at full speed reaches in an hour, it goes on at 0. It begins
/// shortly before that, so that every run and every test passes the end. [any thread]
struct EventCount: ~Copyable, Sendable {
    /// Events until the count wraps around for the first time.
    static let eventsBeforeWrap: UInt32 = 100
    private let count = Atomic<UInt32>(0 &- eventsBeforeWrap)

    /// Something has happened. Sequentially consistent.
    @inline(__always)
    func advance() { count.wrappingAdd(1, ordering: .sequentiallyConsistent) }

    /// Which events have been seen, to be compared for equality. Sequentially consistent, for a thread that first
    /// raises a flag and then looks.
    var seen: UInt32 {
        @inline(__always) get { count.load(ordering: .sequentiallyConsistent) }
    }

    /// The same for a thread that looks again and again.
    var glimpse: UInt32 {
        @inline(__always) get { count.load(ordering: .acquiring) }
    }
}
