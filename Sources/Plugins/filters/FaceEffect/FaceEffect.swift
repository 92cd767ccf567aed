// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Shared
import Stills

/// Finds faces, follows them and changes them inside their regions.
///
/// Takes and gives I420 or NV12 in place. The detector has a thread of its own; everything else happens within the
/// call (docs/design/007-face-effect.md). With privacy and without a live source it keeps frames back, so that what
/// later frames show counts for them too (docs/design/028-archive-faces.md).
final class FaceEffect: DelayingFilter {
    static let info = StageInfo(
        id: "face-effect", summary: "Finds and tracks faces. Pixelates, blurs, covers or decorates them.",
        input: .video(.i420, .nv12),
        output: .sameAsInput, access: .modify, hold: LookAhead.mostFrames, delay: LookAhead.mostFrames,
        metadata: [Faces.self], events: events)

    var options: FaceEffectOptions
    private let context: StageContext
    private let folders: DataFolders
    /// Set in tests: takes the place of OpenCV's detectors.
    private let givenDetector: (any FaceDetecting)?
    private var format: VideoFormat?
    private var detector: (any FaceDetecting)?
    /// The one that it begins with first; more than one where the search may become coarser.
    private var sizes = [SearchSizes(side: SearchSizes.smallSide)]
    private var image: PNGFile?
    /// Bytes that the detector takes, known from `negotiate` on.
    private var searchBytes = 0
    /// Of one frame, on average.
    private var searchCost = MediaTime.zero
    /// Frames that are looked ahead; known from `negotiate` on.
    private var framesAhead = 0
    private var reach = ""

    private var finder: FaceFinder?
    private var painter: EffectPainter?
    private var lines: FaceLines?
    private var slot: MetadataSlot<Faces>?
    private var privacy: PrivacyGuard?
    private var ahead: LookAhead?
    private var review: ReviewPage?
    private var aheadFaces: [TwoWayGuard.Face] = []
    private var hasDrained = false
    /// The faces that `privacy` is told, kept to reuse their memory.
    private var knownFaces: [PrivacyGuard.Face] = []
    private var notices = FaceNotices()

    /// [control thread] Opens nothing.
    convenience init(options: FaceEffectOptions, context: StageContext) {
        self.init(options: options, context: context, detector: nil, folders: .ofProcess())
    }

    init(options: FaceEffectOptions, context: StageContext, detector: (any FaceDetecting)?, folders: DataFolders) {
        self.options = options
        self.context = context
        givenDetector = detector
        self.folders = folders
    }

    /// Only reads when nothing is drawn.
    var demand: StageDemand {
        var demand = Self.declaredDemand
        demand.access = options.draw ? .modify : .read
        demand.mustNotBePassed = options.privacy
        demand.hides = "faces"
        demand.writesPictures = options.reviewFile != nil
        (demand.hold, demand.delay) = (framesAhead, framesAhead)
        demand.ownBytes = searchBytes + aheadBytes
        demand.cost = searchCost
        // As long as a face that is not found again is remembered and covered.
        demand.warmUp = WarmUp(
            frames: 2 * framesAhead, time: MediaTime(seconds: 3 + (options.privacy ? options.holdSeconds : 0)))
        (demand.writesFiles, demand.claims) = filesAndClaims
        demand.readsFiles = context.filesRead(options.image) + modelFiles
        return demand
    }

    /// The model or cascade, also where no option names it.
    private var modelFiles: [String] {
        guard givenDetector == nil,
            let choice = try? DetectorChoice(
                options.detector, model: options.model.map(context.resolve), folders: folders)
        else { return context.filesRead(options.model) }
        return [choice.path]
    }

