// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// One timeline for all tracks of an input (docs/design/039-input-timeline.md): a pure value that is told each packet's
/// times in the order in which the packets come, and says what is to be added to them.
///
/// Times that step, back or far forward, as in joined recordings, begin a *segment*: all tracks move by the same amount,
/// so that the longest of them goes on without a gap. One time that is far from its neighbours is an *outlier*: it
/// counts as not there, and moves nothing after it. Which of the two it is only the following packets tell, so that the
/// packets from a doubtful one on wait for an answer.
struct InputTimeline {
    /// What a packet says of itself.
    struct Stamp: Equatable {
        var track: Int
        var pts: MediaTime?
        var dts: MediaTime?
        /// How long it lasts; zero where that is not known.
        var duration = MediaTime.zero

        /// The time by which packets of a track rise.
        var time: MediaTime? { dts ?? pts }
    }

    /// What becomes of a packet's times.
    enum Placement: Equatable {
        /// This is added to both.
        case shifted(by: MediaTime)
        /// It is an outlier: in their place come these, which are on the timeline already.
        case replaced(pts: MediaTime?, dts: MediaTime)
    }

    /// Where a segment begins.
    struct Step: Equatable {
        /// On the timeline.
        var at: MediaTime
        /// How far the input's own times step, ahead where positive.
        var by: MediaTime
    }

    /// A time so far ahead of all others of its segment is doubtful.
    static let mostAhead = MediaTime(seconds: 10)
    /// Packets without a decoding time come in the order of decoding: they are in doubt only from here on back.
    static let mostReordered = MediaTime(seconds: 5)
    /// How many packets of the track must follow the doubtful one for a step.
    static let confirming = 3
    /// Without an answer after so many packets of the track, or of all tracks, it is an outlier.
    static let mostOfTrack = 8
    static let most = 128

    /// The steps up to now.
    private(set) var steps: [Step] = []
    /// How many times were outliers, and the first of them.
    private(set) var outliers = 0
    private(set) var firstOutlier: MediaTime?

    /// Whether a step forward is closed. Otherwise it is a gap of the input, and stays.
    private let closesGaps: Bool
    /// Whether reading begins in the middle: libavformat then guesses the first decoding times, which may be too late.
    private let isInMiddle: Bool
    private static let guessed = 32
    private static let mostGuessed = MediaTime(seconds: 1)
    /// A time that is so little back may be one of decoding that libavformat took from the order of showing. So as many
    /// packets as may be reordered (H.264, A.3.1 h) must follow it for a step, and it stays as it is where it is none.
    private static let mostJitter = MediaTime(seconds: 1)
    private static let confirmingJitter = 16

    private struct Segment {
        var shift: MediaTime
        /// The latest time of a packet, in the input's own time.
        var front: MediaTime
    }

    private struct Track {
        /// The index of its segment.
        var segment: Int
        /// Of its newest packet, in the input's own time.
        var last: MediaTime
        /// From packet to packet.
        var step: MediaTime
        /// When what has come ends, in the order of showing.
        var shownEnd: MediaTime
        /// Whether ``last`` is a time of decoding: packets with one may follow some without.
        var isDecoding: Bool

        /// Where an outlier after it was placed.
        var placed: MediaTime?
        /// How many packets of it have come.
        var count = 0

        /// Where the newest packet lies, outlier or not.
        var newest: MediaTime { max(last, placed ?? last) }
        /// When the next packet is due.
        var end: MediaTime { newest + step }
    }

    private var segments: [Segment]
    private var tracks: [Int: Track] = [:]
    /// Packets that wait, the first of which is in doubt.
    private var waiting: [Stamp] = []
    private var placements: [Placement] = []
    private var hasEnded = false

    /// - Parameters:
    ///   - shift: What is added to all times.
    ///   - closesGaps: Whether a step forward by more than ``mostAhead`` is closed.
    ///   - isInMiddle: Whether reading begins in the middle of the input.
    init(shift: MediaTime = .zero, closesGaps: Bool, isInMiddle: Bool = false) {
        self.isInMiddle = isInMiddle
        segments = [Segment(shift: shift, front: .min)]
        self.closesGaps = closesGaps
    }

