// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// Checks that the descriptors and threads for NIO's loops are available. Where NIO itself cannot get one, it ends the
/// process.
enum LoopRoom {
    /// epoll, eventfd and timerfd.
    private static let descriptorsPerLoop = 3
    /// Descriptors of the listeners, and those that Dispatch opens when it first runs.
    private static let others = 6

    /// [control thread]
    ///
    /// - Throws: ``FrameHostError`` `.unavailable`.
    static func check(loops: Int) throws {
        try Descriptors.check(loops * descriptorsPerLoop + others, for: "the RTSP server", "its network threads")
        try ThreadRoom.check(loops, for: "the RTSP server cannot start its network threads")
    }
}
