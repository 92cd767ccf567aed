// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// Puts the times of a file's access units (``InputTimeline``) on the chain's timeline: cut at the keyframe where it begins, joined
/// from pass to pass, decode times always rising, no picture shown before it is decoded.
///
/// Like ``FileTimeline`` in ticks of the track, which come in through ``TrackTimes`` and go out within
/// ±``TimeBase/mostTicks``. PTS and DTS are shifted equally, so their distance is the file's own.
struct UnitTimeline {
    enum Placement: Equatable {
        case give(pts: Int64, dts: Int64)
        /// After the range: nothing further is needed.
        case end
        /// Beyond the chain's timeline (``MediaTime/range``), like everything that follows.
        case beyond
    }

    let timeBase: TimeBase

    /// PTS of the keyframe where it begins, in the file's own time; nil: from the start of the file.
    private let entry: Int64?
    /// Units that are decoded at this tick or later are not given.
    private let upper: Int64?
    private let origin: Int64
    /// Subtracted from each tick, so that the range begins where the file began.
    private let cut: Int64
    private let reorderDepth: Int
    /// Added to each tick: earlier passes.
    private var offset: Int64 = 0
    private var lastGivenDTS: Int64?
    /// When the given picture that is shown last ends.
    private var end: Int64?
    private var lastPTS: Int64?
    private var lastDTS: Int64?
    /// Ticks from unit to unit, for units without a duration.
    private var step: Int64 = 1
    private var isJoining = false
    /// Ticks from picture to picture where an edit list hides those before one that is shown after 0.
    private var hiddenStep: Int64?

    /// - Parameters:
    ///   - entry: PTS of the keyframe where it begins; nil: the start of the file.
    ///   - end: Seconds from the start of the track.
    ///   - reorderDepth: The most pictures that a decoder must reorder.
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

    /// Begins a further pass, whose first picture follows the last one without a gap.
    mutating func beginPass() {
        isJoining = end != nil
        (lastPTS, lastDTS) = (nil, nil)
    }

    /// The decode time of a pass's first picture where the file has none, as in Matroska: early enough for pictures
    /// that are shown before those they refer to.
    private func firstDTS(of pts: Int64) -> Int64 { (0..<reorderDepth).reduce(pts) { tick, _ in tick.minus(step) } }

    /// A time before that of the first picture that is shown. What is hidden lies before 0, even where that one is shown
    /// later, and close together: in a container that cannot hide it, it is over at once.
    private func early(_ tick: Int64) -> Int64 {
        guard let hiddenStep, tick < origin else { return tick }
        return tick.minus(origin.plus(hiddenStep - 1)) / hiddenStep
    }

    /// Finds the place of an access unit, in the order of decoding.
    ///
    /// - Parameters:
    ///   - pts: The file's time stamp; nil where it has none.
    ///   - duration: Ticks; 0 where they are not known.
    ///   - isHidden: Whether an edit list hides it.
    mutating func place(pts: Int64?, dts: Int64?, duration: Int64, isHidden: Bool = false) -> Placement {
        if duration > 0 { step = duration }
        let rawDTS = dts ?? lastDTS.map { $0.plus(step) } ?? firstDTS(of: pts ?? origin)
        let rawPTS = pts ?? (reorderDepth > 0 ? lastPTS.map { $0.plus(step) } : nil) ?? rawDTS
        if duration <= 0, let lastDTS, rawDTS > lastDTS { step = rawDTS.minus(lastDTS) }
        if lastDTS == nil { hiddenStep = isHidden && entry == nil && origin > 0 ? step : nil }
        (lastPTS, lastDTS) = (rawPTS, rawDTS)
        if let upper, rawDTS >= upper { return .end }
        if isJoining, let end {
            isJoining = false
            offset = end.minus(rawPTS.minus(cut))
        }
        var given = (
            pts: (isHidden ? early(rawPTS) : rawPTS).minus(cut).plus(offset),
            dts: early(rawDTS).minus(cut).plus(offset)
        )
        if let lastGivenDTS, given.dts <= lastGivenDTS { given.dts = lastGivenDTS + 1 }
        given.pts = max(given.pts, given.dts)
        guard TrackTimes.isPossible(given.pts, timeBase), TrackTimes.isPossible(given.dts, timeBase) else {
            return .beyond
        }
        lastGivenDTS = given.dts
        end = max(end ?? .min, given.pts.plus(step))
        return .give(pts: given.pts, dts: given.dts)
    }
}
