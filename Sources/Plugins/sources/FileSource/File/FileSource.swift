// SPDX-License-Identifier: Apache-2.0

import CAVFormat
import FrameCore

/// Plays the first usable video track of a file, or the one that is named. It plays everything that libavformat and
/// libavcodec can read.
///
/// Time stamps, frame durations, orientation, colour and sample aspect ratio are the file's own. Pictures are decoded
/// into the chain's pool where the codec allows it (``DecoderLoans``), else copied there once. With `"decode": false`
/// access units go on as they are.
final class FileSource: Source {
    static let info = StageInfo(
        id: "file-source", summary: "Plays the video of a file, in real time or as fast as the chain takes it.",
        output: .video(.i420, .nv12, .yuyv, .gray8, .i010, .p010, .bgra, .rgb24),
        otherOutput: StageInfo.OtherOutput(where: "decode", is: .bool(false), .encoded(.h264, .h265, .mjpeg, .av1)),
        furtherOutputs: [StageInfo.FurtherOutput("audio", FileSound.type, standsAlone: true)], events: events,
        realTime: StageInfo.RealTime(with: "pace", .string(FilePace.realtime.rawValue)))

    var options: FileSourceOptions
    let context: StageContext
    let path: String
    private(set) var file: MediaFile?
    private(set) var track: VideoTrack?
    private var decoderDemand: DecoderDemand?
    private var ownBytes = 0
    /// The sound that a recorder may carry along; nil with `loop`.
    var audio: CarriedTracks?
    private var reader: VideoReader?
    private var converter: ScalingConverter?
    private(set) var reports: FileReports?
    /// What the file says of its pictures beforehand; nothing with `loop`.
    private(set) var promise = FilePromise()
    private(set) var timeline = FileTimeline(timeBase: .nanoseconds, origin: 0)
    private(set) var orientation = Orientation.up
    private var captions: MetadataSlot<ClosedCaptions>?
    /// Looks through the container once all pictures were given.
    var containerWalk: (any ContainerWalk)?
    /// Once all pictures were given: whether because the range ends. nil before.
    var isRangeGiven: Bool?
    var shown = 0
    var shownInPass = 0
    /// How many of the steps in the file's times were passed in this pass.
    private var stepsPassed = 0
    /// For a part: how many frames were given after its end, and the time of the first frame that may be given.
    private var behindPart = 0
    private var partBegin: MediaTime?
    // Used in place of reader, converter and timeline where access units are passed on.
    var unitReader: UnitReader?
    var unitTrack: UnitTrack?
    var unitTimeline = UnitTimeline(timeBase: .nanoseconds, origin: 0)
    /// The file's tick of the first picture that was shown; nil where the file does not say.
    private var firstTick: Int64?
    /// How much damage was found before the first picture of the range.
    private(set) var damagedBeforeRange = 0
    /// The latest end of the pictures that were given, in the file's own time.
    var reached = MediaTime.zero
    /// The latest end of the items that were given.
    var end = MediaTime.zero
    /// Chain-clock time at which PTS 0 is due, once the first picture is there.
    private(set) var zeroTime: Int64?
    /// The files, where there is a list of them.
    private var list: FileList?
    /// Whether it is one file of a list.
    var isPart = false
    /// Where it lies on the chain's timeline, where it is one file of a list.
    var place = ListPlace()
    /// Where it ended when the list was opened, in its own time; nil: nothing is left out.
    var measured: FileSpan?
    /// What its pictures become.
    private var target: VideoFormat?

    /// [control thread] Opens nothing.
    init(options: FileSourceOptions, context: StageContext) {
        self.options = options
        self.context = context
        path = context.resolve(options.path.first)
    }

    // MARK: Setup

