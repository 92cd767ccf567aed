// SPDX-License-Identifier: Apache-2.0

/// One face over time. Coordinates are those of the stored picture in full size.
struct FaceTrack {
    /// Unique in a run, from the first detection on.
    let serial: Int
    /// The number people see, given when the face is confirmed; 0 before.
    var id: UInt32 = 0
    /// The best estimate for this frame.
    var box: FaceRect
    /// What the last detection that saw it saw, where that is now known to lie. The estimate lags behind it.
    private(set) var seenBox: FaceRect
    /// What is shown: the same without the small jumps of detections.
    var shown: FaceRect
    /// Whether this frame's detection was elsewhere than where it was followed to.
    private(set) var hasJumped = false
    /// The least overlap of a detection with the place where a face was followed to.
    private static let samePlace = 0.25
    var landmarks: Landmarks?
    /// The confidence of the last detection that saw it, 0...1.
    var confidence: Double
    /// The mean confidence of the last ten or so.
    private var usualConfidence: Double
    /// Whether the last three detections since it was first seen saw it, the newest in the lowest bit.
    var looks: UInt8 = 1
    /// How many detections there were since it was first seen, up to three.
    var lookCount = 1
    /// How many detections saw it.
    var seenCount = 1
    /// Time of the picture of the last detection that saw it, nanoseconds.
    var lastSeen: Int64
    /// Frame of that picture, by the stage's count.
    var lastSeenFrame: Int
    /// Frames since it was first seen.
    var age = 0
    /// Pixels a frame, smoothed.
    var velocityX = 0.0
    var velocityY = 0.0
    /// Whether its points were found again in this frame.
    var isFollowed = true
    /// Frames in a row in which its points were not found.
    var blindFrames = 0
    /// Where it was in the last frames, by frame number; for answers that come late.
    private var past = InlineArray<32, FaceRect>(repeating: FaceRect(x: 0, y: 0, width: 0, height: 0))

    init(serial: Int, _ detection: Detection, time: Int64, frame: Int) {
        self.serial = serial
        (box, seenBox, shown) = (detection.box, detection.box, detection.box)
        landmarks = detection.landmarks
        confidence = detection.confidence
        usualConfidence = detection.confidence
        lastSeen = time
        lastSeenFrame = frame
        remember(frame)
    }

    var isConfirmed: Bool { id != 0 }
    /// Whether two of the last three detections saw it.
    var isSeenOften: Bool { (looks & 7).nonzeroBitCount >= 2 }
    /// Whether there were three detections, of which only one saw it.
    var isRefuted: Bool { !isConfirmed && lookCount >= 3 && !isSeenOften }

    mutating func remember(_ frame: Int) { past[frame & 31] = box }

    /// Where it was in `frame`, `now` being this one; nil when that is too long ago or it was not there yet.
    func box(at frame: Int, now: Int) -> FaceRect? {
        // The box of this frame is only remembered at the frame's end.
        frame == now ? box : now - frame < 32 && now - frame <= age ? past[frame & 31] : nil
    }

    /// Moves with what its points did, in pixels of full size.
    mutating func move(_ motion: FaceMotion, scaleX: Double, scaleY: Double) {
        let dx = motion.dx * scaleX
        let dy = motion.dy * scaleY
        let (oldX, oldY) = (box.centerX, box.centerY)
        func change(_ rect: FaceRect) -> FaceRect {
            FaceRect(
                centerX: oldX + dx + (rect.centerX - oldX) * motion.growth,
                centerY: oldY + dy + (rect.centerY - oldY) * motion.growth,
                width: rect.width * motion.growth, height: rect.height * motion.growth)
        }
        landmarks = landmarks?.mapped { point in
            let x = point.x - oldX
            let y = point.y - oldY
            return FacePoint(
                x: oldX + dx + motion.growth * (x - motion.turn * y),
                y: oldY + dy + motion.growth * (y + motion.turn * x))
        }
        shown = change(shown)
        box = change(box)
        hasJumped = false
        velocityX += (dx - velocityX) * 0.5
        velocityY += (dy - velocityY) * 0.5
        isFollowed = true
        blindFrames = 0
    }

