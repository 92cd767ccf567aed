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

    /// A time so far ahead of all others of its segment is doubtful.
    static let mostAhead = MediaTime(seconds: 1)
    /// Of sound, whose packets follow each other, a time so far ahead of its own track. Live it is believed.
    static let mostAheadInSound = MediaTime(nanoseconds: 100_000_000)
    /// A step ahead by less is a gap of the input.
    static let leastStep = MediaTime(seconds: 10)
    /// How far other tracks' packets may lie from a step.
    static let mostReordered = MediaTime(seconds: 5)
    /// A picture that is shown so long after it is decoded, or before, is doubtful.
    static let mostShownApart = MediaTime(seconds: 1)
    /// So far are packets without a decoding time believed, which come in the order of decoding.
    static let mostApart = MediaTime(seconds: 3600)
    /// How many packets of the track must follow the doubtful one for a step; of sound they must last this long, unless
    /// another track steps as well.
    static let confirming = 3
    static let confirmingSound = MediaTime(seconds: 1)
    /// Without an answer after so many packets of all tracks, it is an outlier.
    static let most = 400
    /// A track of which so many other packets come between its first two begins as it says.
    private static let mostBeforeSecond = 64

    private static let mostSegments = 64
    private static let mostSteps = 10_000

    /// The steps up to now, at most 10,000.
    private(set) var steps: [Step] = []
    /// How many times were outliers, and the first of them.
    private(set) var outliers = 0
    private(set) var firstOutlier: MediaTime?

    /// Whether a step forward is closed. Otherwise it is a gap of the input, and stays.
    private let closesGaps: Bool
    /// Whether reading begins in the middle: libavformat then guesses the first decoding times, which may be too late.
    private let isInMiddle: Bool
    /// Whether packets come when they are captured. Pictures that come seldom then do not wait for later ones: a single
    /// track's times ahead, and the first packet of a track, are believed.
    private let isLive: Bool
    /// How long the packets of a track may wait for the other tracks at a step.
    private var mostWait: MediaTime { MediaTime(seconds: isLive ? 0.5 : 3) }
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
        /// How long after it is decoded its newest picture is shown, or before.
        var apart = MediaTime.zero

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
    ///   - closesGaps: Whether a step forward by more than ``leastStep`` is closed.
    ///   - isInMiddle: Whether reading begins in the middle of the input.
    ///   - isLive: Whether packets come when they are captured.
    init(shift: MediaTime = .zero, closesGaps: Bool, isInMiddle: Bool = false, isLive: Bool = false) {
        self.isLive = isLive
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
            // The next one tells whether the first of a track is right.
            guard isLive else { return nil }
            let newest = segments.count - 1
            take(stamp, at: time, in: newest)
            return .shifted(by: segments[newest].shift)
        }
        if continues(track, stamp, time) {
            guard !leaps(track, stamp, time), !isShownApart(track, stamp, time) else { return nil }
            take(stamp, at: time, in: track.segment)
            return .shifted(by: segments[track.segment].shift)
        }
        // Another track has found the way already.
        if track.segment < segments.count - 1 {
            let newest = segments.count - 1
            if isNear(time, segments[newest].front, back: Self.leastStep, ahead: Self.leastStep) {
                track.segment = newest
                take(stamp, at: time, in: newest)
                return .shifted(by: segments[newest].shift)
            }
        }
        return nil
    }

    /// Whether sound that goes on where its track is leaves a hole, which one wrong time would make.
    private func leaps(_ track: Track, _ stamp: Stamp, _ time: MediaTime) -> Bool {
        stamp.isSound && stamp.dts != nil && !isLive
            && time > track.end + max(Self.mostAheadInSound, times(track.step, 4))
    }

    /// Whether a picture is shown long after it is decoded, as one wrong PTS says, or before.
    private func isShownApart(_ track: Track, _ stamp: Stamp, _ time: MediaTime) -> Bool {
        guard !stamp.isSound, stamp.dts != nil, let pts = stamp.pts, !(isInMiddle && track.count < Self.guessed) else {
            return false
        }
        let most = max(Self.mostShownApart, times(track.step, 32), times(track.apart, 2))
        return !isNear(pts, time, back: most, ahead: most)
    }

    /// Whether a time goes on where its track is.
    private func continues(_ track: Track, _ stamp: Stamp, _ time: MediaTime) -> Bool {
        let front = max(segments[track.segment].front, track.last)
        guard stamp.dts != nil, track.isDecoding else {
            return isNear(time, front, back: Self.mostApart, ahead: Self.mostApart)
        }
        let back: MediaTime = isInMiddle && track.count < Self.guessed ? Self.mostGuessed : .zero
        // Where packets come seldom, the next one may be as far away as several of the last steps.
        guard time >= track.last - back, !(isLive && tracks.count < 2) else { return time >= track.last - back }
        return time <= front + max(isLive ? Self.leastStep : Self.mostAhead, times(track.step, 4))
    }

    private func length(_ stamp: Stamp, _ track: Track) -> MediaTime {
        stamp.duration > .zero ? stamp.duration : track.step
    }

    private func times(_ time: MediaTime, _ count: Int64) -> MediaTime {
        MediaTime(nanoseconds: min(max(time.nanoseconds, 0), MediaTime.range.upperBound / count) * count)
    }

    private func isNear(_ time: MediaTime, _ other: MediaTime, back: MediaTime, ahead: MediaTime) -> Bool {
        time >= other - back && time <= other + ahead
    }

    private mutating func take(_ stamp: Stamp, at time: MediaTime, in segment: Int) {
        let known = tracks[stamp.track]
        var step = stamp.duration
        if step <= .zero, let known, known.segment == segment, time > known.last {
            // A pause says nothing of how long a packet lasts.
            let distance = time - known.last
            let isPause = known.step > .zero && distance > max(Self.mostAhead, times(known.step, 4))
            step = isPause ? known.step : distance
        }
        if step <= .zero { step = known?.step ?? .zero }
        var track = Track(
            segment: segment, last: time, step: step, shownEnd: (stamp.pts ?? time) + step, isDecoding: stamp.dts != nil
        )
        if let known, known.segment == segment {
            track.shownEnd = max(track.shownEnd, known.shownEnd)
            track.placed = known.placed
            track.apart = known.apart
            track.count = known.count + 1
            if isInMiddle, track.count < Self.guessed {
                // The newest is the surest.
            } else if known.isDecoding == track.isDecoding {
                track.last = max(known.last, time)
            } else if known.isDecoding {
                (track.last, track.isDecoding) = (known.last, true)
            }
        }
        if let pts = stamp.pts { track.apart = max(pts - time, time - pts) }
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

    private enum Verdict {
        case open
        case outlier
        /// Its PTS alone is one.
        case outlierShown
        /// It is decoded before a step, and shown behind it.
        case crossing
        /// A segment begins with the one that waits at this index.
        case step(Int)
        /// A gap of the input, or packets that come seldom: nothing moves.
        case pause
    }

    /// Judges the first packet that waits, or the one at `index`, by those after it.
    private func judge(_ doubtful: Stamp, at index: Int = 0) -> Verdict {
        guard let time = doubtful.time else { return .outlier }
        let after = waiting.dropFirst(index + 1).lazy.filter { $0.track == doubtful.track }
            .compactMap { stamp in stamp.time.map { (stamp, $0) } }
        guard let track = tracks[doubtful.track] else { return judgeFirst(doubtful, time, after.prefix(2).map(\.1)) }
        if let pts = doubtful.pts, isShownApart(track, doubtful, time), continues(track, doubtful, time) {
            return judgeShown(doubtful, time, pts, track)
        }
        // Those that come far sooner after the one before them than the doubtful one does.
        var (following, dense) = (0, 0)
        // How far the packets that follow have come.
        var reached = time
        let isAhead = time > track.last
        let ahead = isAhead ? MediaTime.max : max(Self.leastStep, times(track.step, 16))
        // Where the packets that follow would lie, one behind the other.
        var (previous, due) = (time, track.end + length(doubtful, track))
        for (stamp, other) in after {
            // One stamp of sound may be that of more than it is wrong by.
            if isAhead, doubtful.isSound, other < previous, isNear(other, due, back: track.step, ahead: track.step) {
                return .outlier
            }
            (previous, due) = (other, due + length(stamp, track))
            if isAhead ? other < time && continues(track, stamp, other) : continues(track, stamp, other) {
                // What is near both tells nothing: a step of less than what is in doubt.
                let isNearBoth = isNear(other, time, back: .zero, ahead: Self.leastStep) && other < track.end
                if isAhead || !isNearBoth { return .outlier }
            } else if isNear(other, time, back: isAhead ? .zero : Self.mostReordered, ahead: (reached - time) + ahead) {
                following += 1
                if isAhead, other - reached < MediaTime(nanoseconds: (time - track.last).nanoseconds / 4) { dense += 1 }
                if !isAhead || dense > 0 { reached = max(reached, min(other, reached + mostWait)) }
            }
        }
        let isFull = hasEnded || waiting.count >= Self.most || reached - time >= mostWait
        return isAhead
            ? judgeAhead(doubtful, index, time, track, following, isSeldom: 2 * dense < following, reached, isFull)
            : judgeBack(doubtful, time, track, following, reached, isFull)
    }

    /// Of a picture whose decoding time is right, and its PTS far from it. In a pause, those that can still be decoded before
    /// it are shown behind it: soon, others are decoded there.
    private func judgeShown(_ doubtful: Stamp, _ time: MediaTime, _ pts: MediaTime, _ track: Track) -> Verdict {
        if track.segment < segments.count - 1,
            isNear(pts, segments[segments.count - 1].front, back: Self.leastStep, ahead: Self.leastStep)
        {
            return .crossing
        }
        var (following, near) = (0, 0)
        for (index, stamp) in waiting.enumerated().dropFirst() where stamp.track == doubtful.track {
            guard let other = stamp.time else { continue }
            let isThere =
                pts > time && isNear(other, pts, back: Self.mostReordered, ahead: Self.leastStep) && other > time
            let goesOn = continues(track, stamp, other)
            if isThere, !goesOn || other >= pts {
                let verdict = goesOn ? .pause : judge(stamp, at: index)
                switch verdict {
                case .open, .step, .pause: return verdict
                default: break
                }
            }
            following += 1
            if !isShownApart(track, stamp, other) { near += 1 }
            if following >= Self.confirmingJitter { break }
        }
        let isFull = hasEnded || waiting.count >= Self.most
        guard following >= Self.confirmingJitter || isFull else { return .open }
        return following >= Self.confirming && 2 * near > following ? .outlierShown : .pause
    }

    /// Of a track's first packet: it is wrong where the next two go on together, before it.
    private func judgeFirst(_ doubtful: Stamp, _ time: MediaTime, _ next: [MediaTime]) -> Verdict {
        guard doubtful.dts != nil, let second = next.first, second < time - Self.mostAhead else {
            let isAnswered = doubtful.dts == nil || !next.isEmpty
            return isAnswered || hasEnded || waiting.count >= Self.mostBeforeSecond ? .pause : .open
        }
        guard next.count > 1 else { return hasEnded || waiting.count >= Self.most ? .pause : .open }
        return next[1] >= second && next[1] < time - Self.mostAhead ? .outlier : .pause
    }

    /// None of the track has come back to where it was.
    private func judgeAhead(
        _ doubtful: Stamp, _ index: Int, _ time: MediaTime, _ track: Track, _ following: Int, isSeldom: Bool,
        _ reached: MediaTime, _ isFull: Bool
    ) -> Verdict {
        let distance = time - track.last
        // Nothing behind the input's last packets could come back.
        if hasEnded, following == 0 { return distance > max(Self.mostApart, times(track.step, 16)) ? .outlier : .pause }
        guard following >= Self.confirming || isFull else { return .open }
        let haveOthers = tracks.count > 1 && othersHaveArrived(at: time, doubtful.track)
        if doubtful.isSound, !isSeldom, !isFull, reached - time < Self.confirmingSound, !haveOthers { return .open }
        guard closesGaps, distance > Self.leastStep, !isSeldom, tracks.count > 1 else { return .pause }
        return isFull || haveOthers ? .step(index) : .open
    }

    /// None of the track has gone on where it was.
    private func judgeBack(
        _ doubtful: Stamp, _ time: MediaTime, _ track: Track, _ following: Int, _ reached: MediaTime, _ isFull: Bool
    ) -> Verdict {
        let isSmall = isJitter(time, track)
        let needed = isSmall ? Self.confirmingJitter : Self.confirming
        guard following >= needed || isFull else { return .open }
        // The last packets of an input have nothing behind them that could confirm them.
        guard following >= (hasEnded && !isSmall ? 1 : needed) else { return .outlier }
        let haveOthers = othersHaveArrived(at: time, doubtful.track)
        if doubtful.isSound, !hasEnded, reached - time < Self.confirmingSound, !(haveOthers && tracks.count > 1) {
            return isFull ? .outlier : .open
        }
        return isFull || haveOthers ? .step(0) : .open
    }

    private func isJitter(_ time: MediaTime, _ track: Track) -> Bool {
        time < track.last && time >= track.last - max(Self.mostJitter, times(track.step, 16))
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
        isNear(time, new, back: Self.mostReordered, ahead: Self.leastStep) && !continues(track, stamp, time)
    }

    /// Takes the packet that waits first as it is: a gap of the input.
    private mutating func goOn(with first: Stamp) {
        guard let time = first.time else { return placements.append(.shifted(by: .zero)) }
        let segment = tracks[first.track]?.segment ?? segments.count - 1
        take(first, at: time, in: segment)
        placements.append(.shifted(by: segments[segment].shift))
    }

    /// The placement of a picture whose decoding time is right, and its PTS wrong.
    private mutating func withoutShowing(_ stamp: Stamp) -> Placement {
        guard let time = stamp.time, let pts = stamp.pts, let track = tracks[stamp.track] else {
            return .shifted(by: .zero)
        }
        note(outlier: pts)
        var right = stamp
        right.pts = nil
        take(right, at: time, in: track.segment)
        return .replaced(pts: nil, dts: time + segments[track.segment].shift)
    }

    /// The placement of a picture that is decoded in its track's segment, and shown in the newest.
    private mutating func crossing(_ stamp: Stamp) -> Placement {
        guard let time = stamp.time, let pts = stamp.pts, let track = tracks[stamp.track] else {
            return .shifted(by: .zero)
        }
        var decoded = stamp
        decoded.pts = nil
        take(decoded, at: time, in: track.segment)
        return .replaced(pts: pts + segments[segments.count - 1].shift, dts: time + segments[track.segment].shift)
    }

    /// Begins a segment with a packet that waits.
    ///
    /// - Parameter isFirst: Whether it waits first, and is placed.
    private mutating func begin(with first: Stamp, isFirst: Bool) {
        guard let time = first.time else { return }
        let track = tracks[first.track]
        let oldSegment = track?.segment ?? segments.count - 1
        let old = segments[oldSegment]
        // Each track ends somewhere in the old segment, with what of it still waits, and begins somewhere in the new
        // one. The one that would overlap most says how far all move.
        var shift: MediaTime?
        for (number, track) in tracks where track.segment == oldSegment {
            // By the times of decoding and by those of showing.
            var ends = (track.end, track.shownEnd)
            var begins: (MediaTime, MediaTime)?
            var crossing: MediaTime?
            for stamp in waiting where stamp.track == number {
                guard let other = stamp.time else { continue }
                // Outliers among them say nothing, and others are shown behind the step.
                let isApart = isShownApart(track, stamp, other)
                let shown = isApart ? other : stamp.pts ?? other
                if isApart, let pts = stamp.pts, isNear(pts, time, back: Self.mostReordered, ahead: Self.leastStep) {
                    crossing = min(crossing ?? pts, pts)
                }
                let isNew =
                    number == first.track
                    ? isNear(other, time, back: Self.mostReordered, ahead: Self.leastStep)
                    : isNew(other, stamp, track, at: time)
                if isNew {
                    begins = begins.map { ($0.0, other < $0.0 ? $0.1 : min($0.1, shown)) } ?? (other, shown)
                } else if begins == nil, continues(track, stamp, other) {
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
        forgetSegments()
        segments.append(Segment(shift: moved, front: time))
        guard isFirst else { return }
        take(first, at: time, in: segments.count - 1)
        placements.append(.shifted(by: moved))
        waiting.removeFirst()
    }

    /// Keeps a stream that steps for ever from filling the memory: segments in which no track is any more go, and with too
    /// many of them the tracks that have stayed in the oldest.
    private mutating func forgetSegments() {
        guard segments.count >= Self.mostSegments else { return }
        let kept = segments.count - Self.mostSegments / 2
        tracks = tracks.filter { $0.value.segment >= kept }
        for number in tracks.keys { tracks[number]?.segment -= kept }
        segments.removeFirst(kept)
    }

    /// The place of an outlier: after the packet before it, and before the next one of its track that goes on there.
    private mutating func replacement(_ stamp: Stamp) -> Placement {
        guard let time = stamp.time else { return .shifted(by: segments[segments.count - 1].shift) }
        guard var track = tracks[stamp.track] else {
            // The first of its track begins where the second does.
            note(outlier: time)
            let second = waiting.dropFirst().first { $0.track == stamp.track }?.time ?? time
            let place = second + segments[segments.count - 1].shift
            return .replaced(pts: place, dts: place)
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
            } else if ahead >= .zero, ahead <= Self.leastStep {
                pts = place + shift + ahead
            } else if isNear(given, track.last, back: Self.mostReordered, ahead: Self.leastStep) {
                pts = given + shift
            }
        }
        return .replaced(pts: pts, dts: place + shift)
    }
}
