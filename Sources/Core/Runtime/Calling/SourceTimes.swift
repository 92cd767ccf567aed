// SPDX-License-Identifier: Apache-2.0

/// Keeps the times of a source rising when another instance replaces one that ran. A file would begin again at its own
/// time 0, and the stages behind would drop everything until its time rises above the last.
///
/// An instance with times of its own goes on where the one before ended: at the last item's time plus its duration. A
/// live source has the chain clock's times, which stay as they are unless they do not rise. It belongs to the source's
/// thread.
struct SourceTimes {
    /// Times lie within ± this, as those of files do, so that sums of a few times fit in Int64.
    private static let most = MediaTime(nanoseconds: 1 << 61)
    /// What is added to each time of the present instance, nanoseconds.
    private(set) var offset: Int64 = 0
    /// When the item that is shown last ends.
    private var end = MediaTime.min
    /// The time of the last item by which items are ordered: the PTS of a frame, the decode time of an access unit.
    private var last: MediaTime?
    private var hasNewInstance = false

    /// The next item comes from a new instance.
    mutating func beginAnew() { hasNewInstance = last != nil }

    /// Moves an item to its place on the source's timeline.
    ///
    /// - Parameters:
    ///   - isLive: Whether its times are meant to be the chain clock's.
    ///   - rate: The rate of the pictures, for a first picture without a duration.
    /// - Returns: True where ``offset`` may have changed.
    @inline(__always)
    mutating func place(_ header: inout ItemHeader, isLive: Bool, rate: @autoclosure () -> Rational?) -> Bool {
        let isFirst = hasNewInstance
        if hasNewInstance { goOn(&header, isLive: isLive) }
        if offset != 0 {
            let shift = MediaTime(nanoseconds: offset)
            header.pts = min(header.pts + shift, Self.most)
            if header.kind == .accessUnit { header.dts = min(header.dts + shift, Self.most) }
        }
        var duration = header.duration
        let time = header.orderTime
        if duration <= .zero, let last { duration = time - last }
        if duration <= .zero { duration = Self.duration(rate()) }
        end = min(max(end, header.pts + duration), Self.most)
        last = time
        return isFirst
    }

    private mutating func goOn(_ header: inout ItemHeader, isLive: Bool) {
        hasNewInstance = false
        header.isDiscontinuity = true
        offset = 0
        guard let last, !isLive || header.orderTime <= last else { return }
        // The decode times of access units must rise too.
        let afterLast = last - header.orderTime + MediaTime(nanoseconds: 1)
        offset = max(end - header.pts, afterLast).nanoseconds
    }

    /// The duration of one picture; 40 ms where the rate is unknown.
    private static func duration(_ rate: Rational?) -> MediaTime {
        guard let rate, rate.numerator > 0 else { return MediaTime(nanoseconds: 40_000_000) }
        return MediaTime(nanoseconds: Int64(rate.denominator) * 1_000_000_000 / Int64(rate.numerator))
    }
}
