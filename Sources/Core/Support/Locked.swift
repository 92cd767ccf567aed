// SPDX-License-Identifier: Apache-2.0

/// One small value behind a lock.
///
/// On `Condition`'s pthread mutex rather than Synchronization's `Mutex`, because the thread sanitizer sees the former's
/// order and takes every use of the latter for a race (Swift 6.3, Linux). `@unchecked Sendable`: the value is reached
/// under the lock alone.
public final class Locked<Value>: @unchecked Sendable {
    private let condition = Condition()
    private var value: Value

    /// Puts `value` behind a lock.
    public init(_ value: Value) { self.value = value }

    /// [any thread] Lends the value to `body`, which should be short and take no other lock.
    public func withLock<Result>(_ body: (inout Value) throws -> Result) rethrows -> Result {
        try condition.locked { try body(&value) }
    }
}
