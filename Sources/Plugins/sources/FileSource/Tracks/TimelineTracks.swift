// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// Where the tracks of an ``InputTimeline`` are: what is known of each, and by how much each segment moves.
struct TimelineTracks {
    typealias Stamp = InputTimeline.Stamp

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
    static let mostBeforeSecond = 64

    static let mostSegments = 64

    /// Whether a step forward is closed. Otherwise it is a gap of the input, and stays.
    let closesGaps: Bool
    /// Whether reading begins in the middle: libavformat then guesses the first decoding times, which may be too late.
    let isInMiddle: Bool
    /// Whether packets come when they are captured. Pictures that come seldom then do not wait for later ones: a single
    /// track's times ahead, and the first packet of a track, are believed.
    let isLive: Bool
    /// How long the packets of a track may wait for the other tracks at a step.
    var mostWait: MediaTime { MediaTime(seconds: isLive ? 0.5 : 3) }
    static let guessed = 32
    static let mostGuessed = MediaTime(seconds: 1)
    /// A time that is so little back may be one of decoding that libavformat took from the order of showing. So as many
    /// packets as may be reordered (H.264, A.3.1 h) must follow it for a step, and it stays as it is where it is none.
    static let mostJitter = MediaTime(seconds: 1)
    static let confirmingJitter = 16

    struct Segment {
        var shift: MediaTime
        /// The latest time of a packet, in the input's own time.
        var front: MediaTime
    }

    struct Track {
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

    var segments: [Segment]
    var tracks: [Int: Track] = [:]

    init(shift: MediaTime, closesGaps: Bool, isInMiddle: Bool, isLive: Bool) {
        self.isLive = isLive
        self.isInMiddle = isInMiddle
        segments = [Segment(shift: shift, front: .min)]
        self.closesGaps = closesGaps
    }

    /// Whether sound that goes on where its track is leaves a hole, which one wrong time would make.
    func leaps(_ track: Track, _ stamp: Stamp, _ time: MediaTime) -> Bool {
        stamp.isSound && stamp.dts != nil && !isLive
            && time > track.end + max(Self.mostAheadInSound, times(track.step, 4))
    }

    /// Whether a picture is shown long after it is decoded, as one wrong PTS says, or before.
    func isShownApart(_ track: Track, _ stamp: Stamp, _ time: MediaTime) -> Bool {
        guard !stamp.isSound, stamp.dts != nil, let pts = stamp.pts, !(isInMiddle && track.count < Self.guessed) else {
            return false
        }
        let most = max(Self.mostShownApart, times(track.step, 32), times(track.apart, 2))
        return !isNear(pts, time, back: most, ahead: most)
    }

    /// Whether a time goes on where its track is.
    func continues(_ track: Track, _ stamp: Stamp, _ time: MediaTime) -> Bool {
        let front = max(segments[track.segment].front, track.last)
        guard stamp.dts != nil, track.isDecoding else {
            return isNear(time, front, back: Self.mostApart, ahead: Self.mostApart)
        }
        let back: MediaTime = isInMiddle && track.count < Self.guessed ? Self.mostGuessed : .zero
        // Where packets come seldom, the next one may be as far away as several of the last steps.
        guard time >= track.last - back, !(isLive && tracks.count < 2) else { return time >= track.last - back }
        return time <= front + max(isLive ? Self.leastStep : Self.mostAhead, times(track.step, 4))
    }

    func length(_ stamp: Stamp, _ track: Track) -> MediaTime {
        stamp.duration > .zero ? stamp.duration : track.step
    }

    func times(_ time: MediaTime, _ count: Int64) -> MediaTime {
        MediaTime(nanoseconds: min(max(time.nanoseconds, 0), MediaTime.range.upperBound / count) * count)
    }

    func isNear(_ time: MediaTime, _ other: MediaTime, back: MediaTime, ahead: MediaTime) -> Bool {
        time >= other - back && time <= other + ahead
    }

    func isJitter(_ time: MediaTime, _ track: Track) -> Bool {
        time < track.last && time >= track.last - max(Self.mostJitter, times(track.step, 16))
    }

    /// Whether a packet of another track belongs to the times at which a doubtful one is.
    func isNew(_ time: MediaTime, _ stamp: Stamp, _ track: Track, at new: MediaTime) -> Bool {
        isNear(time, new, back: Self.mostReordered, ahead: Self.leastStep) && !continues(track, stamp, time)
    }

    mutating func take(_ stamp: Stamp, at time: MediaTime, in segment: Int) {
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

    /// Keeps a stream that steps for ever from filling the memory: segments in which no track is any more go, and with too
    /// many of them the tracks that have stayed in the oldest.
    mutating func forgetSegments() {
        guard segments.count >= Self.mostSegments else { return }
        let kept = segments.count - Self.mostSegments / 2
        tracks = tracks.filter { $0.value.segment >= kept }
        for number in tracks.keys { tracks[number]?.segment -= kept }
        segments.removeFirst(kept)
    }
}
