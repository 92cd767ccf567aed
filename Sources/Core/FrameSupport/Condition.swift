// SPDX-License-Identifier: Apache-2.0

import Glibc

/// A lock with a place to wait, on the monotonic clock.
///
/// Every wait of framehost uses it. `@unchecked Sendable`: the two pthread objects are made once, never move, and are
/// made for access from several threads. What a frame passes through is `@inlinable`, so that it costs the same in
/// another module.
public final class Condition: @unchecked Sendable {
    @usableFromInline let mutex: UnsafeMutablePointer<pthread_mutex_t>
    /// The condition whose lock this one uses, kept alive; nil when the lock is its own.
    private let lender: Condition?
    @usableFromInline let condition = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)

    /// A lock and a place to wait; with `lender`, a further place to wait under that one's lock.
    public init(sharingLockOf lender: Condition? = nil) {
        self.lender = lender
        if let lender {
            mutex = lender.mutex
        } else {
            mutex = .allocate(capacity: 1)
            pthread_mutex_init(mutex, nil)
        }
        var attributes = pthread_condattr_t()
        pthread_condattr_init(&attributes)
        pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC)
        pthread_cond_init(condition, &attributes)
        pthread_condattr_destroy(&attributes)
    }

    deinit {
        pthread_cond_destroy(condition)
        condition.deallocate()
        guard lender == nil else { return }
        pthread_mutex_destroy(mutex)
        mutex.deallocate()
    }

    @inlinable @inline(__always) public func lock() { pthread_mutex_lock(mutex) }
    @inlinable @inline(__always) public func unlock() { pthread_mutex_unlock(mutex) }
    @inlinable public func signal() { pthread_cond_signal(condition) }
    @inlinable public func broadcast() { pthread_cond_broadcast(condition) }

    /// Waits with the lock held; may wake without reason, so call it in a loop over what is waited for.
    @inlinable public func wait() { pthread_cond_wait(condition, mutex) }

    /// As `wait()`, at most until `deadline` in nanoseconds of `CLOCK_MONOTONIC`.
    @inlinable
    public func wait(until deadline: Int64) {
        var time = timespec(tv_sec: Int(deadline / 1_000_000_000), tv_nsec: Int(deadline % 1_000_000_000))
        pthread_cond_timedwait(condition, mutex, &time)
    }

    /// Runs `body` with the lock held.
    @inlinable @inline(__always)
    public func locked<Result>(_ body: () throws -> Result) rethrows -> Result {
        lock()
        defer { unlock() }
        return try body()
    }
}
