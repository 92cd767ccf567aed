import Glibc

/// A moment as logs write it: RFC 3339 in UTC, to the millisecond.
enum WallTime {
    /// `2026-11-22T03:28:00.123Z`.
    ///
    /// - Parameter nanoseconds: Since 1970. What the calendar of gmtime(3) cannot say is written as 1970.
    static func text(_ nanoseconds: Int64) -> String {
        let milliseconds = nanoseconds >= 0 ? nanoseconds / 1_000_000 : 0
        var seconds = time_t(milliseconds / 1000)
        var parts = tm()
        gmtime_r(&seconds, &parts)
        func digits(_ value: Int32, _ count: Int) -> String {
            let text = String(value)
            return String(repeating: "0", count: max(count - text.utf8.count, 0)) + text
        }
        let date = "\(digits(parts.tm_year + 1900, 4))-\(digits(parts.tm_mon + 1, 2))-\(digits(parts.tm_mday, 2))"
        let time = "\(digits(parts.tm_hour, 2)):\(digits(parts.tm_min, 2)):\(digits(parts.tm_sec, 2))"
        return "\(date)T\(time).\(digits(Int32(milliseconds % 1000), 3))Z"
    }
}