    /// [control thread] Opens the file and looks at its tracks.
    func negotiate() throws -> MediaFormat {
        if options.path.isList { return try negotiateList() }
        if let fault = FileFault.ofPath(path, isRelative: !options.path.first.hasPrefix("/")) { throw fault }
        let file = try MediaFile(path: path)
        let track = try VideoTrack(file, number: options.track)
        if file.isDurationDeclared, let length = file.duration(track.index), options.start >= length.seconds,
            options.start > 0
        {
            throw FileFault.startsBehindEnd(path, start: options.start, length: length)
        }
        if options.track == nil, let choice = file.choiceOfFilm(track.index) { context.note(choice) }
        self.file = file
        self.track = track
        orientation = track.format.orientation
        promise = options.loop ? FilePromise() : FilePromise(file, track: track.index)
        reports = FileReports(context, path: path, track: track)
        let format: MediaFormat
        if options.decode {
            prepareDecoder(file, track)
            format = .video(track.format)
        } else {
            format = .encoded(try negotiateUnits(file, track))
        }
        if !options.loop, !isPart {
            let audio = CarriedTracks(file, range: timeRange, context: context)
            if !audio.tracks.isEmpty { context.offerAudio(audio) }
            self.audio = audio
        }
        if !isPart { context.offerTags(tags(file, track)) }
        return format
    }

    private func negotiateList() throws -> MediaFormat {
        let list = try FileList(options, context)
        self.list = list
        if let carried = list.carriedTracks() { context.offerAudio(carried) }
        if let tags = list.tags() { context.offerTags(tags) }
        guard let encoded = list.parts[0].unitTrack?.format else { return .video(list.format) }
        return .encoded(encoded)
    }

    /// [control thread] Of a file of a list: its pictures become those of the first file.
    func convert(to format: VideoFormat, as first: FileSource) {
        target = format
        if decoderDemand != first.decoderDemand || track?.format.pixelFormat != format.pixelFormat {
            decoderDemand = nil
        }
    }

    /// [stage thread] Of a file of a list: begins to play.
    ///
    /// - Parameters:
    ///   - again: Whether it was played before: nothing is reported twice.
    ///   - former: The file that played before.
    func begin(again: Bool, after former: FileSource, at place: (joint: MediaTime, begin: MediaTime?)) throws {
        (self.place, zeroTime) = (ListPlace(place, after: former.place), former.zeroTime)
        if again, let file, let track {
            reports = nil
            (isRangeGiven, containerWalk, end, reached, shown, shownInPass) = (nil, nil, .zero, .zero, 0, 0)
            try file.reopen()
            if options.decode { prepareTimeline(track) } else { _ = try negotiateUnits(file, track) }
        }
        try start()
    }

    /// [stage thread] Of a file of a list: gives back what it only needs while it plays.
    func rest() {
        // Where the run was ended before the file's end.
        if let reader { reportDamage(reader) }
        if let loans = reader?.loans { reports?.copies(loans.copied, shared: loans.shared) }
        reader = nil
        unitReader = nil
    }

    /// Where what it has given ends on the chain's timeline.
    var givenEnd: MediaTime { shown > 0 ? end + place.shift : place.joint }

    /// Whether an item was written after the list was opened, whose sound is played up to there. Reports it.
    func growsBeyond(_ pts: MediaTime) -> Bool {
        guard let measured, let byteCount = measured.byteCount, pts >= measured.end, let file,
            file.byteCount > byteCount
        else { return false }
        reports?.grows(beyond: measured.end)
        return true
    }

    /// [control thread] What the file says about itself, once it is negotiated.
    func tags(_ file: MediaFile, _ track: VideoTrack) -> MediaTags {
        var tags = file.tags(
            track: track.index, sounds: audio?.indices ?? [], range: options.loop ? nil : timeRange)
        if options.decode { tags.track.hdr = track.hdr }
        return tags
    }

    /// The part of the file that is played, once it is negotiated.
    var timeRange: FileTimeRange { options.decode ? timeline.timeRange : unitTimeline.timeRange }

    private func prepareDecoder(_ file: MediaFile, _ track: VideoTrack) {
        prepareTimeline(track)
        if !track.conversion.isConverted, !options.deinterlace {
            decoderDemand = DecoderDemand(file.parameters(track.index), format: track.format, threads: Self.threads)
        }
        ownBytes = DecoderMemory.bytes(
            file.parameters(track.index), hasLoans: decoderDemand != nil, threads: Self.threads)
    }