    /// Its points were not found: it goes on as it went, slower and slower.
    mutating func driftOn() {
        velocityX *= 0.7
        velocityY *= 0.7
        box = box.moved(velocityX, velocityY)
        shown = shown.moved(velocityX, velocityY)
        landmarks = landmarks?.mapped { FacePoint(x: $0.x + velocityX, y: $0.y + velocityY) }
        isFollowed = false
        hasJumped = false
        blindFrames += 1
    }

    /// Takes in a detection that saw it. The box goes a part of the way to the detection's, a larger part where the
    /// two agree less, and all the way where they hardly overlap.
    ///
    /// A detector that is less sure than before, and whose box is smaller, sees what a hand or a bar leaves of the
    /// face: the box hardly follows.
    ///
    /// - Parameter then: Where the track was in the detection's picture.
    mutating func see(_ detection: Detection, then: FaceRect, time: Int64, frame: Int) {
        let agreement = then.overlap(detection.box)
        hasJumped = agreement < Self.samePlace
        // A cascade is just as sure of a smaller square, and its squares jump.
        let isYuNet = detection.landmarks != nil
        let isHidden = isYuNet && detection.confidence < usualConfidence - 0.07 && detection.box.area < 0.95 * then.area
        usualConfidence += (detection.confidence - usualConfidence) * 0.1
        let isFar = agreement < 0.5 || (blindFrames > 0 && !isHidden)
        let (place, size) =
            isFar ? (1, 1) : isHidden ? (0.15, 0.05) : isYuNet && agreement < 0.8 ? (0.7, 0.6) : (0.5, 0.35)
        let aim = FaceRect(
            centerX: box.centerX + detection.box.centerX - then.centerX,
            centerY: box.centerY + detection.box.centerY - then.centerY,
            width: box.width + detection.box.width - then.width, height: box.height + detection.box.height - then.height
        )
        // A late answer for a face that has grown much since could turn a side negative.
        if aim.width > 1, aim.height > 1 {
            box = box.approaching(aim, place: place, size: size)
            seenBox = aim
        }
        if isFar { shown = box }
        if let found = detection.landmarks {
            let moved = found.mapped {
                FacePoint(x: $0.x + aim.centerX - detection.box.centerX, y: $0.y + aim.centerY - detection.box.centerY)
            }
            landmarks = landmarks.map { $0.approaching(moved, isFar ? 1 : 0.5) } ?? moved
        }
        confidence = detection.confidence
        look(true)
        seenCount += 1
        lastSeen = time
        lastSeenFrame = frame
        blindFrames = 0
    }

    /// Makes its box hold another one of the same face.
    mutating func hold(_ other: FaceRect) { (box, shown) = (box.union(other), shown.union(other)) }

    /// Takes in what this frame's search saw of a track that follows the same face.
    mutating func take(_ twin: FaceTrack) {
        hold(twin.seenBox)
        seenBox = lastSeenFrame == twin.lastSeenFrame ? seenBox.union(twin.seenBox) : twin.seenBox
        (lastSeen, lastSeenFrame) = (twin.lastSeen, twin.lastSeenFrame)
    }

    /// Says where the face was lost that it is taken for.
    mutating func comes(from lost: FaceRect) { hasJumped = lost.overlap(box) < Self.samePlace }

    mutating func look(_ wasSeen: Bool) {
        looks = looks << 1 | (wasSeen ? 1 : 0)
        lookCount = min(lookCount + 1, 3)
    }

    /// Ends a frame: what is shown comes closer to the estimate.
    mutating func settle(_ frame: Int) {
        shown = shown.approaching(box, place: 0.5, size: 0.35)
        remember(frame)
    }
}
