// SPDX-License-Identifier: Apache-2.0

/// All faces: matches detections with tracks, gives ids, and ends tracks that were not seen for too long.
///
/// A value without threads or pixels; time is that of the frames. Allocates nothing once its lists have their room.
struct FaceTracks {
    struct Rules {
        /// Whether a face is confirmed at its first detection (with privacy).
        var confirmsAtOnce = false
        /// A detection with less confidence than this keeps a known face, but begins no new one.
        var leastConfidence = 0.0
        /// How long a face that is followed well stays without a detection, nanoseconds: `leastUnseen`, and
        /// `unseenPerLook` more for each time it was seen, but at most `longestUnseen`.
        var leastUnseen: Int64 = 300_000_000
        var unseenPerLook: Int64 = 150_000_000
        var longestUnseen: Int64 = 1_500_000_000
        /// The same where its points are not found.
        var longestBlind: Int64 = 300_000_000
        /// How long a lost face keeps its id.
        var remembersLost: Int64 = 1_000_000_000
    }

    static let mostTracks = 64
    /// The most detections that are taken in at once.
    private static let mostDetections = 512
    /// Least overlap of a detection with a track that is the same face.
    private static let sameFace = 0.25
    /// Share of the smaller of two boxes within the larger that makes them one face.
    private static let hiddenFace = 0.75

    let rules: Rules
    private(set) var tracks: [FaceTrack] = []
    /// Tracks that ended a short while ago.
    private var lost: [FaceTrack] = []
    private var isMatched = [Bool](repeating: false, count: mostTracks)
    private var nextID: UInt32 = 1
    private var nextSerial = 1

    init(_ rules: Rules = Rules()) {
        self.rules = rules
        tracks.reserveCapacity(Self.mostTracks)
        lost.reserveCapacity(Self.mostTracks)
    }

    /// True while a face waits for its second look.
    var hasDoubts: Bool { tracks.contains { !$0.isConfirmed } }
    /// True when a face's points were lost in this very frame.
    var hasJustLostSight: Bool { tracks.contains { $0.blindFrames == 1 } }

    /// Ends all tracks: no face of the scene before is in the new one.
    mutating func endAll() {
        tracks.removeAll(keepingCapacity: true)
        lost.removeAll(keepingCapacity: true)
    }

    /// Moves each track. `motion` says what its points did since the frame before; nil where they were not found.
    mutating func follow(_ motion: (FaceRect) -> FaceMotion?, scaleX: Double, scaleY: Double) {
        for index in tracks.indices {
            tracks[index].age += 1
            if let found = motion(tracks[index].box) {
                tracks[index].move(found, scaleX: scaleX, scaleY: scaleY)
            } else {
                tracks[index].driftOn()
            }
        }
    }

    /// Takes in what a detector found in the picture of frame `frame`; the current frame is `now`.
    ///
    /// - Parameters:
    ///   - time: Of that picture, nanoseconds.
    ///   - carry: Brings the box of a new face from that picture to the present one.
    /// - Returns: False where a face could not be taken in, since there are too many.
    @discardableResult
    mutating func take(
        _ detections: some RandomAccessCollection<Detection>, frame: Int, now: Int, time: Int64,
        carry: (FaceRect) -> FaceRect
    ) -> Bool {
        for index in isMatched.indices { isMatched[index] = false }
        let known = tracks.count
        func see(_ detection: Detection, _ index: Int) {
            isMatched[index] = true
            tracks[index].see(detection, then: place(of: index, frame, now), time: time, frame: frame)
        }
        var isTaken = InlineArray<512, Bool>(repeating: false)
        var hasTakenAll = detections.count <= Self.mostDetections
        func detection(_ number: Int) -> Detection {
            detections[detections.index(detections.startIndex, offsetBy: number)]
        }
        let count = min(detections.count, Self.mostDetections)
        let claims = claims(detections, count, among: known, frame: frame, now: now)
        for index in 0..<known where claims[index] >= 0 {
            isTaken[claims[index]] = true
            see(detection(claims[index]), index)
        }
        // Then those that are partly hidden, or jumped.
        for number in 0..<count where !isTaken[number] {
            guard let index = nearTrack(detection(number).box, among: known, frame: frame, now: now) else { continue }
            isTaken[number] = true
            see(detection(number), index)
        }
        for number in 0..<count where !isTaken[number] {
            let detection = detection(number)
            // An unmatched face near an unmatched track is the same one: something that passed in front took the
            // track along.
            if let index = (0..<known).first(where: {
                !isMatched[$0] && tracks[$0].isConfirmed && Self.isBack(tracks[$0], detection.box, after: 0, rules)
            }) {
                see(detection, index)
            } else if detection.confidence >= rules.leastConfidence
                // It would have kept a track that another one has now.
                || (rules.confirmsAtOnce
                    && (0..<known).contains { place(of: $0, frame, now).overlap(detection.box) >= Self.sameFace })
            {
                if tracks.count < Self.mostTracks {
                    begin(detection, frame: frame, now: now, time: time, carry: carry)
                } else {
                    hasTakenAll = false
                }
            }
        }
        for index in 0..<known where !isMatched[index] { tracks[index].look(false) }
        for index in tracks.indices
        where !tracks[index].isConfirmed && (rules.confirmsAtOnce || tracks[index].isSeenOften) {
            tracks[index].id = nextID
            nextID &+= 1
        }
        return hasTakenAll
    }

