// SPDX-License-Identifier: Apache-2.0

/// Starts a thread: its name, whether only throughput counts, what it does, and what it calls as its last act.
/// See ``CountedThread``.
typealias ThreadStart =
    (_ name: String, _ isBatch: Bool, _ body: @escaping () -> Void, _ ended: @escaping () -> Void) throws -> Void

/// The threads that a change may need, started before it begins. So a change for which the system has too few threads
/// is refused while nothing has been touched, and what is certain finds its thread.
///
/// They sleep until they get work. Those that got none end when the reserve is freed.
final class ThreadReserve: Sendable {
    /// `@unchecked Sendable`: everything is used under the condition's lock.
    private final class Waiting: @unchecked Sendable {
        let condition = Condition()
        /// Threads that were started and have no work yet.
        var free = 0
        var work: [Work] = []
        var isClosed = false

        /// [a thread of the reserve] Its work; nil where there will be none.
        func next() -> Work? {
            condition.locked {
                while work.isEmpty, !isClosed { condition.wait() }
                return work.isEmpty ? nil : work.removeFirst()
            }
        }
    }

    private final class Work: @unchecked Sendable {
        let name: String
        let isBatch: Bool
        var body: (() -> Void)?
        let ended: () -> Void

        init(_ name: String, _ isBatch: Bool, _ body: @escaping () -> Void, _ ended: @escaping () -> Void) {
            (self.name, self.isBatch, self.body, self.ended) = (name, isBatch, body, ended)
        }
    }

    /// What one thread does; used only by that thread from its start on.
    private final class Place {
        var work: Work?
    }

    private let waiting = Waiting()

    /// [desk's thread]
    ///
    /// - Throws: What `start` throws, where the system gives fewer threads. Those that it gave end.
    init(_ count: Int, start: ThreadStart) throws {
        for _ in 0..<count {
            let place = Place()
            do {
                try start(
                    "reserve", false,
                    { [waiting] in
                        Spinner.fallAsleep()
                        place.work = waiting.next()
                        Spinner.wakeUp()
                        guard let work = place.work else { return }
                        NamedThread.dress(name: work.name, isBatch: work.isBatch)
                        work.body?()
                        work.body = nil
                    }, { place.work?.ended() })
            } catch {
                close()
                throw error
            }
            waiting.condition.locked { waiting.free += 1 }
        }
    }

    deinit { close() }

    private func close() {
        waiting.condition.locked {
            waiting.isClosed = true
            waiting.condition.broadcast()
        }
    }

    /// [any thread] Gives work to a thread of the reserve.
    ///
    /// - Returns: False where all of them have some.
    func start(
        name: String, isBatch: Bool, body: @escaping () -> Void, ended: @escaping () -> Void
    ) -> Bool {
        waiting.condition.locked {
            guard waiting.free > 0 else { return false }
            waiting.free -= 1
            waiting.work.append(Work(name, isBatch, body, ended))
            waiting.condition.signal()
            return true
        }
    }
}
