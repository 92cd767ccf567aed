import Glibc

/// A moment of the calendar, in UTC.
public struct WallTime: Sendable, Equatable {
    public var year: Int
    public var month: Int
    public var day: Int
    public var hour: Int
    public var minute: Int
    public var second: Int
    public var nanosecond: Int

    public var millisecond: Int { nanosecond / 1_000_000 }

    /// - Parameter nanoseconds: Since 1970; any value is a moment from 1677 to 2262 (gmtime(3)).
    public init(_ nanoseconds: Int64) {
        // Rounded down, before 1970 too.
        let whole = nanoseconds / 1_000_000_000 - (nanoseconds % 1_000_000_000 < 0 ? 1 : 0)
        var (seconds, parts) = (time_t(whole), tm())
        gmtime_r(&seconds, &parts)
        (year, month, day) = (Int(parts.tm_year) + 1900, Int(parts.tm_mon) + 1, Int(parts.tm_mday))
        (hour, minute, second) = (Int(parts.tm_hour), Int(parts.tm_min), Int(parts.tm_sec))
        nanosecond = Int((nanoseconds % 1_000_000_000 + 1_000_000_000) % 1_000_000_000)
    }

    /// `2026-11-22T03:28:00.123Z` (RFC 3339).
    ///
    /// - Parameters:
    ///   - nanoseconds: Since 1970.
    ///   - digits: Behind the point, 1 to 9; what is left out is cut.
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
