// SPDX-License-Identifier: Apache-2.0

/// The one mapping between a medium's times, RTP's ticks and NTP's wall clock (RFC 3550, 5.1 and 6.4.1).
///
/// An RTP time is computed only from a PTS, never by adding up durations, so it cannot drift.
struct RTPClock: Sendable, Equatable {
    /// Of pictures.
    static let ticksPerSecond: Int64 = 90_000

    /// The RTP time of PTS 0: random (RFC 3550, 5.1).
    let start: UInt32
    /// At most ``mostTicksPerSecond``.
    let ticksPerSecond: Int64

    /// Above the sample rate of any sound.
    static let mostTicksPerSecond: Int64 = 1_000_000

    init(start: UInt32, ticksPerSecond: Int64 = RTPClock.ticksPerSecond) {
        precondition(
            (1...Self.mostTicksPerSecond).contains(ticksPerSecond), "a clock has 1 to 1,000,000 ticks a second")
        self.start = start
        self.ticksPerSecond = ticksPerSecond
    }

    /// Ticks of `nanoseconds`, rounded to the nearest.
    func ticks(ofNanoseconds nanoseconds: Int64) -> Int64 {
        let (seconds, rest) = nanoseconds.quotientAndRemainder(dividingBy: 1_000_000_000)
        let half: Int64 = rest < 0 ? -500_000_000 : 500_000_000
        return seconds &* ticksPerSecond &+ (rest * ticksPerSecond + half) / 1_000_000_000
    }

    /// The moment of `ticks`, rounded to the nearest nanosecond.
    func nanoseconds(ofTicks ticks: Int64) -> Int64 {
        let (seconds, rest) = ticks.quotientAndRemainder(dividingBy: ticksPerSecond)
        let half = rest < 0 ? -ticksPerSecond / 2 : ticksPerSecond / 2
        return seconds &* 1_000_000_000 &+ (rest * 1_000_000_000 + half) / ticksPerSecond
    }

    /// The RTP time of a PTS in nanoseconds.
    func timestamp(ofPTS nanoseconds: Int64) -> UInt32 {
        start &+ UInt32(truncatingIfNeeded: ticks(ofNanoseconds: nanoseconds))
    }
}

extension RTPClock {
    private static let ofPictures = RTPClock(start: 0)

    /// ``ticks(ofNanoseconds:)-swift.method`` of pictures.
    static func ticks(ofNanoseconds nanoseconds: Int64) -> Int64 { ofPictures.ticks(ofNanoseconds: nanoseconds) }

    /// ``nanoseconds(ofTicks:)-swift.method`` of pictures.
    static func nanoseconds(ofTicks ticks: Int64) -> Int64 { ofPictures.nanoseconds(ofTicks: ticks) }
}

/// A moment as NTP writes it: seconds since 1900 and their fraction in 2⁻³² s (RFC 3550, 4).
struct NTPTime: Sendable, Equatable {
    var value: UInt64

    /// - Parameter unixNanoseconds: Since 1970 (UTC); earlier moments count as 0.
    init(unixNanoseconds: Int64) {
        let (seconds, rest) = UInt64(max(unixNanoseconds, 0)).quotientAndRemainder(dividingBy: 1_000_000_000)
        value = (seconds &+ 2_208_988_800) << 32 | (rest << 32 + 500_000_000) / 1_000_000_000
    }

    init(value: UInt64) { self.value = value }

    /// Nanoseconds since 1970 (UTC).
    var unixNanoseconds: Int64 {
        Int64(value >> 32) &* 1_000_000_000 &- 2_208_988_800_000_000_000 &+ Int64(
            (value & 0xffff_ffff) * 1_000_000_000 + (1 << 31)) >> 32
    }
}