    /// Takes the next packet. Allocates nothing where no time is in doubt.
    mutating func add(_ stamp: Stamp) {
        if waiting.isEmpty, let placement = place(stamp) {
            placements.append(placement)
            return
        }
        waiting.append(stamp)
        settle()
    }

    /// Says that no packet follows.
    mutating func end() {
        hasEnded = true
        settle()
    }

    /// The placement of the earliest packet that has none yet; nil while it waits.
    mutating func next() -> Placement? { placements.isEmpty ? nil : placements.removeFirst() }

    // MARK: Deciding

    /// The placement of a packet that is not in doubt; nil for one that is.
    private mutating func place(_ stamp: Stamp) -> Placement? {
        guard let time = stamp.time else {
            return .shifted(by: segments[tracks[stamp.track]?.segment ?? segments.count - 1].shift)
        }
        guard var track = tracks[stamp.track] else {
            // The first of its track: in the newest segment it may be near.
            let newest = segments.count - 1
            guard
                segments[newest].front == .min
                    || isNear(time, segments[newest].front, back: .max, ahead: Self.mostAhead)
            else { return nil }
            take(stamp, at: time, in: newest)
            return .shifted(by: segments[newest].shift)
        }
        if continues(track, stamp, time) {
            take(stamp, at: time, in: track.segment)
            return placed(stamp, time, track)
        }
        // Another track has found the way already.
        if track.segment < segments.count - 1 {
            let newest = segments.count - 1
            if isNear(time, segments[newest].front, back: Self.mostAhead, ahead: Self.mostAhead) {
                track.segment = newest
                take(stamp, at: time, in: newest)
                return placed(stamp, time, track)
            }
        }
        return nil
    }

    /// The placement of a packet whose decoding time is right; its PTS may still be an outlier.
    private mutating func placed(_ stamp: Stamp, _ time: MediaTime, _ track: Track) -> Placement {
        let shift = segments[track.segment].shift
        guard stamp.dts != nil, let pts = stamp.pts, pts - time > Self.mostAhead || time - pts > Self.mostAhead else {
            return .shifted(by: shift)
        }
        note(outlier: pts)
        return .replaced(pts: nil, dts: time + shift)
    }

    /// Whether a time goes on where its track is.
    private func continues(_ track: Track, _ stamp: Stamp, _ time: MediaTime) -> Bool {
        var back = stamp.dts == nil || !track.isDecoding ? Self.mostReordered : .zero
        if isInMiddle, track.count < Self.guessed { back = max(back, Self.mostGuessed) }
        let front = max(segments[track.segment].front, track.last)
        // Where packets come seldom, the next one may be as far away as several of the last steps.
        let seldom = MediaTime(nanoseconds: min(track.step.nanoseconds, MediaTime.range.upperBound / 4) * 4)
        return time >= track.last - back && time <= front + max(Self.mostAhead, seldom)
    }

    private func isNear(_ time: MediaTime, _ other: MediaTime, back: MediaTime, ahead: MediaTime) -> Bool {
        time >= other - back && time <= other + ahead
    }

    private mutating func take(_ stamp: Stamp, at time: MediaTime, in segment: Int) {
        let known = tracks[stamp.track]
        var step = stamp.duration
        if step <= .zero, let known, known.segment == segment, time > known.last { step = time - known.last }
        if step <= .zero { step = known?.step ?? .zero }
        var track = Track(
            segment: segment, last: time, step: step, shownEnd: (stamp.pts ?? time) + step, isDecoding: stamp.dts != nil
        )
        if let known, known.segment == segment {
            track.shownEnd = max(track.shownEnd, known.shownEnd)
            track.placed = known.placed
            track.count = known.count + 1
            if isInMiddle, track.count < Self.guessed {
                // The newest is the surest.
            } else if known.isDecoding == track.isDecoding {
                track.last = max(known.last, time)
            } else if known.isDecoding {
                (track.last, track.isDecoding) = (known.last, true)
            }
        }
        tracks[stamp.track] = track
        segments[segment].front = max(segments[segment].front, time)
    }

