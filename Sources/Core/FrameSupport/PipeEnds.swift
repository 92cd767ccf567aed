// SPDX-License-Identifier: Apache-2.0

import Glibc

/// The two ends of a pipe (pipe(2)). The owner closes them; a program that this one starts has neither.
public struct PipeEnds: Sendable {
    /// -1 where the system gave none, as ``write``; `errno` then says why.
    public let read: Int32
    public let write: Int32

    /// - Parameter blocks: Whether calls wait for bytes, or for room.
    public init(blocks: Bool = true) {
        var ends: [Int32] = [-1, -1]
        _ = pipe(&ends)
        for end in ends where end >= 0 {
            _ = fcntl(end, F_SETFD, FD_CLOEXEC)
            if !blocks { _ = fcntl(end, F_SETFL, O_NONBLOCK) }
        }
        (read, write) = (ends[0], ends[1])
    }

    /// Whether the system gave a pipe.
    public var isOpen: Bool { read >= 0 }

    public func close() { for end in [read, write] where end >= 0 { Glibc.close(end) } }
}
