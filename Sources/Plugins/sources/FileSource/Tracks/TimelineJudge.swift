// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// Judges a packet of an ``InputTimeline`` that is in doubt by the packets that follow it.
struct TimelineJudge {
    typealias Stamp = InputTimeline.Stamp
    typealias Track = TimelineTracks.Track

    /// Where the tracks are.
    let known: TimelineTracks
    /// Packets that wait, the first of which is in doubt.
    let waiting: [Stamp]
    let hasEnded: Bool

    enum Verdict {
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
    func judge(_ doubtful: Stamp, at index: Int = 0) -> Verdict {
        guard let time = doubtful.time else { return .outlier }
        let after = waiting.dropFirst(index + 1).lazy.filter { $0.track == doubtful.track }
            .compactMap { stamp in stamp.time.map { (stamp, $0) } }
        guard let track = known.tracks[doubtful.track] else {
            return judgeFirst(doubtful, time, after.prefix(2).map(\.1))
        }
        if let pts = doubtful.pts, known.isShownApart(track, doubtful, time), known.continues(track, doubtful, time) {
            return judgeShown(doubtful, time, pts, track)
        }
        // Those that come far sooner after the one before them than the doubtful one does.
        var (following, dense) = (0, 0)
        // How far the packets that follow have come.
        var reached = time
        let isAhead = time > track.last
        let ahead = isAhead ? MediaTime.max : max(TimelineTracks.leastStep, known.times(track.step, 16))
        // Where the packets that follow would lie, one behind the other.
        var (previous, due) = (time, track.end + known.length(doubtful, track))
        for (stamp, other) in after {
            // One stamp of sound may be that of more than it is wrong by.
            if isAhead, doubtful.isSound, other < previous,
                known.isNear(other, due, back: track.step, ahead: track.step)
            {
                return .outlier
            }
            (previous, due) = (other, due + known.length(stamp, track))
            if isAhead ? other < time && known.continues(track, stamp, other) : known.continues(track, stamp, other) {
                // What is near both tells nothing: a step of less than what is in doubt.
                let isNearBoth =
                    known.isNear(other, time, back: .zero, ahead: TimelineTracks.leastStep) && other < track.end
                if isAhead || !isNearBoth { return .outlier }
            } else if known.isNear(
                other, time, back: isAhead ? .zero : TimelineTracks.mostReordered, ahead: (reached - time) + ahead)
            {
                following += 1
                if isAhead, other - reached < MediaTime(nanoseconds: (time - track.last).nanoseconds / 4) { dense += 1 }
                if !isAhead || dense > 0 { reached = max(reached, min(other, reached + known.mostWait)) }
            }
        }
        let isFull = hasEnded || waiting.count >= TimelineTracks.most || reached - time >= known.mostWait
        return isAhead
            ? judgeAhead(doubtful, index, time, track, following, isSeldom: 2 * dense < following, reached, isFull)
            : judgeBack(doubtful, time, track, following, reached, isFull)
    }

    /// Of a picture whose decoding time is right, and its PTS far from it. In a pause, those that can still be decoded before
    /// it are shown behind it: soon, others are decoded there.
    private func judgeShown(_ doubtful: Stamp, _ time: MediaTime, _ pts: MediaTime, _ track: Track) -> Verdict {
        if track.segment < known.segments.count - 1,
            known.isNear(
                pts, known.segments[known.segments.count - 1].front, back: TimelineTracks.leastStep,
                ahead: TimelineTracks.leastStep)
        {
            return .crossing
        }
        var (following, near) = (0, 0)
        for (index, stamp) in waiting.enumerated().dropFirst() where stamp.track == doubtful.track {
            guard let other = stamp.time else { continue }
            let isThere =
                pts > time
                && known.isNear(other, pts, back: TimelineTracks.mostReordered, ahead: TimelineTracks.leastStep)
                && other > time
            let goesOn = known.continues(track, stamp, other)
            if isThere, !goesOn || other >= pts {
                let verdict = goesOn ? .pause : judge(stamp, at: index)
                switch verdict {
                case .open, .step, .pause: return verdict
                default: break
                }
            }
            following += 1
            if !known.isShownApart(track, stamp, other) { near += 1 }
            if following >= TimelineTracks.confirmingJitter { break }
        }
        let isFull = hasEnded || waiting.count >= TimelineTracks.most
        guard following >= TimelineTracks.confirmingJitter || isFull else { return .open }
        return following >= TimelineTracks.confirming && 2 * near > following ? .outlierShown : .pause
    }

