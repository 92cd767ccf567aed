// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Shared

/// From frames to faces: the small copy, the flow, the detector's thread, the tracks. No pixel of the frame is changed
/// here.
final class FaceFinder {
    /// What became of the detection of the current frame.
    enum Look: Equatable {
        /// None was due.
        case none
        case answered
        /// Not there yet; it is taken when it comes.
        case late
        case failed
    }

    /// What is known of one frame.
    struct Result {
        var look: Look
        var isCut: Bool
    }

    /// What the optical flow works on.
    private let small: SmallPicture
    /// What is searched: the same, or a finer copy.
    private let searched: SmallPicture
    private let thread: DetectorThread
    private let flow = MedianFlow()
    private var cuts: CutWatch
    private var schedule: DetectionSchedule
    private let isPrivate: Bool
    /// Longest wait for an answer, nanoseconds.
    private let patience: Int64
    private(set) var tracks: FaceTracks
    /// The number of the current frame, from 0.
    private(set) var frame = -1
    private(set) var searchCount = 0
    /// What the detector last threw, until it is taken.
    private(set) var fault: FrameHostError?
    /// What a search of the current frame was too unsure of to begin a face with; kept only when looking ahead.
    private(set) var weak: [FaceRect] = []
    private let looksAhead: Bool
    /// The least confidence of a detection that keeps a known face.
    private let leastConfidence: Double

    /// - Parameters:
    ///   - detector: Takes pictures of the size that ``SmallPicture`` makes of `format` with `sizes.copySide`.
    ///   - sizes: The sizes of the copies.
    ///   - patience: The longest wait for an answer, nanoseconds.
    ///   - looksAhead: Whether the detector also gives what it is unsure of.
    init(
        _ format: VideoFormat, _ options: FaceEffectOptions, _ detector: any FaceDetecting, sizes: SearchSizes,
        patience: Int64, looksAhead: Bool = false
    ) {
        small = SmallPicture(format, longSide: sizes.trackingSide)
        let isShared = detector.input == .gray || sizes.copySide == sizes.trackingSide
        searched = isShared ? small : SmallPicture(format, longSide: sizes.copySide)
        thread = DetectorThread(
            detector, width: searched.width, height: searched.height, tracking: PictureSize(small.width, small.height))
        schedule = DetectionSchedule(every: options.every(detector))
        isPrivate = options.privacy
        self.looksAhead = looksAhead
        cuts = CutWatch(allowsForLight: looksAhead)
        leastConfidence = options.keepThreshold
        if looksAhead { weak.reserveCapacity(OpenCV.mostFaces) }
        self.patience = patience
        var rules = FaceTracks.Rules()
        rules.confirmsAtOnce = options.privacy
        // Every frame is searched: a box that was seen once and never again was not a face.
        if options.privacy { (rules.leastUnseen, rules.unseenPerLook) = (0, 70_000_000) }
        if detector.isDependable {
            rules.longestUnseen = 600_000_000
            rules.leastConfidence = options.threshold
        }
        tracks = FaceTracks(rules)
    }

    /// [control thread]
    func start() throws { try thread.start() }

    /// [stage thread]
    func stop() { thread.stop() }

    /// For how long the detector has been busy, nanoseconds; 0 when it is not.
    var busyFor: Int64 { thread.busyFor }

    /// What the optical flow works on: the small copy of the current frame.
    var gray: GrayPyramid { small.current }
    /// The upright full size divided by the size of ``gray``.
    var scale: (x: Double, y: Double) { (small.scaleX, small.scaleY) }

    /// [stage thread] The fault of the last failed detection, once.
    func takeFault() -> FrameHostError? {
        defer { fault = nil }
        return fault
    }

    /// [stage thread] Takes the next frame: follows the known faces, and searches where that is due.
    ///
    /// - Parameter time: PTS in nanoseconds.
    func take(_ picture: Picture, time: Int64, isDiscontinuity: Bool, isStopped: () -> Bool) -> Result {
        frame += 1
        weak.removeAll(keepingCapacity: true)
        small.take(picture)
        let isCut = cuts.isCut(small.current.full) || isDiscontinuity
        if isCut { tracks.endAll() }
        let side = Self.gridSide(faces: tracks.tracks.count)
        tracks.follow(
            { [small, flow] box in
                flow.follow(
                    box.scaled(1 / small.scaleX, 1 / small.scaleY), from: small.previous, to: small.current, side: side)
            }, scaleX: small.scaleX, scaleY: small.scaleY)
        let look = detect(picture, time: time, isCut: isCut, isStopped: isStopped)
        tracks.settle(frame: frame, time: time)
        return Result(look: look, isCut: isCut)
    }

