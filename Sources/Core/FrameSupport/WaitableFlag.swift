// SPDX-License-Identifier: Apache-2.0

/// Something that happens once, and that threads can wait for: the end of a thread, the order to end one. [any thread]
///
/// `@unchecked Sendable`: the value is reached only under the lock.
public final class WaitableFlag: @unchecked Sendable {
    private let condition = Condition()
    private var value = false

    /// A flag that is not raised.
    public init() {}

    /// Whether the flag is raised. It stays raised.
    public var isRaised: Bool { condition.locked { value } }

    /// Ends every wait that is under way and every later one.
    public func raise() {
        condition.locked {
            value = true
            condition.broadcast()
        }
    }

    /// Waits until the flag is raised.
    public func wait() { condition.locked { while !value { condition.wait() } } }

    /// Waits until the flag is raised, at most until `deadline` of ``MonotonicTime``.
    ///
    /// - Returns: Whether it is raised.
    @discardableResult
    public func wait(until deadline: Int64) -> Bool {
        condition.locked {
            while !value, MonotonicTime.now() < deadline { condition.wait(until: deadline) }
            return value
        }
    }

    /// The same for a number of milliseconds from now on.
    @discardableResult
    public func wait(milliseconds: Int) -> Bool {
        wait(until: MonotonicTime.now() + Int64(max(milliseconds, 0)) * 1_000_000)
    }
}
