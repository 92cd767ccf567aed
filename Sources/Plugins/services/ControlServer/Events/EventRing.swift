// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// The last events of a run, for any number of listeners, each with its own position. A listener that is slower than
/// the events loses the oldest, and is told how many.
final class EventRing: Sendable {
    struct Batch: Sendable {
        /// The number and JSON of each event.
        var events: [(number: Int, text: String)] = []
        var lost = 0
        /// Where to read on.
        var next: Int
    }

    private struct Waiter {
        var continuation: CheckedContinuation<Void, Never>
        var past: Int
        /// System clock.
        var deadline: Int64
    }

    private struct State {
        var texts: [String] = []
        /// The number of the first text.
        var first = 1
        var waiters: [Int: Waiter] = [:]
        var gone: Set<Int> = []
        var nextListener = 0
        var isClosed = false

        /// Bytes of all texts.
        var bytes = 0

        var next: Int { first + texts.count }

        mutating func removeFirst(_ count: Int) {
            bytes -= texts[..<count].reduce(0) { $0 + $1.utf8.count }
            texts.removeFirst(count)
            first += count
        }
    }

    /// The most bytes of all texts that are kept.
    static let mostBytes = 4 << 20

    /// Distinguishes the ids of one run from those of another.
    let run: String
    private let capacity: Int
    private let state = Locked(State())

    init(run: String, capacity: Int = 1024) {
        self.run = run
        self.capacity = max(capacity, 4)
    }

    /// [any thread] Adds an event.
    func append(_ text: String) {
        let ready = state.withLock { state -> [Waiter] in
            if state.texts.count >= capacity {
                // Removes some at once, so that a full ring does not move all its texts for each new event.
                state.removeFirst(capacity / 4)
            }
            state.texts.append(text)
            state.bytes += text.utf8.count
            while state.bytes > Self.mostBytes, state.texts.count > 1 { state.removeFirst(1) }
            let ready = Array(state.waiters.values)
            state.waiters.removeAll(keepingCapacity: true)
            return ready
        }
        for waiter in ready { waiter.continuation.resume() }
    }

    /// The number of the next event.
    var next: Int { state.withLock { $0.next } }
    var isClosed: Bool { state.withLock { $0.isClosed } }

    /// The most bytes of a batch of several events: each slow client may have one waiting for it.
    private static let mostBatchBytes = 64 << 10

    /// The events from `number` on.
    func read(from number: Int, most: Int = 256) -> Batch {
        state.withLock { state in
            let start = max(number, state.first)
            guard start < state.next else { return Batch(lost: max(state.first - number, 0), next: state.next) }
            var (end, bytes) = (start, 0)
            while end < min(start + most, state.next) {
                bytes += state.texts[end - state.first].utf8.count
                if end > start, bytes > Self.mostBatchBytes { break }
                end += 1
            }
            return Batch(
                events: (start..<end).map { ($0, state.texts[$0 - state.first]) }, lost: start - number, next: end)
        }
    }

    // MARK: Waiting

    func addListener() -> Int {
        state.withLock { state in
            state.nextListener += 1
            return state.nextListener
        }
    }

    /// Ends all waits of the listener, now and later: its client has gone.
    func end(_ listener: Int) {
        let waiter = state.withLock { state in
            state.gone.insert(listener)
            return state.waiters.removeValue(forKey: listener)
        }
        waiter?.continuation.resume()
    }

    /// Ends the listener's present wait.
    func wake(_ listener: Int) {
        state.withLock { $0.waiters.removeValue(forKey: listener) }?.continuation.resume()
    }

    /// Frees the listener's place, after its last wait.
    func remove(_ listener: Int) { state.withLock { _ = $0.gone.remove(listener) } }

    func hasGone(_ listener: Int) -> Bool { state.withLock { $0.gone.contains(listener) } }

    /// Waits until there is an event with this number, until ``tick(_:)`` finds the deadline passed, or until the
    /// listener ends.
    func wait(_ listener: Int, for number: Int, until deadline: Int64) async {
        await withCheckedContinuation { continuation in
            let isReady = state.withLock { state in
                guard state.next <= number, !state.isClosed, !state.gone.contains(listener) else { return true }
                state.waiters[listener] = Waiter(continuation: continuation, past: number, deadline: deadline)
                return false
            }
            if isReady { continuation.resume() }
        }
    }

    /// [service thread] Ends the waits whose deadline has passed.
    func tick(_ now: Int64) {
        let due = state.withLock { state -> [Waiter] in
            let due = state.waiters.filter { $0.value.deadline <= now }
            for listener in due.keys { state.waiters[listener] = nil }
            return Array(due.values)
        }
        for waiter in due { waiter.continuation.resume() }
    }

    /// No more events: every wait ends.
    func close() {
        let all = state.withLock { state in
            defer { state.waiters.removeAll() }
            state.isClosed = true
            return Array(state.waiters.values)
        }
        for waiter in all { waiter.continuation.resume() }
    }
}
