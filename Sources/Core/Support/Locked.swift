// SPDX-License-Identifier: Apache-2.0

/// One small value behind a lock.
///
/// It uses `Condition`'s pthread mutex rather than Synchronization's `Mutex`, because the thread sanitizer
/// understands the former and reports every use of the latter as a race (Swift 6.3, Linux). `@unchecked Sendable`:
/// the value is reached only under the lock.
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
