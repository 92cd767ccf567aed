import FrameCore

/// Plays the first good video track of a file: anything libavformat and libavcodec read.
///
/// Time stamps, frame durations, orientation, colour and sample aspect ratio are the file's own. Each picture is copied once, from the
/// decoder's buffer into the chain's pool.
final class FileSource: Source {
    static let info = StageInfo(
        id: "file-source", summary: "Plays the video of a file, fast or in real time.",
        output: .video(.i420, .nv12, .yuyv, .gray8, .i010, .p010, .bgra, .rgb24))

    var options: FileSourceOptions
    private let context: StageContext
    private let path: String
    private var file: DecoderHandle?
    private var timeline = FileTimeline(timeBase: .nanoseconds, origin: 0)
    private var format: VideoFormat?
    private var shownInPass = 0
    /// Chain-clock time at which PTS 0 is due, once the first picture is there.
    private var zeroTime: Int64?
    private var hasReportedInterlacing = false
    private var hasReportedDamage = false

    /// [control thread] Opens nothing.
    init(options: FileSourceOptions, context: StageContext) {
        self.options = options
        self.context = context
        path = context.resolve(options.path)
    }

    /// [control thread] Opens the file and looks at its tracks.
    func negotiate() throws -> MediaFormat {
        if let fault = FileFault.ofPath(path, isRelative: !options.path.hasPrefix("/")) { throw fault }
        let file = try DecoderHandle(path: path)
        self.file = file
        format = file.format
        timeline = FileTimeline(
            timeBase: file.format.timeBase, origin: file.origin, start: options.start, duration: options.duration)
        return .video(file.format)
    }

    var demand: StageDemand {
        var demand = Self.declaredDemand
        guard let file, !options.loop else { return demand }
        let rest = file.duration.map { max($0 - MediaTime(seconds: options.start), .zero) }
        let limit = options.duration.map { MediaTime(seconds: $0) }
        demand.expectedDuration = if let rest, let limit { min(rest, limit) } else { rest ?? limit }
        if options.start == 0, options.duration == nil, let pictures = file.indexedPictures {
            demand.expectedItems = pictures
        } else if let length = demand.expectedDuration, !file.format.frameRate.isZero {
            demand.expectedItems = Int((length.seconds * file.format.frameRate.value).rounded())
        }
        return demand
    }

    /// [control thread] Opens the decoder and says what of the file is not played.
    func start() throws {
        guard let file else { throw FrameHostError(.broken, what: "file-source was started before its file was opened") }
        try file.start()
        if let lower = timeline.lower { try file.seek(to: lower) }
        for track in file.otherTracks {
            context.post(
                "track-not-carried", text: "\(track.kind) track \(track.number) (\(track.codec)) is not carried",
                details: ["kind": .string(track.kind), "track": .number(track.number), "codec": .string(track.codec)])
        }
        if file.conversion.isConverted {
            context.post(
                "pixels-converted",
                text: "the pictures are \(file.conversion.name) and are converted to \(file.conversion.target.rawValue)",
                details: ["from": .string(file.conversion.name), "to": .string(file.conversion.target.rawValue)])
        }
        if file.hasOddRotation {
            context.post(
                "rotation-not-carried", level: .warning,
                text: "the file asks to be shown turned by something else than quarters; it is shown \(file.format.orientation)")
        }
    }

    /// [stage thread] One step of the decoder: a picture, or none yet.
    func produce(_ output: Output) throws -> SourceProgress {
        guard let file else { return .ended }
        switch file.step() {
        case .again: return .more
        case .ended: return try endPass(file)
        case .picture: return try show(file, output)
        }
    }

    /// [stage thread] Closes the file.
    func stop() { file = nil }

    // MARK: One picture

    private func show(_ file: DecoderHandle, _ output: Output) throws -> SourceProgress {
        reportDamage(file, atEnd: false)
        if let deviation = file.deviation {
            throw FileFault.changedFormat(path, from: "\(file.conversion.name) \(file.format.width)x\(file.format.height)", to: deviation)
        }
        let duration = file.durationTicks
        switch timeline.place(file.tick, duration: duration) {
        case .skip: return .more
        case .end: return try endPass(file)
        case .show(let tick, let isDiscontinuity):
            let pts = timeline.timeBase.time(ofTicks: tick)
            guard waits(for: pts) else { return .ended }
            guard var frame = try output.makeFrame() else { return .more }
            try file.copyPicture(to: &frame)
            frame.pts = pts
            frame.duration = timeline.timeBase.time(ofTicks: duration)
            frame.orientation = file.format.orientation
            frame.isDiscontinuity = isDiscontinuity
            reportInterlacing(file)
            shownInPass += 1
            try output.emit(frame)
            return .more
        }
    }

    /// In real time, waits until `pts` is due; false when the source is to end.
    private func waits(for pts: MediaTime) -> Bool {
        guard options.pace == .realtime else { return true }
        if zeroTime == nil { zeroTime = context.clock.now() - pts.nanoseconds }
        return context.sleep(until: zeroTime! + pts.nanoseconds)
    }

    /// The file, or the part of it that is asked for, is through: the end, or the next pass.
    private func endPass(_ file: DecoderHandle) throws -> SourceProgress {
        // A pass without a picture would be followed by another one, without end.
        guard options.loop, shownInPass > 0 else {
            reportEnd(file)
            return .ended
        }
        shownInPass = 0
        timeline.beginPass()
        try file.seek(to: timeline.lower ?? file.origin)
        return .more
    }

    // MARK: Reports

    private func reportInterlacing(_ file: DecoderHandle) {
        guard file.isInterlaced, !hasReportedInterlacing else { return }
        hasReportedInterlacing = true
        context.post("interlaced", level: .warning, text: "the pictures are interlaced and are passed on as they are")
    }

    private func reportDamage(_ file: DecoderHandle, atEnd: Bool) {
        guard file.damaged > 0, atEnd || !hasReportedDamage else { return }
        hasReportedDamage = true
        context.post(
            "file-damaged", level: .warning,
            text: atEnd
                ? "\(file.damaged) packets or pictures of '\(path)' were damaged; the rest was played"
                : "'\(path)' is damaged; what can be decoded is played",
            details: ["damaged": .number(file.damaged)])
    }

    private func reportEnd(_ file: DecoderHandle) {
        reportDamage(file, atEnd: true)
        let isWhole = options.start == 0 && options.duration == nil && !options.loop
        let missing = isWhole ? max((file.indexedPictures ?? 0) - file.packetsRead, 0) : 0
        guard missing > 0 || !file.readFault.isEmpty else { return }
        let cause = file.readFault.isEmpty ? "" : ": \(file.readFault)"
        context.post(
            "file-incomplete", level: .warning,
            text: missing > 0
                ? "'\(path)' ends early\(cause); \(missing) of \(file.indexedPictures ?? 0) pictures in its index are missing"
                : "'\(path)' could not be read to its end\(cause)",
            details: ["missing": .number(missing)])
    }
}
