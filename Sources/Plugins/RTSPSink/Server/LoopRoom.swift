// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Glibc

/// Checks that the descriptors and threads for NIO's loops are available, by taking them and giving them back. Where
/// NIO itself cannot get one, it ends the process.
enum LoopRoom {
    /// epoll, eventfd and timerfd.
    private static let descriptorsPerLoop = 3
    /// Descriptors of the listeners, and those that Dispatch opens when it first runs.
    private static let others = 6

    /// [control thread]
    ///
    /// - Throws: ``FrameHostError`` `.unavailable`.
    static func check(loops: Int) throws {
        let count = loops * descriptorsPerLoop + others
        var files: [Int32] = []
        defer { for file in files { close(file) } }
        for _ in 0..<count {
            let file = open("/dev/null", O_RDONLY | O_CLOEXEC)
            guard file >= 0 else {
                throw FrameHostError(
                    .unavailable,
                    what:
                        "the RTSP server needs \(count) file descriptors for its network threads: \(String(cString: strerror(errno)))",
                    remedy: "Raise the limit of open files (ulimit -n).")
            }
            files.append(file)
        }
        var threads: [pthread_t] = []
        defer { for thread in threads { pthread_join(thread, nil) } }
        for _ in 0..<loops {
            var thread = pthread_t()
            let result = pthread_create(&thread, nil, { _ in nil }, nil)
            guard result == 0 else {
                throw FrameHostError(
                    .unavailable,
                    what:
                        "the RTSP server cannot start its network threads (\(loops)): \(String(cString: strerror(result)))",
                    remedy:
                        "Raise the limit of processes (ulimit -u, or TasksMax= of a service), or end other programs.")
            }
            threads.append(thread)
        }
    }
}
