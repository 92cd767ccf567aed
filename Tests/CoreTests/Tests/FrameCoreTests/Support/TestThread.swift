// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import FrameCore

/// A thread of a test, which waits for it with a deadline: a lost wake-up fails the test instead of hanging it.
final class TestThread: Sendable {
    private let done = Condition()
    private let hasEnded = Locked(false)

    /// Begins at once.
    init(_ name: String, _ body: @escaping () -> Void) throws {
        try CountedThread.start(name: name, isBatch: false) { [done, hasEnded] in
            body()
            hasEnded.withLock { $0 = true }
            done.locked { done.broadcast() }
        }
    }

    var isOver: Bool { hasEnded.withLock { $0 } }

    /// False, and a failure of the test, when the thread has not ended after `seconds`.
    @discardableResult
    func join(within seconds: Int64 = 120, _ location: SourceLocation = #_sourceLocation) -> Bool {
        let deadline = ChainClock().now() + seconds * 1_000_000_000
        done.lock()
        while !isOver, ChainClock().now() < deadline { done.wait(until: deadline) }
        done.unlock()
        if !isOver { Issue.record("a thread did not end in \(seconds) s", sourceLocation: location) }
        return isOver
    }
}

/// Waits until `holds`, at most two minutes; whether it came true.
func eventually(_ holds: () -> Bool) -> Bool {
    let condition = Condition()
    let deadline = ChainClock().now() + 120_000_000_000
    var looks: Int64 = 0
    while !holds() {
        let now = ChainClock().now()
        if now > deadline { return false }
        // Most of the time it is a matter of microseconds.
        looks += 1
        condition.locked { condition.wait(until: now + min(looks * 2000, 1_000_000)) }
    }
    return true
}

/// Lets others go on for a while.
func pauseTest(ms: Int64) {
    let condition = Condition()
    let deadline = ChainClock().now() + ms * 1_000_000
    while ChainClock().now() < deadline { condition.locked { condition.wait(until: deadline) } }
}

extension Locked {
    /// The value at this moment.
    var now: Value { withLock { $0 } }
    func set(_ value: Value) { withLock { $0 = value } }
}
