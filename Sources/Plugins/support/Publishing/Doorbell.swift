// SPDX-License-Identifier: Apache-2.0

import FrameCore
import FrameSupport
import Glibc

/// Wakes one thread, which waits for at most some time. [any thread]
package final class Doorbell: Sendable {
    /// Where the system gave none, the thread looks every 20 ms.
    private let ends = PipeEnds(blocks: false)

    package init() {}

    deinit { ends.close() }

    package func ring() {
        var one: UInt8 = 1
        if ends.isOpen { _ = write(ends.write, &one, 1) }
    }

    /// Waits until it is rung, or something happens on a connection.
    ///
    /// - Parameter writes: Whether it is enough that the connection can be written.
    package func wait(milliseconds: Int, beside socket: ServerSocket? = nil, writes: Bool = false) {
        guard socket?.hasMore != true else { return }
        let milliseconds = Int32(min(max(milliseconds, 0), 60_000))
        var wanted = socket.map { [$0.wanted(writes: writes)] } ?? []
        if ends.isOpen { wanted.append(pollfd(fd: ends.read, events: Int16(POLLIN), revents: 0)) }
        poll(&wanted, nfds_t(wanted.count), ends.isOpen ? milliseconds : min(milliseconds, 20))
        guard ends.isOpen, wanted.last?.revents != 0 else { return }
        var bytes = [UInt8](repeating: 0, count: 4096)
        _ = read(ends.read, &bytes, bytes.count)
    }
}
