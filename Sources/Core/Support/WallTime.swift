// SPDX-License-Identifier: Apache-2.0

import Glibc

/// A moment of the calendar, in UTC.
public struct WallTime: Sendable, Equatable {
    /// The year.
    public var year: Int
    /// The month, 1...12.
    public var month: Int
    /// The day of the month, 1...31.
    public var day: Int
    /// The hour, 0...23.
    public var hour: Int
    /// The minute, 0...59.
    public var minute: Int
    /// The second, 0...59.
    public var second: Int
    /// The nanosecond, 0...999999999.
    public var nanosecond: Int

    /// The millisecond, 0...999.
    public var millisecond: Int { nanosecond / 1_000_000 }

    /// The moment that is `nanoseconds` after the beginning of 1970. Every value is a moment from 1677 to 2262
    /// (gmtime(3)).
    public init(_ nanoseconds: Int64) {
        // Rounded down, before 1970 too.
        let whole = nanoseconds / 1_000_000_000 - (nanoseconds % 1_000_000_000 < 0 ? 1 : 0)
        var (seconds, parts) = (time_t(whole), tm())
        gmtime_r(&seconds, &parts)
        (year, month, day) = (Int(parts.tm_year) + 1900, Int(parts.tm_mon) + 1, Int(parts.tm_mday))
        (hour, minute, second) = (Int(parts.tm_hour), Int(parts.tm_min), Int(parts.tm_sec))
        nanosecond = Int((nanoseconds % 1_000_000_000 + 1_000_000_000) % 1_000_000_000)
    }

    /// A moment as text: `2026-11-22T03:28:00.123Z` (RFC 3339).
    ///
    /// - Parameters:
    ///   - nanoseconds: The moment in nanoseconds since 1970.
    ///   - digits: How many digits stand behind the point, 1...9. The rest is cut, not rounded.
    public static func text(_ nanoseconds: Int64, digits: Int = 3) -> String {
        let time = WallTime(nanoseconds)
        func padded(_ value: Int, _ count: Int) -> String {
            let text = String(value)
            return String(repeating: "0", count: max(count - text.utf8.count, 0)) + text
        }
        let date = [padded(time.year, 4), padded(time.month, 2), padded(time.day, 2)].joined(separator: "-")
        let clock = [padded(time.hour, 2), padded(time.minute, 2), padded(time.second, 2)].joined(separator: ":")
        return "\(date)T\(clock).\(padded(time.nanosecond, 9).prefix(min(max(digits, 1), 9)))Z"
    }
}
