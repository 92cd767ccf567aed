// SPDX-License-Identifier: Apache-2.0

import FrameCore
import FrameSupport
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
        /// Whether the whole picture is another one than before.
        var isCut: Bool
        /// Whether the stage may have missed what lies between this frame and the one before.
        var isGap: Bool
        /// Whether there are more faces than can be followed, so that some are known to nobody.
        var isFull: Bool
    }

    /// One fineness of the search.
    private struct Level {
        let sizes: SearchSizes
        /// What the detector is handed: the copy for the flow, or a finer one.
        let copy: SmallPicture
        /// The sizes that are searched: of a picture that is stored upright or turned by 180°, and of one on its side.
        let searches: [PictureSize]
        let turnedSearches: [PictureSize]
    }

    /// What the optical flow works on.
    private let small: SmallPicture
    private let levels: [Level]
    private var pace: SearchPace
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
    /// The level of the newest search, how its picture lay, and when its copy was begun.
    private var searched = (level: 0, orientation: Orientation.up, since: Int64(0))
    private var isFull = false
    private var times = FrameTimes()
    private let looksAhead: Bool
    /// The least confidence of a detection that keeps a known face.
    private let leastConfidence: Double

    /// - Parameters:
    ///   - sizes: The sizes of the copies; more than one where the search may become coarser, the finest first.
    ///   - patience: The longest wait for an answer, nanoseconds.
    ///   - looksAhead: Whether the detector also gives what it is unsure of.
    init(
        _ format: VideoFormat, _ options: FaceEffectOptions, _ detector: any FaceDetecting, sizes: [SearchSizes],
        patience: Int64, looksAhead: Bool = false
    ) {
        let tracking = SmallPicture.squareSize(format, longSide: sizes[0].trackingSide)
        let small = SmallPicture(format, size: tracking)
        self.small = small
        levels = sizes.map { sizes in
            let size = SmallPicture.copySize(sizes, format, detector.input)
            return Level(
                sizes: sizes, copy: size == tracking ? small : SmallPicture(format, size: size),
                searches: sizes.searched(format, .up), turnedSearches: sizes.searched(format, .right))
        }
        pace = SearchPace(pixels: sizes.map { $0.pixels(format) }, patience: patience)
        thread = DetectorThread(
            detector, pixelCount: levels.map { $0.copy.width * $0.copy.height }.max() ?? 0, tracking: tracking)
        schedule = DetectionSchedule(every: options.every(detector))
        times = FrameTimes(frameDuration: format.frameRate.isZero ? 0 : Int64(1e9 / format.frameRate.value))
        isPrivate = options.privacy
        self.looksAhead = looksAhead
        cuts = CutWatch(knowsLight: options.privacy)
        leastConfidence = options.keepThreshold
        if looksAhead { weak.reserveCapacity(OpenCV.mostFindings) }
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
    /// The full size divided by the size of ``gray``.
    var scale: (x: Double, y: Double) { (small.scaleX, small.scaleY) }

    /// [stage thread] The fault of the last failed detection, once.
    func takeFault() -> FrameHostError? {
        defer { fault = nil }
        return fault
    }

    /// How finely is searched now.
    var sizes: SearchSizes { levels[pace.level].sizes }

    /// [stage thread] Takes the next frame: follows the known faces, and searches where that is due.
    ///
    /// - Parameters:
    ///   - orientation: Of the frame.
    ///   - time: PTS in nanoseconds.
    func take(
        _ picture: Picture, _ orientation: Orientation, time: Int64, isDiscontinuity: Bool, isStopped: () -> Bool
    ) -> Result {
        frame += 1
        weak.removeAll(keepingCapacity: true)
        isFull = false
        small.take(picture)
        let isCut = cuts.isCut(small.current.full)
        let isGap = times.isGap(time, isDiscontinuity: isDiscontinuity)
        if isCut { tracks.endAll() }
        let side = Self.gridSide(faces: tracks.tracks.count)
        tracks.follow(
            { [small, flow] box in
                flow.follow(
                    box.scaled(1 / small.scaleX, 1 / small.scaleY), from: small.previous, to: small.current, side: side)
            }, scaleX: small.scaleX, scaleY: small.scaleY)
        let look = detect(
            picture, orientation, time: time, isUrgent: isPrivate || isCut || isGap, isStopped: isStopped)
        tracks.settle(frame: frame, time: time)
        return Result(look: look, isCut: isCut, isGap: isGap, isFull: isFull)
    }

    /// [stage thread] Chooses how finely the next frame is searched; true where that has changed.
    func adapt(isLate: Bool) -> Bool { levels.count > 1 && pace.frame(isLate: isLate, now: MonotonicTime.now()) }

    /// Points in a row of each face's grid: fewer when there are many faces, so that the time for all is bounded.
    private static func gridSide(faces: Int) -> Int { faces <= 8 ? 7 : faces <= 16 ? 5 : 3 }

    private func detect(
        _ picture: Picture, _ orientation: Orientation, time: Int64, isUrgent: Bool, isStopped: () -> Bool
    ) -> Look {
        let begin = MonotonicTime.now()
        let deadline = begin + patience
        takeAnswer(thread.wait(until: 0, unless: isStopped))
        let isDue = schedule.isDue(
            frame: frame, isNeeded: tracks.hasDoubts || tracks.hasJustLostSight, isUrgent: isUrgent)
        guard isDue else { return .none }
        // A search of an earlier picture may still be under way. It is not waited for once it takes longer than the
        // patience.
        if !thread.isIdle, thread.busyFor < patience { takeAnswer(thread.wait(until: deadline, unless: isStopped)) }
        guard thread.isIdle else { return .late }
        schedule.began(frame: frame)
        searchCount += 1
        thread.gray.copy(from: small.current)
        searched = (pace.level, orientation, begin)
        let level = levels[pace.level]
        if thread.detector.input == .bgr {
            if level.copy !== small { level.copy.take(picture) }
            level.copy.writeBGR(picture, to: thread.pixels, orientation)
        } else {
            level.copy.writeGray(to: thread.pixels, orientation)
        }
        thread.submit(
            frame: frame, time: time, level.copy.uprightSize(orientation),
            searches: orientation.swapsSides ? level.turnedSearches : level.searches)
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
            pace.searched(searched.level, nanoseconds: thread.lastAnsweredAt - searched.since)
            thread.take { faces, isFull in
                if isFull { self.isFull = true }
                let copy = levels[searched.level].copy
                for index in faces.indices { faces[index] = copy.stored(faces[index], searched.orientation) }
                let known = looksAhead ? setAsideWeak(faces, isOfThisFrame: then == frame) : faces
                let hasTakenAll = tracks.take(
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
                if !hasTakenAll { self.isFull = true }
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
            if isOfThisFrame, face.confidence < tracks.rules.leastConfidence, weak.count < OpenCV.mostFindings {
                weak.append(face.box)
            }
            guard face.confidence >= leastConfidence else { continue }
            faces[count] = face
            count += 1
        }
        return UnsafeMutableBufferPointer(rebasing: faces[..<count])
    }
}