    /// What `facesFile` and `reviewFile` write to: files, or standard output, which takes lines of several stages.
    private var filesAndClaims: ([String], [StageDemand.Claim]) {
        let written = [("facesFile", options.facesFile, "lines"), ("reviewFile", options.reviewFile, nil)]
        var (files, claims): ([String], [StageDemand.Claim]) = ([], [])
        for case (let option, let path?, let terms) in written {
            if StandardStream.output.paths.contains(path) {
                claims.append(StandardStream.output.claim(option: option, terms: terms, remedy: "Name a file."))
            } else {
                files.append(context.resolve(path))
            }
        }
        return (files, claims)
    }

    private var aheadBytes: Int {
        guard let format else { return 0 }
        return (framesAhead > 0 ? LookAhead.bytes(frames: framesAhead, format, sizes[0]) : 0)
            + (options.reviewFile == nil ? 0 : ReviewPage.pictureBytes)
    }

    /// [control thread] Opens the detector and reads the image, so that `check` reports what is wrong with them.
    ///
    /// - Throws: ``FrameHostError`` `.unavailable`.
    func negotiate(_ format: VideoFormat) throws {
        self.format = format
        framesAhead = try framesAhead(format)
        try checkReview()
        if let givenDetector {
            detector = givenDetector
            sizes = [SearchSizes(side: options.detectionSize ?? SearchSizes.smallSide)]
        } else {
            let choice = try DetectorChoice(
                options.detector, model: options.model.map(context.resolve), folders: folders)
            try choice.checkPrivacy(options)
            sizes = try choice.sizes(options, format, isLive: context.isLiveChain)
            if framesAhead > 0, choice.kind == .yunet { sizes[0].addSmallSearch() }
            detector = try choice.open(options, format, sizes, looksAhead: framesAhead > 0)
            reach = choice.sentence(options, format, sizes[0])
            searchBytes = choice.kind == .yunet ? sizes[0].yunetBytes(format) : 0
            if options.latency == .frame, let detector {
                searchCost = sizes[0].cost(format, isYuNet: choice.kind == .yunet, every: options.every(detector))
            }
            notices.hasModel = choice.kind == .yunet
            choice.note(options, format, sizes[0], to: context)
        }
        noteLookAhead(format)
        if options.effect.covers, options.draw, !options.privacy {
            context.note(
                "without \"privacy\": true a face is visible until two searches have found it: in the first pictures of a run and of a scene, and whenever the search misses it"
            )
        }
        image = try options.image.map { try PNGFile(context.resolve($0)) }
        if let path = options.facesFile { try context.checkWritable(path, option: "facesFile") }
        if let path = options.reviewFile { try context.checkWritable(path, option: "reviewFile") }
    }

    /// [control thread] Takes all memory, starts the detector's thread, opens the file.
    func start() throws {
        guard let format, let detector else { throw FrameHostError(.broken, what: "face-effect was not negotiated") }
        painter = options.draw ? EffectPainter(format, image: image) : nil
        image = nil
        slot = context.slot(for: Faces.self)
        lines = try options.facesFile.map {
            try FaceLines(path: context.resolve($0), context.files, as: context.stageID) { context.isEnded }
        }
        review = try options.reviewFile.map {
            try ReviewPage(
                path: context.resolve($0), format, reach: reach, chain: context.chainName, context.files,
                as: context.stageID
            ) { context.isEnded }
        }
        // An instance that comes after another one does not know the faces that this one still held.
        privacy =
            options.privacy
            ? PrivacyGuard(
                holdTime: Int64(options.holdSeconds * 1e9), followsAnother: context.repeatsParameterSets)
            : nil
        knownFaces.reserveCapacity(FaceTracks.mostTracks)
        let finder = FaceFinder(
            format, options, detector, sizes: sizes, patience: patience(format), looksAhead: framesAhead > 0)
        try finder.start()
        self.finder = finder
        if framesAhead > 0 { ahead = LookAhead(count: framesAhead, options, format, finder) }
        notices.begin(
            options, frameRate: format.frameRate.isZero ? 30 : format.frameRate.value, canAdapt: sizes.count > 1)
        aheadFaces.reserveCapacity(FaceTracks.mostTracks)
        self.detector = nil
    }