    /// Of a track's first packet: it is wrong where the next two go on together, before it.
    private func judgeFirst(_ doubtful: Stamp, _ time: MediaTime, _ next: [MediaTime]) -> Verdict {
        guard doubtful.dts != nil, let second = next.first, second < time - TimelineTracks.mostAhead else {
            let isAnswered = doubtful.dts == nil || !next.isEmpty
            return isAnswered || hasEnded || waiting.count >= TimelineTracks.mostBeforeSecond ? .pause : .open
        }
        guard next.count > 1 else { return hasEnded || waiting.count >= TimelineTracks.most ? .pause : .open }
        return next[1] >= second && next[1] < time - TimelineTracks.mostAhead ? .outlier : .pause
    }

    /// None of the track has come back to where it was.
    private func judgeAhead(
        _ doubtful: Stamp, _ index: Int, _ time: MediaTime, _ track: Track, _ following: Int, isSeldom: Bool,
        _ reached: MediaTime, _ isFull: Bool
    ) -> Verdict {
        let distance = time - track.last
        // Nothing behind the input's last packets could come back.
        if hasEnded, following == 0 {
            return distance > max(TimelineTracks.mostApart, known.times(track.step, 16)) ? .outlier : .pause
        }
        guard following >= TimelineTracks.confirming || isFull else { return .open }
        let haveOthers = known.tracks.count > 1 && othersHaveArrived(at: time, doubtful.track)
        if doubtful.isSound, !isSeldom, !isFull, reached - time < TimelineTracks.confirmingSound, !haveOthers {
            return .open
        }
        guard known.closesGaps, distance > TimelineTracks.leastStep, !isSeldom, known.tracks.count > 1 else {
            return .pause
        }
        return isFull || haveOthers ? .step(index) : .open
    }

    /// None of the track has gone on where it was.
    private func judgeBack(
        _ doubtful: Stamp, _ time: MediaTime, _ track: Track, _ following: Int, _ reached: MediaTime, _ isFull: Bool
    ) -> Verdict {
        let isSmall = known.isJitter(time, track)
        let needed = isSmall ? TimelineTracks.confirmingJitter : TimelineTracks.confirming
        guard following >= needed || isFull else { return .open }
        // The last packets of an input have nothing behind them that could confirm them.
        guard following >= (hasEnded && !isSmall ? 1 : needed) else { return .outlier }
        let haveOthers = othersHaveArrived(at: time, doubtful.track)
        if doubtful.isSound, !hasEnded, reached - time < TimelineTracks.confirmingSound,
            !(haveOthers && known.tracks.count > 1)
        {
            return isFull ? .outlier : .open
        }
        return isFull || haveOthers ? .step(0) : .open
    }

    /// Whether each track that is where the doubtful one was has a packet at the new times as well, so that the step is
    /// the same for all.
    private func othersHaveArrived(at time: MediaTime, _ doubtful: Int) -> Bool {
        guard let segment = known.tracks[doubtful]?.segment else { return true }
        return known.tracks.allSatisfy { number, track in
            if number == doubtful || track.segment != segment { return true }
            if track.last < known.segments[segment].front - TimelineTracks.mostReordered { return true }
            return waiting.contains { stamp in
                stamp.track == number && stamp.time.map { known.isNew($0, stamp, track, at: time) } == true
            }
        }
    }
}