    private func prepareTimeline(_ track: VideoTrack) {
        timeline = FileTimeline(
            timeBase: track.format.timeBase, origin: track.origin, start: options.start, duration: options.duration)
    }

    /// How many pictures are decoded at once: as many as there are processors, up to 16. A further thread would gain
    /// nothing, and use one more picture.
    private static let threads = min(max(Int(av_cpu_count()), 1), 16)

    var demand: StageDemand {
        var demand = Self.declaredDemand
        demand.readsFiles = options.path.all.map(context.resolve)
        if let list { return list.demand(demand) }
        demand.isDivisible = options.decode && !options.loop
        demand.hasIndex = if let file, let track { file.indexedPictures(track.index) != nil } else { false }
        demand.ownBytes = ownBytes
        demand.isPaced = options.pace == .realtime
        if let unitTrack { demand.slabBytes = unitTrack.slabBytes }
        if let file, let track, options.decode {
            demand.cost = track.format.cost(
                nanosecondsPerPixel: DecoderCost.nanosecondsPerPixel(file.parameters(track.index)))
        }
        if let decoderDemand {
            demand.floor = decoderDemand.floor
            demand.padding = decoderDemand.padding
        }
        guard let file, let track, !options.loop else { return demand }
        let asked = MediaTime(seconds: options.start)
        // Access units start at the keyframe before the requested start, and end exactly at the requested end.
        let begin = options.decode ? asked : unitTimeline.timeRange.shift
        let rest = file.duration(track.index).map { max($0 - begin, .zero) }
        let limit = options.duration.map { max(MediaTime(seconds: $0) + (asked - begin), .zero) }
        demand.expectedDuration = if let rest, let limit { min(rest, limit) } else { rest ?? limit }
        if isWhole, let pictures = file.indexedPictures(track.index) {
            demand.expectedItems = file.indexed(track.index, after: -1)?.shown ?? pictures
        } else if let length = demand.expectedDuration, !track.format.frameRate.isZero {
            demand.expectedItems = Int((length.seconds * track.format.frameRate.value).rounded())
        }
        return demand
    }

    /// Whether this part reaches the end of the file, and so reports what a whole run reports at its end.
    var isLastPart: Bool { context.part != nil && context.part?.end == nil && options.duration == nil }

    var isWhole: Bool {
        options.start == 0 && options.duration == nil && !options.loop && context.part == nil
    }

    /// [control thread] Opens the decoder, and reports which parts of the file are not played.
    func start() throws {
        if let list { return try list.start() }
        guard let file, let track else {
            throw FrameHostError(.broken, what: "file-source was started before its file was opened")
        }
        // Where no stage reads captions there is no slot.
        captions = context.slot(for: ClosedCaptions.self)
        if options.decode { try startDecoder(file, track) }
        openAccount(file, track)
        if context.part == nil {
            reports?.notCarried(
                file.lostTracks(besides: track.index).filter { !isTaken($0) }, offered: audio?.indices.first)
            reports?.notCarried(sideData: file.droppedSideData(track.index), of: "video", options.track ?? 1)
            for (number, index) in (audio?.indices ?? []).enumerated() {
                reports?.notCarried(sideData: file.droppedSideData(index), of: "audio", number + 1)
            }
        }
        reports?.conversion(isDecoded: options.decode)
    }

    /// Whether a recorder carries the track along, or the chain takes it as the output `audio`.
    private func isTaken(_ track: OtherTrack) -> Bool {
        if audio?.isCarried(track) == true { return true }
        return context.takenOutputs.contains("audio") && audio?.index(ofTrack: 0) == track.index
    }

