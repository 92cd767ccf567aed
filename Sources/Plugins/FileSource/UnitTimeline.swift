// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// Puts the time stamps of a file's access units on the chain's time line: cut at the keyframe where it begins, joined
/// from pass to pass, decode times always rising, no picture shown before it is decoded.
///
/// As ``FileTimeline`` in ticks of the track, which come in by ``TrackTimes`` and go out within
/// ±``TimeBase/mostTicks``. PTS and DTS are moved by the same: their distance is the file's own.
struct UnitTimeline {
    enum Placement: Equatable {
        case give(pts: Int64, dts: Int64, isDiscontinuity: Bool)
        /// Behind the range: nothing further is of interest.
        case end
        /// Beyond the chain's timeline (``MediaTime/range``), and so is all that follows.
        case beyond
    }

    let timeBase: TimeBase
    /// Time stamps that stood still or went back and were put right.
    private(set) var repairs = 0

    /// PTS of the keyframe where it begins, in the file's own time; nil: from the begin of the file.
    private let entry: Int64?
    /// Nothing that is decoded here or later is given.
    private let upper: Int64?
    private let origin: Int64
    /// Taken off each tick, so that the range begins where the file began.
    private let cut: Int64
    private let reorderDepth: Int
    /// Added to each tick: earlier passes, jumps back.
    private var offset: Int64 = 0
    private var lastGivenDTS: Int64?
    /// Where the picture ends that is shown last of those that were given.
    private var end: Int64?
    private var lastPTS: Int64?
    private var lastDTS: Int64?
    /// Ticks from unit to unit, for what does not say how long it lasts.
    private var step: Int64 = 1
    private var isJoining = false

    /// - Parameters:
    ///   - entry: Of the keyframe where it begins; nil: at the begin of the file.
    ///   - end: Seconds from the begin of the track.
    ///   - reorderDepth: Most pictures a decoder must reorder.
    init(timeBase: TimeBase, origin: Int64, entry: Int64? = nil, end: Double? = nil, reorderDepth: Int = 0) {
        self.timeBase = timeBase
        self.origin = origin
        self.entry = entry
        self.reorderDepth = reorderDepth
        cut = entry.map { $0.minus(origin) } ?? 0
        upper = end.map { origin.plus(timeBase.ticks(of: MediaTime(seconds: $0))) }
    }

    /// What the first pass plays.
    var timeRange: FileTimeRange {
        FileTimeRange(
            begin: entry.map { timeBase.time(ofTicks: $0) }, end: upper.map { timeBase.time(ofTicks: $0) },
            shift: timeBase.time(ofTicks: cut))
    }

    /// A further pass begins: its first picture follows the last one without a gap.
    mutating func beginPass() {
        isJoining = end != nil
        (lastPTS, lastDTS) = (nil, nil)
    }

    /// When a pass's first picture is decoded where the file does not say it, as Matroska: early enough for those that
    /// are shown before pictures they refer to.
    private func firstDTS(of pts: Int64) -> Int64 { (0..<reorderDepth).reduce(pts) { tick, _ in tick.minus(step) } }

    /// Where an access unit goes, in the order of decoding.
    ///
    /// - Parameters:
    ///   - pts: The file's time stamp; nil where it has none.
    ///   - duration: Ticks, as far as known, else 0.
    mutating func place(pts: Int64?, dts: Int64?, duration: Int64) -> Placement {
        if duration > 0 { step = duration }
        let rawDTS = dts ?? lastDTS.map { $0.plus(step) } ?? firstDTS(of: pts ?? origin)
        let rawPTS = pts ?? (reorderDepth > 0 ? lastPTS.map { $0.plus(step) } : nil) ?? rawDTS
        if duration <= 0, let lastDTS, rawDTS > lastDTS { step = rawDTS.minus(lastDTS) }
        (lastPTS, lastDTS) = (rawPTS, rawDTS)
        if let upper, rawDTS >= upper { return .end }
        if isJoining, let end {
            isJoining = false
            offset = end.minus(rawPTS.minus(cut))
        }
        var isDiscontinuity = false
        var given = (pts: rawPTS.minus(cut).plus(offset), dts: rawDTS.minus(cut).plus(offset))
        if let lastGivenDTS, let end, given.dts <= lastGivenDTS {
            repairs += 1
            // As in FileTimeline: a small step back is one wrong time stamp, a large one a new time line.
            if timeBase.time(ofTicks: lastGivenDTS.minus(given.dts)) > MediaTime(seconds: 1) {
                let shift = max(end.minus(given.pts), lastGivenDTS.plus(1).minus(given.dts))
                offset = offset.plus(shift)
                given = (given.pts.plus(shift), given.dts.plus(shift))
                isDiscontinuity = true
            } else {
                given.dts = lastGivenDTS + 1
            }
        }
        given.pts = max(given.pts, given.dts)
        guard TrackTimes.isPossible(given.pts, timeBase), TrackTimes.isPossible(given.dts, timeBase) else {
            return .beyond
        }
        lastGivenDTS = given.dts
        end = max(end ?? .min, given.pts.plus(step))
        return .give(pts: given.pts, dts: given.dts, isDiscontinuity: isDiscontinuity)
    }
}
