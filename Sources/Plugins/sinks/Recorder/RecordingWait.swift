// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// A recording by command that cannot be written, and is tried again: what it waits for and what it has lost. Pure.
///
/// Units are counted over all that the ring was ever given.
struct RecordingWait {
    /// The time between two tries.
    static let interval: Int64 = 1_000_000_000
    /// The same after tries that came as far as writing.
    private static let longestInterval: Int64 = 30_000_000_000

    /// Why it cannot be written.
    private(set) var fault: FrameHostError
    /// The first unit that is in no file.
    private(set) var firstUnit: Int
    /// When it is tried again, chain clock.
    private(set) var nextTry: Int64
    private var interval = Self.interval

    init(_ fault: FrameHostError, firstUnit: Int, now: Int64) {
        self.fault = fault
        self.firstUnit = firstUnit
        nextTry = now + interval
    }

    /// Another try has failed.
    ///
    /// - Parameter hasWritten: Whether it had made a file.
    mutating func failed(_ fault: FrameHostError, hasWritten: Bool, firstUnit: Int, now: Int64) {
        self.fault = fault
        self.firstUnit = max(self.firstUnit, firstUnit)
        interval = hasWritten ? min(interval * 2, Self.longestInterval) : Self.interval
        nextTry = now + interval
    }

    /// A `start` came: the next unit is a try.
    mutating func tryNow() { (nextTry, interval) = (.min, Self.interval) }

    /// The ring has dropped its oldest units.
    ///
    /// - Returns: How many of them are in no file.
    mutating func drop(before oldest: Int) -> Int {
        let lost = max(0, oldest - firstUnit)
        firstUnit += lost
        return lost
    }
}
