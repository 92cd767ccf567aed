// SPDX-License-Identifier: Apache-2.0

import Glibc

/// Bounds what a server may say though nothing asked for it. Each message costs processor time, and whoever answers in a
/// server's place may send messages for ever. A value: time goes in.
///
/// A server that is well asks now and then whether this client is there, and tells of changes of its cluster.
package struct UnaskedBound {
    /// So many messages are taken within a window of this many milliseconds.
    package static let mostMessages = 200
    package static let window: Int64 = 10_000
    /// How long the server is left alone that sent more, ms.
    package static let leftAlone: Int64 = 30_000
    /// How long nothing is read after a read that brought nothing that was asked for, µs. It bounds the bytes of one
    /// endless message too, and the turns for bytes that come one by one.
    private static let pause: useconds_t = 2_000

    private var (begin, messages): (Int64, Int) = (0, 0)

    package init() {}

    /// Counts a message that nothing asked for.
    ///
    /// - Parameter now: Milliseconds of the monotonic clock.
    package mutating func count(now: Int64) throws(ServerFault) {
        if now - begin >= Self.window { (begin, messages) = (now, 0) }
        messages += 1
        guard messages <= Self.mostMessages else {
            throw ServerFault(
                "it sent more than \(Self.mostMessages) messages within \(Self.window / 1000) s that nothing had asked for",
                isFlood: true)
        }
    }

    /// Waits before the next read, since the last one brought nothing that was asked for.
    package static func rest() { usleep(pause) }
}
