// SPDX-License-Identifier: Apache-2.0

/// The one mapping between a stream's times, RTP's 90 kHz ticks and NTP's wall clock (RFC 3550, 5.1 and 6.4.1).
///
/// An RTP time is computed only from a PTS, never by adding up durations, so it cannot drift.
struct RTPClock: Sendable, Equatable {
    static let ticksPerSecond: Int64 = 90_000

    /// The RTP time of PTS 0: random (RFC 3550, 5.1).
    let start: UInt32

    /// Ticks of `nanoseconds`, rounded to the nearest. 90,000 / 10⁹ is 9 / 100,000.
    static func ticks(ofNanoseconds nanoseconds: Int64) -> Int64 {
        let (seconds, rest) = nanoseconds.quotientAndRemainder(dividingBy: 1_000_000_000)
        let half: Int64 = rest < 0 ? -50_000 : 50_000
        return seconds &* ticksPerSecond &+ (rest * 9 + half) / 100_000
    }

    /// The moment of `ticks`, rounded to the nearest nanosecond.
    static func nanoseconds(ofTicks ticks: Int64) -> Int64 {
        let (seconds, rest) = ticks.quotientAndRemainder(dividingBy: ticksPerSecond)
        let half: Int64 = rest < 0 ? -4 : 4
        return seconds &* 1_000_000_000 &+ (rest * 100_000 + half) / 9
    }

    /// The RTP time of a PTS in nanoseconds.
    func timestamp(ofPTS nanoseconds: Int64) -> UInt32 {
        start &+ UInt32(truncatingIfNeeded: Self.ticks(ofNanoseconds: nanoseconds))
    }
}

/// A moment as NTP writes it: seconds since 1900 and their fraction in 2⁻³² s (RFC 3550, 4).
struct NTPTime: Sendable, Equatable {
    var value: UInt64

    /// - Parameter unixNanoseconds: Since 1970 (UTC), not before it.
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