    /// Longest wait for an answer, nanoseconds.
    private func patience(_ format: VideoFormat) -> Int64 {
        if options.latency == .none { return 0 }
        if let given = options.waitMs { return Int64(given) * 1_000_000 }
        guard context.isLiveChain else { return 10_000_000_000 }
        // The other half is for the rest of the thread's work.
        return Int64(0.5e9 / (format.frameRate.isZero ? 30 : format.frameRate.value))
    }

    /// [control thread, stage thread] Refuses a change that is impossible while the stage runs.
    func optionsChanged() throws {
        guard painter == nil, options.draw, finder != nil else { return }
        throw FrameHostError(
            .invalidConfiguration, place: "draw",
            what: "the chain started with \"draw\": false, so this stage may not change pictures",
            remedy: "Start the chain with \"draw\": true: 'draw' can then be switched off and on while it runs.")
    }

    /// [stage thread] May wait for the detector, see `latency`; allocates nothing (OpenCV does, on its own thread).
    func process(_ frame: inout Frame) throws -> Verdict {
        guard let finder, let format else { throw FrameHostError(.broken, what: "face-effect was not started") }
        let time = frame.pts.nanoseconds
        let map = UprightMap(format, frame.orientation)
        let (result, mode) = look(at: frame, finder)
        annotate(frame)
        try lines?.write(
            frame: frame.sequenceNumber, pts: frame.pts, isSearched: result.look == .answered, mode: mode,
            faces: finder.tracks.tracks.lazy.filter(\.isConfirmed).map { FaceLine($0, map, now: finder.frame) },
            covered: (privacy?.regions ?? []).lazy.map(map.upright))
        if let painter, options.draw { frame.withMutablePicture { draw(on: $0, map, painter, mode) } }
        if let mode, let privacy {
            goesOut(
                mode, isCovered: mode.coversAll || !privacy.regions.isEmpty, isLate: result.look == .late, time: time)
        }
        notices.tell(finder, privacy, faceEvents: options.events, time: time, to: context)
        return .forward
    }

    /// Finds the faces of a frame, and decides what privacy covers.
    private func look(
        at frame: borrowing Frame, _ finder: FaceFinder
    ) -> (result: FaceFinder.Result, mode: PrivacyGuard.Mode?) {
        let time = frame.pts.nanoseconds
        let (orientation, isDiscontinuity) = (frame.orientation, frame.isDiscontinuity)
        let result = frame.withPicture { picture in
            finder.take(picture, orientation, time: time, isDiscontinuity: isDiscontinuity) { context.isEnded }
        }
        let mode = decide(result, time: time)
        if privacy != nil, let format {
            let isLate = result.look == .late
            if result.look != .none, finder.adapt(isLate: isLate) { notices.tell(finder.sizes, format, to: context) }
            if mode == .crowded { notices.tellCrowd(time: time, to: context) }
        }
        return (result, mode)
    }

    // MARK: Looking ahead

    var held: Int { ahead?.count ?? 0 }

    /// Frames to look ahead: none without privacy or with a live source, whose pictures must not be late.
    private func framesAhead(_ format: VideoFormat) throws -> Int {
        guard options.privacy else { return 0 }
        guard !context.isLiveChain else {
            guard let asked = options.lookAheadSeconds, asked > 0 else { return 0 }
            throw FrameHostError(
                .invalidConfiguration, place: "lookAheadSeconds",
                what: "'lookAheadSeconds' must be 0 in a chain with a live source, because it delays the picture",
                remedy: "Leave 'lookAheadSeconds' out, or set it to 0.")
        }
        return try LookAhead.frames(options.lookAheadSeconds, format)
    }

