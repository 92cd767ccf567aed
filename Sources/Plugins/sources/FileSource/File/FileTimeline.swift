// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// Puts the times of a file's pictures (``InputTimeline``) on the chain's timeline: cut to a range, joined from pass to
/// pass, always rising.
///
/// All in ticks of the video track. They come in through ``TrackTimes`` and go out within ±``TimeBase/mostTicks``; sums
/// in between are clamped to Int64.
struct FileTimeline {
    enum Placement: Equatable {
        /// The picture is shown at this tick.
        case show(Int64)
        /// Before the range.
        case skip
        /// After the range: nothing further is needed.
        case end
        /// Beyond the chain's timeline (``MediaTime/range``), like everything that follows.
        case beyond
    }

    let timeBase: TimeBase
    /// The first tick of the range and the first one after it, in the file's own time.
    private(set) var lower: Int64?
    let upper: Int64?

    /// Where the track starts in the file.
    private let origin: Int64
    /// Subtracted from each tick, so that the range begins where the file began.
    private let cut: Int64
    /// Added to each tick: earlier passes.
    private var offset: Int64 = 0
    private var lastShown: Int64?
    private var lastRaw: Int64?
    private var lastDuration: Int64 = 0
    /// The place of the next picture, at the start of a further pass.
    private var joint: Int64?

    /// - Parameter start: Seconds from the start of the track.
    init(timeBase: TimeBase, origin: Int64, start: Double = 0, duration: Double? = nil) {
        self.timeBase = timeBase
        self.origin = origin
        cut = timeBase.ticks(of: MediaTime(seconds: start))
        // The first tick at or after a time: a picture that is shown a moment earlier is not in the range.
        func first(at seconds: Double) -> Int64 {
            let time = MediaTime(seconds: seconds)
            let nearest = timeBase.ticks(of: time)
            return origin.plus(timeBase.time(ofTicks: nearest) < time ? nearest + 1 : nearest)
        }
        lower = start > 0 ? first(at: start) : nil
        upper = duration.map { first(at: start + $0) }
    }

    /// What the first pass plays.
    var timeRange: FileTimeRange {
        FileTimeRange(
            begin: lower.map { timeBase.time(ofTicks: $0) }, end: upper.map { timeBase.time(ofTicks: $0) },
            shift: timeBase.time(ofTicks: cut))
    }

    /// The first tick, in the file's own time, at or after a time of the chain's timeline.
    func rawTick(of time: MediaTime) -> Int64 {
        let nearest = timeBase.ticks(of: time)
        return cut.plus(timeBase.time(ofTicks: nearest) < time ? nearest + 1 : nearest)
    }

    /// Also skips pictures before a tick of the file's own time. The chain's timeline stays the same.
    mutating func begin(at tick: Int64) { lower = max(lower ?? tick, tick) }

    /// Begins a further pass, whose first picture follows the last one without a gap.
    mutating func beginPass() {
        joint = lastShown.map { $0.plus(max(lastDuration, 1)) }
        lastRaw = nil
    }

    /// Finds the place of a picture.
    ///
    /// - Parameters:
    ///   - tick: The file's time stamp; nil where it has none. The picture then follows the one before.
    ///   - duration: Ticks until the next picture; 0 where they are not known.
    mutating func place(_ tick: Int64?, duration: Int64) -> Placement {
        let raw = tick ?? lastRaw.map { $0.plus(max(lastDuration, 1)) } ?? origin
        let previousDuration = lastDuration
        lastRaw = raw
        lastDuration = duration
        if let lower, raw < lower { return .skip }
        if let upper, raw >= upper { return .end }
        if let joint {
            offset = joint.minus(raw.minus(cut))
            self.joint = nil
        }
        var shown = raw.minus(cut).plus(offset)
        // Whatever a decoder makes of the times, they rise. Pictures behind one that was shown far too late keep their
        // distances: only its decoding time could have told.
        if let lastShown, shown <= lastShown {
            if timeBase.time(ofTicks: lastShown.minus(shown)) > MediaTime(seconds: 1) {
                offset = offset.plus(lastShown.plus(max(previousDuration, 1)).minus(shown))
                shown = lastShown.plus(max(previousDuration, 1))
            } else {
                shown = lastShown + 1
            }
        }
        guard TrackTimes.isPossible(shown, timeBase) else { return .beyond }
        lastShown = shown
        return .show(shown)
    }
}

/// The part of a file that is played, in the file's own time.
struct FileTimeRange: Equatable, Sendable {
    /// nil: from the start of the file.
    var begin: MediaTime?
    /// nil: to the end of the file.
    var end: MediaTime?
    /// What is subtracted from the file's time to get the chain's.
    var shift: MediaTime
}
