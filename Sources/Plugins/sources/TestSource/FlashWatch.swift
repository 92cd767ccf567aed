// SPDX-License-Identifier: Apache-2.0

/// Decides which pictures of a flash are white: the first whose time has reached a whole second, and the next two.
struct FlashWatch {
    static let pictures = 3
    private static let second: Int64 = 1_000_000_000

    /// The whole second that the picture before had reached; nil before the first picture.
    private var reached: Int64?
    private var left = 0

    /// Looks at the next picture.
    ///
    /// - Parameters:
    ///   - pts: Its time in nanoseconds, later than that of the one before.
    ///   - period: How long it is shown, nanoseconds. The first picture is white where a second falls into it.
    mutating func isLight(at pts: Int64, period: Int64) -> Bool {
        let before = reached ?? Self.floor(pts - period)
        let now = Self.floor(pts)
        reached = now
        if now > before { left = Self.pictures }
        guard left > 0 else { return false }
        left -= 1
        return true
    }

    private static func floor(_ time: Int64) -> Int64 {
        time >= 0 ? time / second : -((second - 1 - time) / second)
    }
}
