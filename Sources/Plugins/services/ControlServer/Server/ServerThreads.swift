// SPDX-License-Identifier: Apache-2.0

import FrameCore
import FrameHTTP

/// The event loop of all control servers of the process, and the threads that answer their requests.
///
/// Shared, since each loop takes three descriptors and each thread counts against the limits of a container. Threads of
/// their own, since those of Swift's pool are started when there is work: where the system then gives none, the pool waits
/// for one for ever, and a server that has accepted a connection would never answer. All of them stay until the process
/// ends.
final class ServerThreads: TaskExecutor {
    private static let answering = 2
    /// epoll, eventfd and timerfd of the loop; and a few for the listener and the first client.
    private static let descriptors = 3 + 5
    private static let made = Locked<ServerThreads?>(nil)

    private let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
    private let pool = NIOThreadPool(numberOfThreads: answering)

    private init() { pool.start() }

    var loop: any EventLoop { group.next() }

    /// [any thread] Made when it is first used.
    static var shared: ServerThreads {
        made.withLock { made in
            if let made { return made }
            let threads = ServerThreads()
            made = threads
            return threads
        }
    }

    /// [control thread] Checks first whether there are descriptors and threads for it: NIO ends the process where it gets
    /// none.
    ///
    /// - Throws: ``FrameHostError`` `.unavailable`.
    static func ready() throws -> ServerThreads {
        if let made = made.withLock({ $0 }) { return made }
        Descriptors.raise()
        try Descriptors.check(descriptors, for: "the control server", "its network thread and clients")
        try ThreadRoom.check(answering + 1, for: "the control server cannot start the threads that answer requests")
        return shared
    }

    /// [any thread] Starts a task that runs on these threads only.
    func begin(_ body: @escaping @Sendable () async -> Void) {
        Task(executorPreference: self) { await body() }
    }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        pool.submit { [self] _ in job.runSynchronously(on: asUnownedTaskExecutor()) }
    }
}
