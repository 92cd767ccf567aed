// SPDX-License-Identifier: Apache-2.0

import Glibc

/// Starts the processes of isolated stages, reads what they say, and notes their end: one thread, `isolation`, for all of a
/// program. It touches no frame and waits for none.
///
/// The thread never ends, since the kernel ends a process together with the thread that started it.
final class Supervisor: @unchecked Sendable {
    static let shared = Supervisor()

    private typealias Order = @Sendable (Supervisor) -> Void
    private let wake = PipeEnds(blocks: false)
    private let condition = Condition()
    // Under `condition`.
    private var orders: [Order] = []
    private var isRunning = false
    // [isolation thread]
    private var links: [StageLink] = []
    private var delayed: [(due: Int64, order: Order)] = []

    /// [any thread] Starts a process. The link tells how that went.
    ///
    /// - Throws: ``FrameHostError`` `.exhausted` where the thread cannot be started.
    func start(_ link: StageLink, _ make: JSONNode) throws {
        try perform { supervisor in
            link.start(make)
            if !link.isGone { supervisor.links.append(link) }
        }
    }

    /// [any thread] Runs `body` on the isolation thread, so many nanoseconds later.
    func perform(after delay: Int64 = 0, _ body: @escaping @Sendable () -> Void) throws {
        let due = MonotonicTime.now() + delay
        try perform { supervisor in
            if delay > 0 { supervisor.delayed.append((due, { _ in body() })) } else { body() }
        }
    }

    private func perform(_ order: @escaping Order) throws {
        try condition.locked {
            guard wake.isOpen else {
                throw FrameHostError(
                    .exhausted, what: "no process can be started for a stage: no file descriptor is free",
                    remedy: "Raise the limit of open files (ulimit -n).")
            }
            if !isRunning {
                do {
                    // It mostly waits, and so is no thread that needs a processor.
                    try NamedThread.start("isolation") { self.run() }
                } catch {
                    throw FrameHostError(
                        .exhausted, what: "no process can be started for a stage: no thread: \(error)",
                        remedy: NoThread.remedy)
                }
                isRunning = true
            }
            orders.append(order)
        }
        var byte: UInt8 = 0
        _ = write(wake.write, &byte, 1)
    }

    private func run() {
        while true {
            let orders = condition.locked { () -> [Order] in
                defer { self.orders.removeAll() }
                return self.orders
            }
            for order in orders { order(self) }
            let now = MonotonicTime.now()
            let due = delayed.filter { $0.due <= now }
            delayed.removeAll { $0.due <= now }
            for one in due { one.order(self) }
            links.removeAll { $0.isGone }
            wait()
        }
    }

    private func wait() {
        var polls = [pollfd(fd: wake.read, events: Int16(POLLIN), revents: 0)]
        for link in links {
            for file in [link.socket, link.output, link.process] {
                polls.append(pollfd(fd: file, events: Int16(POLLIN), revents: 0))
            }
        }
        let left = delayed.map(\.due).min().map { max(0, ($0 - MonotonicTime.now()) / 1_000_000 + 1) } ?? -1
        _ = poll(&polls, nfds_t(polls.count), Int32(min(left, 60_000)))
        var bytes = [UInt8](repeating: 0, count: 64)
        while read(wake.read, &bytes, bytes.count) > 0 {}
        for (index, link) in links.enumerated() where !link.isGone {
            let said = polls[(1 + 3 * index)..<(4 + 3 * index)].map { $0.revents != 0 }
            guard said.contains(true) else { continue }
            link.look(socket: said[0], output: said[1], process: said[2])
        }
    }
}
