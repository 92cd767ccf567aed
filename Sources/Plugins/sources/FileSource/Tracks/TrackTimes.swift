// SPDX-License-Identifier: Apache-2.0

import CAVFormat
import FrameCore

/// The one place where time stamps of a track come in. A time stamp on the chain's timeline (``MediaTime``) passes,
/// in ticks. Any other counts as missing.
///
/// What passes lies within ±``TimeBase/mostTicks``, so that sums and differences of three such ticks do not overflow.
struct TrackTimes {
    let timeBase: TimeBase
    /// The number of impossible time stamps, and the first of them.
    private(set) var impossible = 0
    private(set) var firstImpossible: Int64?

    init(timeBase: TimeBase) { self.timeBase = timeBase }

    /// The tick of a time stamp from libav; nil where the file has none, or an impossible one, which is counted.
    mutating func tick(_ given: Int64) -> Int64? {
        guard given != fh_av_no_pts else { return nil }
        if Self.isPossible(given, timeBase) { return given }
        impossible += 1
        firstImpossible = firstImpossible ?? given
        return nil
    }

    /// How long something lasts; 0 where it is not known or impossible.
    func duration(_ given: Int64) -> Int64 { given > 0 && Self.isPossible(given, timeBase) ? given : 0 }

    static func isPossible(_ tick: Int64, _ timeBase: TimeBase) -> Bool { timeBase.possibleTime(ofTicks: tick) != nil }
}

extension Int64 {
    /// The sum, or the nearest end of Int64.
    func plus(_ other: Int64) -> Int64 {
        let (sum, isTooMuch) = addingReportingOverflow(other)
        return isTooMuch ? (other < 0 ? .min : .max) : sum
    }

    /// The difference, or the nearest end of Int64.
    func minus(_ other: Int64) -> Int64 {
        let (difference, isTooMuch) = subtractingReportingOverflow(other)
        return isTooMuch ? (other < 0 ? .max : .min) : difference
    }
}
