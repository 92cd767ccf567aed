// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Glibc

/// Wakes one thread, which waits for at most some time. [any thread]
package final class Doorbell: Sendable {
    /// The two ends of a pipe; -1 where the system gave none, and the thread looks every 20 ms.
    private let (reader, writer): (Int32, Int32)

    package init() {
        var ends: [Int32] = [-1, -1]
        guard pipe(&ends) == 0 else {
            (reader, writer) = (-1, -1)
            return
        }
        for end in ends {
            _ = fcntl(end, F_SETFD, FD_CLOEXEC)
            _ = fcntl(end, F_SETFL, O_NONBLOCK)
        }
        (reader, writer) = (ends[0], ends[1])
    }

    deinit {
        guard reader >= 0 else { return }
        close(reader)
        close(writer)
    }

    package func ring() {
        var one: UInt8 = 1
        if writer >= 0 { _ = write(writer, &one, 1) }
    }

    /// Waits until it is rung, or something happens on a connection.
    ///
    /// - Parameter writes: Whether it is enough that the connection can be written.
    package func wait(milliseconds: Int, beside socket: ServerSocket? = nil, writes: Bool = false) {
        guard socket?.hasMore != true else { return }
        let milliseconds = Int32(min(max(milliseconds, 0), 60_000))
        var wanted = socket.map { [$0.wanted(writes: writes)] } ?? []
        if reader >= 0 { wanted.append(pollfd(fd: reader, events: Int16(POLLIN), revents: 0)) }
        poll(&wanted, nfds_t(wanted.count), reader >= 0 ? milliseconds : min(milliseconds, 20))
        guard reader >= 0, wanted.last?.revents != 0 else { return }
        var bytes = [UInt8](repeating: 0, count: 4096)
        _ = read(reader, &bytes, bytes.count)
    }
}

/// The monotonic clock, for waits that need no chain's clock.
package enum SystemMilliseconds {
    package static func now() -> Int64 {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000
    }
}