    private func startDecoder(_ file: MediaFile, _ track: VideoTrack) throws {
        let loans = decoderDemand.map { DecoderLoans($0, format: track.format, pixels: track.conversion.source) }
        let deinterlacer = options.deinterlace ? try Deinterlacer(timeBase: track.format.timeBase) : nil
        file.raw = deinterlacer == nil ? RawPictures(file, track, to: target ?? track.format) : nil
        let reader = try VideoReader(
            file, track: track.index, threads: Self.threads, loans: loans, deinterlacer: deinterlacer,
            promise: promise)
        self.reader = reader
        converter = ScalingConverter(to: target ?? track.format)
        if let part = context.part { try begin(part, file, track) }
        if let lower = timeline.lower { try reader.enter(at: lower, isFirst: false) }
    }

    /// Starts a part early, at the frames that later stages need before it.
    private func begin(_ part: TimelinePart, _ file: MediaFile, _ track: VideoTrack) throws {
        guard part.begin > .zero else { return }
        let fields = options.deinterlace ? 4 : 0
        let begin = timeline.rawTick(of: part.begin)
        let early = timeline.rawTick(of: part.begin - part.warmUp.time)
        let second = timeline.rawTick(of: part.begin - MediaTime(seconds: 1))
        let enough = try PartEntry(file, track: track.index).tick(
            of: part.warmUp.frames + fields, before: begin, from: timeline.lower ?? track.origin,
            rate: track.format.frameRate)
        // Frames are given from here on. Reading starts at least one second before the part, since the correction
        // of times that do not rise looks back at most one second.
        partBegin = timeline.timeBase.time(ofTicks: min(early, enough)) - timeline.timeRange.shift
        timeline.begin(at: min(early, enough, second))
    }

    /// [stage thread] Closes the file. The decoder returns its loans.
    func stop() {
        list?.stop()
        list = nil
        rest()
        file = nil
    }

    // MARK: One picture

    /// [stage thread] One step of the decoder: a picture, or none yet; or an access unit as it is.
    func produce(_ output: Output) throws -> SourceProgress {
        if let list { return try list.produce(output) }
        if let unitReader { return try produceUnit(unitReader, output) }
        guard let reader else { return .ended }
        if let isRangeGiven { return try endPass(reader, isRangeDone: isRangeGiven) }
        reader.loans?.use(output.lender)
        switch try reader.step() {
        case .again: return .more
        case .ended: return try endPass(reader)
        case .picture: return try show(reader, output)
        }
    }

    private func show(_ reader: VideoReader, _ output: Output) throws -> SourceProgress {
        let duration = reader.durationTicks
        switch timeline.place(reader.tick, duration: duration) {
        case .skip:
            damagedBeforeRange = reader.damaged
            return .more
        case .end: return try endPass(reader, isRangeDone: true)
        case .beyond:
            reports?.timelineIsFull()
            reportEnd(reader, isWhereFileEnds: false)
            return .ended
        case .show(let tick):
            let pts = timeline.timeBase.time(ofTicks: tick)
            let isDiscontinuity = passesStep(at: reader.tick)
            if let partBegin, pts < partBegin {
                damagedBeforeRange = reader.damaged
                return .more
            }
            // A part cannot know of the jumps before it.
            if context.part != nil, reader.tick == nil || isDiscontinuity {
                throw FileFault.timesJump(path, isWithoutTime: reader.tick == nil, at: pts)
            }
            if let end = context.part?.end, pts >= end {
                guard behindPart < context.part?.lookAhead ?? 0 else { return try endPass(reader, isRangeDone: true) }
                behindPart += 1
            }
            if growsBeyond(pts) { return try endPass(reader, isRangeDone: true) }
            guard waits(for: place.of(pts, isPart)) else { return .ended }
            guard let frame = try makeFrame(reader, output) else { return .more }
            report(reader)
            if shown == 0 { firstTick = reader.tick }
            frame.pts = place.of(pts, isPart)
            frame.duration = timeline.timeBase.time(ofTicks: duration)
            frame.orientation = orientation
            frame.isDiscontinuity = isDiscontinuity
            frame.isKeyframe = reader.picture.isKey
            if let captions, let found = reader.picture.captions { frame[captions] = found }
            shown += 1
            shownInPass += 1
            end = pts + frame.duration
            if let tick = reader.tick { reached = max(reached, timeline.timeBase.time(ofTicks: tick) + frame.duration) }
            try output.emit(frame)
            return .more
        }
    }

