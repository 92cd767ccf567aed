// SPDX-License-Identifier: Apache-2.0

import FrameCore
import FrameHTTP

/// The event loop of all ONVIF devices of the process. It stays until the process ends.
enum NetworkLoop {
    /// epoll, eventfd and timerfd of the loop; and a few for listener, discovery and the first client.
    private static let descriptors = 3 + 5
    private static let made = Locked<MultiThreadedEventLoopGroup?>(nil)

    /// [control thread] Checks first whether there are descriptors and a thread for it: NIO ends the process where it
    /// gets none.
    ///
    /// - Throws: ``FrameHostError`` `.unavailable`.
    static func ready() throws -> any EventLoop {
        if let made = made.withLock({ $0 }) { return made.next() }
        Descriptors.raise()
        try Descriptors.check(descriptors, for: "ONVIF", "its network thread and clients")
        try ThreadRoom.check(1, for: "ONVIF cannot start its network thread")
        return made.withLock { made in
            let group = made ?? MultiThreadedEventLoopGroup(numberOfThreads: 1)
            made = group
            return group.next()
        }
    }
}
