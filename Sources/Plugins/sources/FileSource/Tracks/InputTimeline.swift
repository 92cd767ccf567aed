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
        /// How long it lasts; zero where that is not
        var duration = MediaTime.zero
        /// Several packets of sound may have their times from one stamp of the container.
        var isSound = false

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

    private static let mostSteps = 10_000

    /// The steps up to now, at most 10,000.
    private(set) var steps: [Step] = []
    /// How many times were outliers, and the first of them.
    private(set) var outliers = 0
    private(set) var firstOutlier: MediaTime?

    /// Where the tracks are.
    private var known: TimelineTracks
    /// Packets that wait, the first of which is in doubt.
    private var waiting: [Stamp] = []
    private var placements: [Placement] = []
    private var hasEnded = false

    /// - Parameters:
    ///   - shift: What is added to all times.
    ///   - closesGaps: Whether a step forward by more than ``TimelineTracks/leastStep`` is closed.
    ///   - isInMiddle: Whether reading begins in the middle of the input.
    ///   - isLive: Whether packets come when they are captured.
    init(shift: MediaTime = .zero, closesGaps: Bool, isInMiddle: Bool = false, isLive: Bool = false) {
        known = TimelineTracks(shift: shift, closesGaps: closesGaps, isInMiddle: isInMiddle, isLive: isLive)
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
            return .shifted(by: known.segments[known.tracks[stamp.track]?.segment ?? known.segments.count - 1].shift)
        }
        guard var track = known.tracks[stamp.track] else {
            // The next one tells whether the first of a track is right.
            guard known.isLive else { return nil }
            let newest = known.segments.count - 1
            known.take(stamp, at: time, in: newest)
            return .shifted(by: known.segments[newest].shift)
        }
        if known.continues(track, stamp, time) {
            guard !known.leaps(track, stamp, time), !known.isShownApart(track, stamp, time) else { return nil }
            known.take(stamp, at: time, in: track.segment)
            return .shifted(by: known.segments[track.segment].shift)
        }
        // Another track has found the way already.
        if track.segment < known.segments.count - 1 {
            let newest = known.segments.count - 1
            if known.isNear(
                time, known.segments[newest].front, back: TimelineTracks.leastStep, ahead: TimelineTracks.leastStep)
            {
                track.segment = newest
                known.take(stamp, at: time, in: newest)
                return .shifted(by: known.segments[newest].shift)
            }
        }
        return nil
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
            let verdict = TimelineJudge(known: known, waiting: waiting, hasEnded: hasEnded).judge(first)
            switch verdict {
            case .open: return
            case .outlier: placements.append(replacement(first))
            case .outlierShown: placements.append(withoutShowing(first))
            case .crossing: placements.append(crossing(first))
            case .step(let index): begin(with: waiting[index], isFirst: index == 0)
            case .pause: goOn(with: first)
            }
            if case .step = verdict { continue }
            waiting.removeFirst()
        }
    }

    /// Takes the packet that waits first as it is: a gap of the input.
    private mutating func goOn(with first: Stamp) {
        guard let time = first.time else { return placements.append(.shifted(by: .zero)) }
        let segment = known.tracks[first.track]?.segment ?? known.segments.count - 1
        known.take(first, at: time, in: segment)
        placements.append(.shifted(by: known.segments[segment].shift))
    }

    /// The placement of a picture whose decoding time is right, and its PTS wrong.
    private mutating func withoutShowing(_ stamp: Stamp) -> Placement {
        guard let time = stamp.time, let pts = stamp.pts, let track = known.tracks[stamp.track] else {
            return .shifted(by: .zero)
        }
        note(outlier: pts)
        var right = stamp
        right.pts = nil
        known.take(right, at: time, in: track.segment)
        return .replaced(pts: nil, dts: time + known.segments[track.segment].shift)
    }

    /// The placement of a picture that is decoded in its track's segment, and shown in the newest.
    private mutating func crossing(_ stamp: Stamp) -> Placement {
        guard let time = stamp.time, let pts = stamp.pts, let track = known.tracks[stamp.track] else {
            return .shifted(by: .zero)
        }
        var decoded = stamp
        decoded.pts = nil
        known.take(decoded, at: time, in: track.segment)
        return .replaced(
            pts: pts + known.segments[known.segments.count - 1].shift, dts: time + known.segments[track.segment].shift)
    }

    /// Begins a segment with a packet that waits.
    ///
    /// - Parameter isFirst: Whether it waits first, and is placed.
    private mutating func begin(with first: Stamp, isFirst: Bool) {
        guard let time = first.time else { return }
        let track = known.tracks[first.track]
        let oldSegment = track?.segment ?? known.segments.count - 1
        let old = known.segments[oldSegment]
        // Each track ends somewhere in the old segment, with what of it still waits, and begins somewhere in the new
        // one. The one that would overlap most says how far all move.
        var shift: MediaTime?
        for (number, track) in known.tracks where track.segment == oldSegment {
            // By the times of decoding and by those of showing.
            var ends = (track.end, track.shownEnd)
            var begins: (MediaTime, MediaTime)?
            var crossing: MediaTime?
            for stamp in waiting where stamp.track == number {
                guard let other = stamp.time else { continue }
                // Outliers among them say nothing, and others are shown behind the step.
                let isApart = known.isShownApart(track, stamp, other)
                let shown = isApart ? other : stamp.pts ?? other
                if isApart, let pts = stamp.pts,
                    known.isNear(pts, time, back: TimelineTracks.mostReordered, ahead: TimelineTracks.leastStep)
                {
                    crossing = min(crossing ?? pts, pts)
                }
                let isNew =
                    number == first.track
                    ? known.isNear(other, time, back: TimelineTracks.mostReordered, ahead: TimelineTracks.leastStep)
                    : known.isNew(other, stamp, track, at: time)
                if isNew {
                    begins = begins.map { ($0.0, other < $0.0 ? $0.1 : min($0.1, shown)) } ?? (other, shown)
                } else if begins == nil, known.continues(track, stamp, other) {
                    let length = max(stamp.duration, track.step)
                    ends = (max(ends.0, other + length), max(ends.1, shown + length))
                }
            }
            if let begins {
                shift = max(shift ?? .min, ends.0 - begins.0, ends.1 - min(begins.1, crossing ?? begins.1))
            }
        }
        let moved = (shift ?? (old.front - time)) + old.shift
        if steps.count < Self.mostSteps { steps.append(Step(at: time + moved, by: time - (track?.last ?? old.front))) }
        known.forgetSegments()
        known.segments.append(TimelineTracks.Segment(shift: moved, front: time))
        guard isFirst else { return }
        known.take(first, at: time, in: known.segments.count - 1)
        placements.append(.shifted(by: moved))
        waiting.removeFirst()
    }

    /// The place of an outlier: after the packet before it, and before the next one of its track that goes on there.
    private mutating func replacement(_ stamp: Stamp) -> Placement {
        guard let time = stamp.time else { return .shifted(by: known.segments[known.segments.count - 1].shift) }
        guard var track = known.tracks[stamp.track] else {
            // The first of its track begins where the second does.
            note(outlier: time)
            let second = waiting.dropFirst().first { $0.track == stamp.track }?.time ?? time
            let place = second + known.segments[known.segments.count - 1].shift
            return .replaced(pts: place, dts: place)
        }
        let shift = known.segments[track.segment].shift
        if known.isJitter(time, track) { return .shifted(by: shift) }
        note(outlier: time)
        var place = track.end
        let next = waiting.dropFirst().lazy.compactMap { other in
            other.track == stamp.track ? other.time.map { (other, $0) } : nil
        }.first { known.continues(track, $0, $1) }?.1
        if let next, next >= track.newest {
            place = min(place, track.newest + MediaTime(nanoseconds: (next - track.newest).nanoseconds / 2))
        }
        // The time itself stays unbelieved: what comes next is judged by those before it.
        track.placed = place
        known.tracks[stamp.track] = track
        var pts: MediaTime?
        if let given = stamp.pts {
            // Mostly both times are wrong by the same amount; else one of them is right.
            let ahead = given - time
            if stamp.dts == nil {
                pts = place + shift
            } else if ahead >= .zero, ahead <= TimelineTracks.leastStep {
                pts = place + shift + ahead
            } else if known.isNear(
                given, track.last, back: TimelineTracks.mostReordered, ahead: TimelineTracks.leastStep)
            {
                pts = given + shift
            }
        }
        return .replaced(pts: pts, dts: place + shift)
    }
}