    private mutating func note(outlier time: MediaTime) {
        outliers += 1
        firstOutlier = firstOutlier ?? time
    }

    /// Decides about the packets that wait, as far as that is possible.
    private mutating func settle() {
        while let first = waiting.first {
            if let placement = place(first) {
                placements.append(placement)
                waiting.removeFirst()
                continue
            }
            let verdict = judge(first)
            switch verdict {
            case .open: return
            case .outlier:
                placements.append(replacement(first))
                waiting.removeFirst()
            case .step, .pause: begin(with: first, isPause: verdict == .pause)
            }
        }
    }

    private enum Verdict {
        case open
        case outlier
        case step
        /// Packets of the track come so seldom.
        case pause
    }

    /// Judges the first packet that waits, by those after it.
    private func judge(_ doubtful: Stamp) -> Verdict {
        guard let time = doubtful.time else { return .outlier }
        let track = tracks[doubtful.track]
        let seldom = seldom(time, track)
        let isSmall = track.map { isJitter(time, $0) } ?? false
        let confirming = isSmall ? Self.confirmingJitter : Self.confirming
        let mostOfTrack = isSmall ? Self.confirmingJitter + Self.mostOfTrack : Self.mostOfTrack
        var (count, following) = (0, 0)
        // How far the packets that follow have come.
        var reached = time
        for stamp in waiting.dropFirst() where stamp.track == doubtful.track {
            guard let other = stamp.time else { continue }
            count += 1
            let back = stamp.dts == nil ? Self.mostReordered : .zero
            let isFollowing = isNear(other, time, back: back, ahead: (reached - time) + max(Self.mostAhead, seldom))
            // What is near both tells nothing: a step of less than what is in doubt.
            if let track, continues(track, stamp, other) {
                if !isFollowing || other >= track.end { return .outlier }
            } else if isFollowing {
                following += 1
                reached = max(reached, other)
            }
            if count >= mostOfTrack { break }
        }
        let isFull = hasEnded || count >= mostOfTrack || waiting.count >= Self.most
        guard following >= confirming || isFull else { return .open }
        // The last packets of an input have nothing behind them that could confirm them.
        guard following >= (hasEnded && !isSmall ? 1 : confirming) else { return .outlier }
        if let track, time > track.last, following > 0,
            (reached - time).nanoseconds / Int64(following) >= (time - track.last).nanoseconds / 4
        {
            return .pause
        }
        return isFull || othersHaveArrived(at: time, doubtful.track) ? .step : .open
    }

    private func isJitter(_ time: MediaTime, _ track: Track) -> Bool {
        time < track.last && time >= track.last - Self.mostJitter
    }

    /// How far apart packets may be that come as seldom as the one before the doubtful one and itself did.
    private func seldom(_ time: MediaTime, _ track: Track?) -> MediaTime {
        guard let track, time > track.last else { return .zero }
        return MediaTime(nanoseconds: min((time - track.last).nanoseconds, 3_600_000_000_000))
    }

    /// Whether each track that is where the doubtful one was has a packet at the new times as well, so that the step is
    /// the same for all.
    private func othersHaveArrived(at time: MediaTime, _ doubtful: Int) -> Bool {
        guard let segment = tracks[doubtful]?.segment else { return true }
        return tracks.allSatisfy { number, track in
            if number == doubtful || track.segment != segment { return true }
            if track.last < segments[segment].front - Self.mostReordered { return true }
            return waiting.contains { stamp in
                stamp.track == number && stamp.time.map { isNew($0, stamp, track, at: time) } == true
            }
        }
    }

