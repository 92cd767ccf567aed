// SPDX-License-Identifier: Apache-2.0

import Glibc

/// One moment by the clocks that tell how old recordings are.
///
/// The time since the machine's start is right, but begins anew with each start. The wall clock is right only where the
/// kernel calls it synchronised: without a battery it begins at 1970 or at the last shutdown, and somebody may set it.
public struct RecordingMoment: Equatable, Sendable {
    /// Nanoseconds since the machine's start, with the time that it slept (`CLOCK_BOOTTIME`, clock_gettime(2)).
    public var up: Int64
    /// Nanoseconds since 1970 (UTC), as the wall clock is set.
    public var wall: Int64
    /// Whether a time service keeps the wall clock (adjtimex(2)).
    public var isSynchronised: Bool

    /// Makes a moment, with times bounded to what marks store.
    ///
    /// - Parameters:
    ///   - up: Nanoseconds since the machine's start.
    ///   - wall: Nanoseconds since 1970.
    ///   - isSynchronised: Whether a time service keeps the wall clock.
    public init(up: Int64, wall: Int64, isSynchronised: Bool) {
        self.up = min(max(up, 0), Self.latestUp)
        self.wall = min(max(wall, 0), Self.latestWall)
        self.isSynchronised = isSynchronised
    }

    /// The present moment.
    public static func now() -> RecordingMoment {
        // Asked before the wall clock is read: a clock that is set in between does not count as synchronised.
        let isSynchronised = isClockSynchronised
        return RecordingMoment(
            up: nanoseconds(CLOCK_BOOTTIME), wall: nanoseconds(CLOCK_REALTIME),
            isSynchronised: isSynchronised && isClockSynchronised)
    }

    /// How far the wall clock is ahead of the time since the machine's start.
    public var offset: Int64 { wall - up }

    /// 36 years.
    static let latestUp: Int64 = 1 << 60
    /// The year 2223.
    static let latestWall: Int64 = 8_000_000_000_000_000_000

    private static func nanoseconds(_ clock: clockid_t) -> Int64 {
        var time = timespec()
        clock_gettime(clock, &time)
        return Int64(time.tv_sec) &* 1_000_000_000 &+ Int64(time.tv_nsec)
    }

    /// False also where the kernel does not say.
    private static var isClockSynchronised: Bool {
        // In <sys/timex.h>, which Swift does not import. Modes of 0 only read. The result is the clock's state: 0 to 4
        // where it is synchronised, 5 (TIME_ERROR) where not.
        typealias Adjust = @convention(c) (UnsafeMutableRawPointer) -> Int32
        guard let symbol = adjust else { return false }
        return withUnsafeTemporaryAllocation(byteCount: 512, alignment: 16) { buffer in
            buffer.initializeMemory(as: UInt8.self, repeating: 0)
            return (0...4).contains(unsafeBitCast(symbol, to: Adjust.self)(buffer.baseAddress!))
        }
    }

    private static var adjust: UnsafeMutableRawPointer? { dlsym(nil, "adjtimex") }
}
