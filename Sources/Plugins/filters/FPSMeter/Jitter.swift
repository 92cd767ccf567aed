// SPDX-License-Identifier: Apache-2.0

/// How unevenly frames arrive compared with their PTS, smoothed over about 16 frames, as RTP receivers compute it.
///
/// - SeeAlso: RFC 3550, section 6.4.1 (here in nanoseconds, not in ticks).
struct Jitter {
    private var last: (arrival: Int64, pts: Int64)?
    private(set) var nanoseconds = 0.0

    mutating func add(arrival: Int64, pts: Int64) {
        if let last {
            let difference = (arrival &- last.arrival) &- (pts &- last.pts)
            nanoseconds += (Double(difference.magnitude) - nanoseconds) / 16
        }
        last = (arrival, pts)
    }

    /// Starts again after a gap: the next frame is not compared with an earlier one.
    mutating func restart() { last = nil }
}
