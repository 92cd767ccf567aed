// SPDX-License-Identifier: Apache-2.0

/// Maps a sender's clock to the chain's by the lower envelope of arrival minus stamp: what was delayed least on its way
/// says best how far the clocks are apart. Pure.
///
/// The least of the last 30 s counts, so that a drift of 100 ppm makes an error of 3 ms at most.
struct ClockOffset {
    /// The least difference of each second; nil where none came.
    private var seconds: [(second: Int64, least: Int64)] = []
    private static let window: Int64 = 30
    /// A difference that is off by more than this means that a clock was set, nanoseconds.
    static let mostStep: Int64 = 1_000_000_000

    /// What to add to the sender's stamps now; 0 before the first.
    private(set) var offset: Int64 = 0

    /// Takes the newest stamp of what arrived now.
    ///
    /// - Parameters:
    ///   - stamp: In nanoseconds of the sender's clock, within ``MediaTime/range``.
    ///   - arrival: In nanoseconds of the chain clock.
    /// - Returns: By how much the sender's clock has jumped, in nanoseconds, less than 0 for back; nil where it has
    ///   not.
    mutating func take(stamp: Int64, arrival: Int64) -> Int64? {
        let difference = arrival &- stamp
        let second = arrival / 1_000_000_000
        var jump: Int64?
        if !seconds.isEmpty {
            // Both lie within twice MediaTime.range.
            let (step, isBeyond) = difference.subtractingReportingOverflow(offset)
            if isBeyond || step.magnitude > UInt64(Self.mostStep) {
                jump = isBeyond ? (difference > offset ? .min : .max) : -step
                seconds.removeAll(keepingCapacity: true)
            }
        }
        seconds.removeAll { second - $0.second >= Self.window }
        if let last = seconds.indices.last, seconds[last].second == second {
            seconds[last].least = min(seconds[last].least, difference)
        } else {
            seconds.append((second, difference))
        }
        offset = seconds.reduce(difference) { min($0, $1.least) }
        return jump
    }
}
