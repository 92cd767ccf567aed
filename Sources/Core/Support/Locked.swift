/// One small value behind a lock.
///
/// On `Condition`'s pthread mutex rather than Synchronization's `Mutex`, because the thread sanitizer sees the former's
/// order and takes every use of the latter for a race (Swift 6.3, Linux). `@unchecked Sendable`: the value is reached
/// under the lock alone.
public final class Locked<Value>: @unchecked Sendable {
    private let condition = Condition()
    private var value: Value

    public init(_ value: Value) { self.value = value }

    /// [any thread] The value, for `body` alone: short, and without another lock.
    public func withLock<Result>(_ body: (inout Value) throws -> Result) rethrows -> Result {
        try condition.locked { try body(&value) }
    }
}
