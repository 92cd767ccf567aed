import Glibc

/// A moment of the calendar as text.
enum WallTime {
    /// `2026-11-21T13:43:55.250000Z` (ISO 8601, UTC).
    ///
    /// - Parameter unixTime: Nanoseconds since 1970; what is before counts as 1970.
    static func text(_ unixTime: Int64) -> String {
        let unixTime = max(unixTime, 0)
        var seconds = time_t(unixTime / 1_000_000_000)
        var parts = tm()
        gmtime_r(&seconds, &parts)
        func two(_ number: Int32) -> String { number < 10 ? "0\(number)" : "\(number)" }
        let micros = String(1_000_000 + unixTime % 1_000_000_000 / 1000).dropFirst()
        return "\(parts.tm_year + 1900)-\(two(parts.tm_mon + 1))-\(two(parts.tm_mday))"
            + "T\(two(parts.tm_hour)):\(two(parts.tm_min)):\(two(parts.tm_sec)).\(micros)Z"
    }
}