    /// Points in a row of each face's grid: fewer when there are many faces, so that the time for all is bounded.
    private static func gridSide(faces: Int) -> Int { faces <= 8 ? 7 : faces <= 16 ? 5 : 3 }

    private func detect(_ picture: Picture, time: Int64, isCut: Bool, isStopped: () -> Bool) -> Look {
        let deadline = DetectorThread.now() + patience
        takeAnswer(thread.wait(until: 0, unless: isStopped))
        let isDue = schedule.isDue(
            frame: frame, isNeeded: tracks.hasDoubts || tracks.hasJustLostSight, isUrgent: isPrivate || isCut)
        guard isDue else { return .none }
        // A search of an earlier picture may still be under way. It is not waited for once it takes longer than the
        // patience.
        if !thread.isIdle, thread.busyFor < patience { takeAnswer(thread.wait(until: deadline, unless: isStopped)) }
        guard thread.isIdle else { return .late }
        schedule.began(frame: frame)
        searchCount += 1
        thread.gray.copy(from: small.current)
        if thread.detector.input == .bgr {
            if searched !== small { searched.take(picture) }
            searched.writeBGR(picture, to: thread.pixels)
        } else {
            thread.pixels.update(from: small.current.full.base, count: small.width * small.height)
        }
        thread.submit(frame: frame, time: time)
        return takeAnswer(thread.wait(until: deadline, unless: isStopped))
    }

    /// Takes what the detector's thread has, whichever frame it is for.
    @discardableResult
    private func takeAnswer(_ state: DetectorThread.State) -> Look {
        switch state {
        case .idle: return .none
        case .busy: return .late
        case .failed:
            fault = thread.takeFault()
            return .failed
        case .answered:
            let then = thread.frame
            let (scaleX, scaleY) = (small.scaleX, small.scaleY)
            thread.take { faces in
                for index in faces.indices {
                    faces[index] = Self.enlarged(faces[index], searched.scaleX, searched.scaleY)
                }
                let known = looksAhead ? setAsideWeak(faces, isOfThisFrame: then == frame) : faces
                tracks.take(
                    known, frame: then, now: frame, time: thread.time,
                    carry: { [small, thread, flow] box in
                        let there = box.scaled(1 / scaleX, 1 / scaleY)
                        guard let motion = flow.follow(there, from: thread.gray, to: small.current, side: 7) else {
                            return box
                        }
                        return FaceRect(
                            centerX: box.centerX + motion.dx * scaleX, centerY: box.centerY + motion.dy * scaleY,
                            width: box.width * motion.growth, height: box.height * motion.growth)
                    })
            }
            return .answered
        }
    }

    /// What is sure enough for the tracks, in the same order; the unsure ones become ``weak``.
    private func setAsideWeak(
        _ faces: UnsafeMutableBufferPointer<Detection>, isOfThisFrame: Bool
    ) -> UnsafeMutableBufferPointer<Detection> {
        var count = 0
        for index in faces.indices {
            let face = faces[index]
            // Within the room that was reserved at the start.
            if isOfThisFrame, face.confidence < tracks.rules.leastConfidence, weak.count < OpenCV.mostFaces {
                weak.append(face.box)
            }
            guard face.confidence >= leastConfidence else { continue }
            faces[count] = face
            count += 1
        }
        return UnsafeMutableBufferPointer(rebasing: faces[..<count])
    }

    /// Scales a detection from the small picture to full size.
    private static func enlarged(_ face: Detection, _ scaleX: Double, _ scaleY: Double) -> Detection {
        Detection(
            box: face.box.scaled(scaleX, scaleY), confidence: face.confidence,
            landmarks: face.landmarks?.mapped { FacePoint(x: $0.x * scaleX, y: $0.y * scaleY) })
    }
}