    /// Whether a packet of another track belongs to the times at which a doubtful one is.
    private func isNew(_ time: MediaTime, _ stamp: Stamp, _ track: Track, at new: MediaTime) -> Bool {
        isNear(time, new, back: Self.mostReordered, ahead: Self.mostAhead) && !continues(track, stamp, time)
    }

    /// Begins a segment with the packet that waits first.
    ///
    /// - Parameter isPause: Whether the track only pauses, so that nothing moves.
    private mutating func begin(with first: Stamp, isPause: Bool) {
        guard let time = first.time else { return }
        let track = tracks[first.track]
        let oldSegment = track?.segment ?? segments.count - 1
        let old = segments[oldSegment]
        let isAhead = time > (track?.last ?? old.front)
        guard !isPause, !isAhead || closesGaps else {
            // A gap of the input.
            take(first, at: time, in: oldSegment)
            if !isPause, let track { tracks[first.track]?.step = max(first.duration, track.step) }
            placements.append(.shifted(by: old.shift))
            waiting.removeFirst()
            return
        }
        // Each track ends somewhere in the old segment, with what of it still waits, and begins somewhere in the new
        // one. The one that would overlap most says how far all move.
        var shift: MediaTime?
        for (number, track) in tracks where track.segment == oldSegment {
            // By the times of decoding and by those of showing.
            var ends = (track.end, track.shownEnd)
            var begins: (MediaTime, MediaTime)?
            for stamp in waiting where stamp.track == number {
                guard let other = stamp.time else { continue }
                // Outliers among them say nothing.
                let shown =
                    stamp.pts.map { isNear($0, other, back: Self.mostAhead, ahead: Self.mostAhead) ? $0 : other }
                    ?? other
                let isNew =
                    number == first.track
                    ? isNear(other, time, back: Self.mostReordered, ahead: Self.mostAhead)
                    : isNew(other, stamp, track, at: time)
                if isNew {
                    begins = begins.map { ($0.0, min($0.1, shown)) } ?? (other, shown)
                } else if begins == nil, continues(track, stamp, other) {
                    let length = max(stamp.duration, track.step)
                    ends = (max(ends.0, other + length), max(ends.1, shown + length))
                }
            }
            if let begins { shift = max(shift ?? .min, max(ends.0 - begins.0, ends.1 - begins.1)) }
        }
        let moved = (shift ?? (old.front - time)) + old.shift
        steps.append(Step(at: time + moved, by: time - (track?.last ?? old.front)))
        segments.append(Segment(shift: moved, front: time))
        take(first, at: time, in: segments.count - 1)
        placements.append(.shifted(by: moved))
        waiting.removeFirst()
    }

    /// The place of an outlier: after the packet before it, and before the next one of its track that goes on there.
    private mutating func replacement(_ stamp: Stamp) -> Placement {
        guard let time = stamp.time, var track = tracks[stamp.track] else {
            return .shifted(by: segments[segments.count - 1].shift)
        }
        let shift = segments[track.segment].shift
        if isJitter(time, track) { return .shifted(by: shift) }
        note(outlier: time)
        var place = track.end
        let next = waiting.dropFirst().lazy.compactMap { other in
            other.track == stamp.track ? other.time.map { (other, $0) } : nil
        }.first { continues(track, $0, $1) }?.1
        if let next, next >= track.newest {
            place = min(place, track.newest + MediaTime(nanoseconds: (next - track.newest).nanoseconds / 2))
        }
        // The time itself stays unbelieved: what comes next is judged by those before it.
        track.placed = place
        tracks[stamp.track] = track
        var pts: MediaTime?
        if let given = stamp.pts {
            // Mostly both times are wrong by the same amount; else one of them is right.
            let ahead = given - time
            if stamp.dts == nil {
                pts = place + shift
            } else if ahead >= .zero, ahead <= Self.mostAhead {
                pts = place + shift + ahead
            } else if isNear(given, track.last, back: Self.mostReordered, ahead: Self.mostAhead) {
                pts = given + shift
            }
        }
        return .replaced(pts: pts, dts: place + shift)
    }
}