    /// - Throws: ``FrameHostError`` where a page is asked for without looking ahead.
    private func checkReview() throws {
        guard options.reviewFile != nil, framesAhead == 0 else { return }
        throw FrameHostError(
            .invalidConfiguration, place: "reviewFile",
            what: context.isLiveChain
                ? "'reviewFile' needs 'lookAheadSeconds', which a chain with a live source cannot use"
                : "'reviewFile' needs 'lookAheadSeconds', which is 0",
            remedy: context.isLiveChain ? "Leave 'reviewFile' out." : "Leave 'lookAheadSeconds' out.")
    }

    /// Notes how far the stage looks ahead, for `check` and a run's first lines.
    private func noteLookAhead(_ format: VideoFormat) {
        guard framesAhead > 0 else { return }
        context.note(
            "looks \(framesAhead) \(framesAhead == 1 ? "frame" : "frames") ahead: a face is also covered before it is found and between two detections; \"lookAheadSeconds\": 0 turns that off"
        )
    }

    /// [stage thread] Takes a frame, and gives the one that has waited long enough. May wait for the detector.
    func process(_ frame: consuming Frame, _ output: Output) throws {
        guard let finder, let ahead, let format, privacy != nil else {
            throw FrameHostError(.broken, what: "face-effect was not started")
        }
        let time = frame.pts.nanoseconds
        let map = UprightMap(format, frame.orientation)
        let (result, decided) = look(at: frame, finder)
        let mode = decided ?? .failed
        annotate(frame)
        aheadFaces.removeAll(keepingCapacity: true)
        for (index, face) in knownFaces.enumerated() {
            aheadFaces.append(TwoWayGuard.Face(known: face, confidence: finder.tracks.tracks[index].confidence))
        }
        if let privacy {
            ahead.add(
                frame, TwoWayGuard.Frame(time: time, mode: mode, isCut: result.isCut), aheadFaces, privacy, finder, map,
                result.look)
        }
        if ahead.isFull { try giveOldest(output) }
        notices.tell(finder, privacy, faceEvents: options.events, time: time, to: context)
    }

    /// [stage thread] Gives the frames that still wait, covered by what is known.
    func drain(_ output: Output) throws {
        while let ahead, ahead.count > 0 { try giveOldest(output) }
        hasDrained = true
    }

    /// Covers the oldest frame by what is known now, and hands it on.
    private func giveOldest(_ output: Output) throws {
        guard let ahead, let painter, let format else { return }
        try ahead.withOldest { (taken: consuming Frame, plan: TwoWayGuard.Plan, told: LookAhead.Told) in
            var frame = taken
            let map = UprightMap(format, frame.orientation)
            frame.withMutablePicture { picture in
                if plan.mode.coversAll { return painter.coverAll(picture, options) }
                for cover in plan.covers {
                    painter.draw(EffectPainter.Target(box: cover.box, landmarks: nil), on: picture, map, options)
                }
            }
            let isCovered = plan.mode.coversAll || !plan.covers.isEmpty
            try lines?.write(
                frame: frame.sequenceNumber, pts: frame.pts, isSearched: told.isSearched, mode: plan.mode,
                faces: told.faces, covered: plan.covers.lazy.map { map.upright($0.box) })
            let (number, pts) = (frame.sequenceNumber, frame.pts)
            try frame.withPicture { try review?.add(plan, frame: number, pts: pts, map, $0) }
            try output.emit(frame)
            goesOut(plan.mode, isCovered: isCovered, isLate: told.isLate, time: pts.nanoseconds)
        }
    }

    /// Counts a frame of a stage with privacy.
    private func goesOut(_ mode: PrivacyGuard.Mode, isCovered: Bool, isLate: Bool, time: Int64) {
        privacy?.count(mode, isCovered: isCovered)
        notices.note(isLate: isLate, time: time, to: context)
    }