    /// Whether the times of the file step between the last picture and this one. Reports it.
    func passesStep(at tick: Int64?) -> Bool {
        guard let tick, let steps = file?.timeline.steps, stepsPassed < steps.count else { return false }
        let time = (options.decode ? timeline.timeBase : unitTimeline.timeBase).time(ofTicks: tick)
        let passed = steps[stepsPassed...].prefix { $0.at <= time }
        for step in passed { reports?.step(step) }
        stepsPassed += passed.count
        return !passed.isEmpty && shown > 0
    }

    /// The picture as a frame of the chain: the one it was decoded into, or else a copied or converted one.
    private func makeFrame(_ reader: VideoReader, _ output: Output) throws -> Frame? {
        guard let converter else { return nil }
        let picture = reader.picture
        let shape = PictureShape(picture, aspect: reader.sampleAspectRatio)
        if converter.copies(shape), let frame = reader.loans?.frame(of: picture) { return frame }
        guard var frame = try output.makeFrame() else { return nil }
        if reader.isRaw {
            guard reader.copyRaw(into: &frame) else { return nil }
        } else {
            try converter.convert(picture, shape, into: &frame)
        }
        return frame
    }

    /// A wait of more than this many nanoseconds is reported.
    private static let longWait: Int64 = 10_000_000_000

    /// In real time, waits until a time of the chain's timeline is due; false when the source must end.
    func waits(for pts: MediaTime) -> Bool {
        guard options.pace == .realtime else { return true }
        // Chain clock and timeline lie within MediaTime.range, so neither overflows.
        let now = MediaTime(nanoseconds: context.clock.now())
        if zeroTime == nil { zeroTime = (now - pts).nanoseconds }
        let due = zeroTime! + pts.nanoseconds
        if due - now.nanoseconds > Self.longWait {
            reports?.waiting(MediaTime(nanoseconds: due - now.nanoseconds), at: end)
        }
        return context.sleep(until: due)
    }

    /// Ends, or begins the next pass, after the file or the requested part of it was played.
    private func endPass(_ reader: VideoReader, isRangeDone: Bool = false) throws -> SourceProgress {
        // After a pass without a picture, further passes would go on forever.
        guard options.loop, shownInPass > 0 else {
            isRangeGiven = isRangeDone
            guard looksThroughContainer() else { return .more }
            reportEnd(reader, isRangeDone: isRangeDone)
            if shown == 0, context.part == nil {
                throw FileFault.nothingPlayed(path, packets: reader.packetsRead, isPart: options.isPart)
            }
            return .ended
        }
        beginPass()
        timeline.beginPass()
        try reader.enter(at: firstTick, isFirst: timeline.lower == nil)
        return .more
    }

    func beginPass() {
        shownInPass = 0
        stepsPassed = 0
    }

    // MARK: Reports

    private func report(_ reader: VideoReader) {
        guard let reports else { return }
        let picture = reader.picture
        reports.look(at: PictureShape(picture, aspect: reader.sampleAspectRatio))
        if let found = picture.orientation {
            reports.orientation(found, isFirst: shown == 0)
            orientation = found.value
        } else if let file, let track, file.parameters(track.index).codec_id == AV_CODEC_ID_MJPEG,
            orientation != track.format.orientation
        {
            // Each of its pictures speaks for itself, in Exif; one that says nothing is as the container says.
            reports.orientation((track.format.orientation, true), isFirst: shown == 0)
            orientation = track.format.orientation
        }
        if reader.hasSeenInterlacing { reports.interlacing(isUndone: options.deinterlace) }
        noteDamage(reader.damaged, at: reader.tick)
        reports.packetsBeforeKeyframe(reader.packetsBeforeKeyframe)
        reports.impossibleTimes(reader.times)
    }
}