    /// The number of the detection that lies where a track is, for each track, and -1 for none: the closest pair of each
    /// track, so that no face takes the track of one that was found too.
    private func claims(
        _ detections: some RandomAccessCollection<Detection>, _ count: Int, among known: Int, frame: Int, now: Int
    ) -> InlineArray<64, Int> {
        var claims = InlineArray<64, Int>(repeating: -1)
        var claimed = InlineArray<64, Double>(repeating: 0)
        for first in 0..<count {
            var number = first
            while number >= 0 {
                var (best, most) = (-1, 0.0)
                let box = detections[detections.index(detections.startIndex, offsetBy: number)].box
                for index in 0..<known {
                    let overlap = place(of: index, frame, now).overlap(box)
                    if overlap >= Self.sameFace, overlap > claimed[index], overlap > most {
                        (best, most) = (index, overlap)
                    }
                }
                guard best >= 0 else { break }
                // What had claimed the track looks for another one.
                swap(&claims[best], &number)
                claimed[best] = most
            }
        }
        return claims
    }

    /// Ends a frame of this time: faces that were not seen for too long go, the others settle.
    mutating func settle(frame: Int, time: Int64) {
        for index in tracks.indices { tracks[index].settle(frame) }
        removeTwins(frame)
        var index = 0
        while index < tracks.count {
            let track = tracks[index]
            let unseen = time - track.lastSeen
            let patience =
                track.blindFrames > 0
                ? rules.longestBlind
                : min(rules.longestUnseen, rules.leastUnseen + Int64(track.seenCount) * rules.unseenPerLook)
            if track.isRefuted || unseen > patience || (unseen < 0 && -unseen > rules.longestUnseen) {
                if track.isConfirmed, lost.count < Self.mostTracks { lost.append(track) }
                tracks.remove(at: index)
            } else {
                index += 1
            }
        }
        lost.removeAll { abs(time - $0.lastSeen) > rules.remembersLost + rules.longestUnseen }
    }

    /// Where a track was in a frame.
    private func place(of index: Int, _ frame: Int, _ now: Int) -> FaceRect {
        tracks[index].box(at: frame, now: now) ?? tracks[index].box
    }

    /// The unmatched track that a box is most like, where they do not overlap enough to be sure.
    private func nearTrack(_ box: FaceRect, among known: Int, frame: Int, now: Int) -> Int? {
        var best: Int?
        var most = 0.0
        for index in 0..<known where !isMatched[index] {
            let likeness = Self.likeness(place(of: index, frame, now), box)
            if likeness > most { (best, most) = (index, likeness) }
        }
        return best
    }

    /// How much speaks for one face where one box lies mostly within the other (something hides a part of the face), or
    /// where boxes of similar size lie side by side (a face jumped); else 0.
    private static func likeness(_ a: FaceRect, _ b: FaceRect) -> Double {
        if a.containment(b) > hiddenFace { return 0.9 }
        let distance =
            ((a.centerX - b.centerX) * (a.centerX - b.centerX) + (a.centerY - b.centerY) * (a.centerY - b.centerY))
            .squareRoot()
        let ratio = a.size / b.size
        guard ratio > 0.6, ratio < 1.6, distance < 0.6 * (a.size + b.size) / 2 else { return 0 }
        return 1 - distance / (a.size + b.size)
    }

    private mutating func begin(
        _ detection: Detection, frame: Int, now: Int, time: Int64, carry: (FaceRect) -> FaceRect
    ) {
        var present = detection
        if frame != now {
            present.box = carry(detection.box)
            present.landmarks = detection.landmarks?.mapped {
                FacePoint(
                    x: $0.x + present.box.centerX - detection.box.centerX,
                    y: $0.y + present.box.centerY - detection.box.centerY)
            }
        }
        if let index = lost.lastIndex(where: { Self.isBack($0, present.box, after: time - $0.lastSeen, rules) }) {
            var track = FaceTrack(serial: lost[index].serial, present, time: time, frame: frame)
            track.id = lost[index].id
            track.age = lost[index].age
            track.seenCount = lost[index].seenCount + 1
            track.comes(from: lost[index].box)
            track.remember(now)
            lost.remove(at: index)
            tracks.append(track)
            return
        }
        var track = FaceTrack(serial: nextSerial, present, time: time, frame: frame)
        track.remember(now)
        tracks.append(track)
        nextSerial += 1
    }

    /// Whether a box is a face near where one was lost, of similar size, not long after.
    private static func isBack(_ track: FaceTrack, _ box: FaceRect, after unseen: Int64, _ rules: Rules) -> Bool {
        let dx = track.box.centerX - box.centerX
        let dy = track.box.centerY - box.centerY
        let ratio = track.box.size / box.size
        return ratio > 0.5 && ratio < 2 && unseen < rules.remembersLost + rules.longestUnseen
            && (dx * dx + dy * dy).squareRoot() < 1.5 * max(track.box.size, box.size)
    }

    /// Where two tracks follow one face, removes the one that was seen less often. What this frame's search saw of it stays
    /// within the other.
    private mutating func removeTwins(_ frame: Int) {
        var a = 0
        while a < tracks.count {
            var b = a + 1
            while b < tracks.count {
                if tracks[a].box.containment(tracks[b].box) > Self.hiddenFace {
                    if tracks[b].seenCount > tracks[a].seenCount { tracks.swapAt(a, b) }
                    if tracks[b].lastSeenFrame == frame { tracks[a].take(tracks[b]) }
                    tracks.remove(at: b)
                } else {
                    b += 1
                }
            }
            a += 1
        }
    }
}