    private func decide(_ result: FaceFinder.Result, time: Int64) -> PrivacyGuard.Mode? {
        guard privacy != nil, let finder else { return nil }
        let look: PrivacyGuard.Look =
            switch result.look {
            case .answered: result.isFull ? .full : .answered
            case .failed: .failed
            case .none, .late: .late
            }
        let rate = format.map { $0.frameRate.isZero ? 30 : $0.frameRate.value } ?? 30
        knownFaces.removeAll(keepingCapacity: true)
        for track in finder.tracks.tracks {
            // What this frame's own search saw is covered in full, also where the estimate lags behind.
            let isSeen = track.lastSeenFrame == finder.frame
            knownFaces.append(
                PrivacyGuard.Face(
                    serial: track.serial, box: isSeen ? track.box.union(track.seenBox) : track.box, isSeen: isSeen,
                    hasJumped: isSeen && track.hasJumped,
                    velocityX: track.velocityX * rate, velocityY: track.velocityY * rate))
        }
        let pause: PrivacyGuard.Break = result.isCut ? .cut : result.isGap ? .gap : .none
        return privacy?.decide(look, after: pause, faces: knownFaces, time: time)
    }

    private func draw(
        on picture: Picture, _ map: UprightMap, _ painter: EffectPainter, _ mode: PrivacyGuard.Mode?
    ) {
        if let mode, let privacy {
            if mode.coversAll { return painter.coverAll(picture, options) }
            for region in privacy.regions {
                painter.draw(EffectPainter.Target(box: region, landmarks: nil), on: picture, map, options)
            }
            return
        }
        guard let finder else { return }
        for track in finder.tracks.tracks where track.isConfirmed {
            painter.draw(EffectPainter.Target(box: track.shown, landmarks: track.landmarks), on: picture, map, options)
        }
    }

    private func annotate(_ frame: borrowing Frame) {
        guard let slot, let format, let finder else { return }
        var faces = Faces(pictureWidth: format.width, pictureHeight: format.height)
        for track in finder.tracks.tracks where track.isConfirmed {
            faces.append(Faces.Face(track, now: finder.frame))
        }
        frame[slot] = faces
    }

    /// [stage thread]
    ///
    /// - Throws: ``FrameHostError`` when the lines could not be written, or the detector failed so often that the run
    ///   was not what was asked for.
    func stop() throws {
        finder?.stop()
        var fault: FrameHostError?
        if let finder {
            notices.finish(finder, privacy, to: context)
            context.impairment = nil
            if let ahead { notices.finish(ahead.covers, to: context) }
            fault = notices.fault(finder, isPrivate: privacy != nil)
        }
        finder = nil
        painter = nil
        ahead?.stop()
        // Nothing was covered where the start failed.
        let covers = ahead?.covers.coverCounts ?? TwoWayGuard.How.allCases.map { _ in 0 }
        ahead = nil
        defer { (lines, review) = (nil, nil) }
        // Each is closed, even where the other cannot be.
        let ofLines = Result { try lines?.close() }
        let ofReview = Result { try review?.close(covers: covers, isWhole: hasDrained && fault == nil) }
        if let fault { throw fault }
        try ofLines.get()
        try ofReview.get()
    }
}

extension Faces.Face {
    init(_ track: FaceTrack, now: Int) {
        self.init()
        let box = track.shown
        id = track.id
        x = Float(box.x)
        y = Float(box.y)
        width = Float(box.width)
        height = Float(box.height)
        confidence = Float(track.confidence)
        age = UInt32(clamping: track.age)
        isDetected = track.lastSeenFrame == now
        guard let points = track.landmarks else { return }
        hasLandmarks = true
        func set(_ index: Int, _ point: FacePoint) {
            landmarks[2 * index] = Float(point.x)
            landmarks[2 * index + 1] = Float(point.y)
        }
        set(0, points.rightEye)
        set(1, points.leftEye)
        set(2, points.nose)
        set(3, points.rightMouth)
        set(4, points.leftMouth)
    }
}
