// SPDX-License-Identifier: Apache-2.0

import CodedVideo
import FrameCore
import Recordings
import Reports

/// Writes access units and motion to MP4, MOV or MKV files.
///
/// The pictures lead: files begin, end and are cut by them. In a recording of sound alone the first sound leads.
///
/// A file is made when its first keyframe arrives, and it plays whatever ends the run. Its time stamps are those that
/// were given, rounded to the container's tick.
final class Recorder: MultiSink {
    static let info = StageInfo(
        id: "recorder", summary: "Writes encoded video, sound and motion to MP4, MOV or MKV files.",
        input: .encoded(.h264, .h265, .mjpeg, .av1, .aac, .opus, .mp3, .muLaw, .aLaw, .g726),
        furtherInputs: .several([.encoded(.aac, .opus, .mp3, .muLaw, .aLaw, .g726), .motion]), service: .unbounded,
        commands: [
            CommandInfo(
                "start",
                "Starts a recording. It starts with the pre-event memory if there is one, otherwise at the next keyframe, which the encoder is asked for."
            ),
            CommandInfo("stop", "Ends the recording and completes its file."),
        ], events: events)

    private static let longestReorder = MediaTime(nanoseconds: 1_000_000_000)

    var options: RecorderOptions
    private let context: StageContext
    private let container: Container
    private let files: RecordingFiles
    private let retention: RetentionPolicy
    private let own: OwnRecordings
    private var format: EncodedFormat?
    /// Nil for sound alone.
    private var pictures: VideoFormat?
    /// The input that leads; the others are sounds and motion.
    private var leadInput = 0
    /// The last half second of a sound that leads: a file begins with what its decoder needs first.
    private var leadIn: PreEventRing?
    /// Whether a stage before this one hides something, and since when units are kept for later, chain clock.
    private var wasGuarded = false
    private var keptSince = Int64.min
    /// What the inputs said about themselves when ``tags`` were chosen.
    private var inputTags: [PassedTags] = []
    private var tags = RecordedTags()
    private var soundFormats: [AudioTrackFormat] = []
    /// For each input that is a sound, its place among the sounds.
    private var soundPlaces: [Int?] = []
    private var motionFormat: MotionFormat?
    private var motion: MotionInput?
    private var captions: CaptionFeed?
    private var faces: MetadataSlot<Faces>?
    private var sound: SoundFeed?
    private var soundInputs: SoundInputs?
    /// Whether a file has started that still lacks the sound at its start.
    private var lacksSound = false
    private var ring: PreEventRing?
    private var state: RecordingState
    private var recording: Recording?
    /// The file being written.
    private var current: OutputFile?
    private let room = RoomReport()
    private var reported = Reported()
    /// Whether a command started the recording. Otherwise it began with the run.
    private var isCommanded: Bool
    private var hasBegun = false
    private var lastRetention: Int64
    /// A recording by command that could not be written so far.
    private var wait: RecordingWait?
    /// Where the recording begins in the ring.
    private var firstUnit = 0
    /// Pictures of recordings by command that are in no file, and the last reason.
    private var lost = (pictures: 0, fault: nil as FrameHostError?)

    /// [control thread] Opens nothing.
    init(options: RecorderOptions, context: StageContext) throws {
        self.options = options
        self.context = context
        container = Container(path: options.path) ?? .mp4
        // Two chains may each have a 'recorder' that writes into one folder.
        let owner = "\(context.chainName)/\(context.stageID)"
        files = try RecordingFiles(
            path: options.path, folder: context.folder, overwrite: options.overwrite,
            makesMoreFiles: options.makesMoreFiles, sidecars: options.sidecars, recorder: owner,
            isRing: options.keepSeconds != nil || options.keepMegabytes != nil, files: context.files)
        own = OwnRecordings(
            files.pattern, holder: OutputFile.holder, companions: Sidecar.allCases, recorder: owner,
            run: context.files.id)
        retention = RetentionPolicy(seconds: options.keepSeconds, megabytes: options.keepMegabytes)
        state = RecordingState(startsAtOnce: options.record == .atStart)
        isCommanded = options.record == .onCommand
        lastRetention = context.clock.now()
        guard retention.isOn else { return }
        files.completed = { [own, clock = context.clock] in own.complete($0, at: clock.moment) }
    }

    var demand: StageDemand {
        var demand = Self.declaredDemand
        demand.writesFiles = files.named
        if files.single == nil { demand.claims = [files.pattern.claim] }
        demand.ownBytes = SoundInputs.memory(soundFormats, seconds: options.preEventSeconds > 0 ? ringSeconds : 0)
        if options.preEventSeconds > 0, let format { demand.ownBytes += ringBytes(format) }
        if let motionFormat {
            demand.ownBytes += MotionInput.memory(motionFormat, pictures, preEventSeconds: motionSeconds)
        }
        return demand
    }

    /// [control thread] Checks the place of the files and creates nothing.
    func negotiate(_ inputs: [MediaFormat]) throws {
        let places = inputs.indices.filter { inputs[$0].encoded?.video != nil }
        let firstSound = inputs.firstIndex { $0.encoded?.audio != nil }
        guard let place = places.first ?? firstSound, places.count <= 1 else {
            throw FrameHostError(
                .invalidConfiguration, place: "from",
                what:
                    "exactly one input must have pictures, but \(places.isEmpty ? "none has" : "\(places.count) have")",
                remedy:
                    "In 'from', name one stage that gives H.264, H.265, MJPEG or AV1. The others must give sound or motion."
            )
        }
        let pictures = inputs[place].encoded?.video
        guard let format = inputs[place].encoded, pictures == nil || UnitCoding(format.codec)?.framing == format.framing
        else {
            throw FrameHostError(
                .broken,
                what:
                    "the recorder needs H.264 or H.265 with start codes, MJPEG or AV1, but was offered \(inputs[place])"
            )
        }
        leadInput = place
        let soundInputs = inputs.indices.filter { inputs[$0].encoded?.audio != nil && $0 != place }
        soundFormats = soundInputs.compactMap { inputs[$0].encoded?.audio }
        soundPlaces = inputs.indices.map { soundInputs.firstIndex(of: $0) }
        try negotiateMotion(inputs.compactMap(\.motion), besidePictures: pictures != nil)
        for track in inputs.compactMap(\.encoded?.audio) {
            guard let obstacle = TrackDescriptions.obstacle(to: track, in: container) else { continue }
            throw FrameHostError(
                .invalidConfiguration, place: "from", what: obstacle,
                remedy: remedy(
                    for: track, beside: pictures, pictures == nil ? nil : format.codec, isCopied: false))
        }
        if let fault = files.fault { throw fault }
        if let pictures { try check(pictures, format.codec) }
        if options.audio == .copy { try checkSound(pictures, format.codec) }
        self.format = format
        self.pictures = pictures
        noteSound()
        chooseTags()
    }

    /// Says that the sound that comes with the pictures is not recorded, where nobody wished so.
    private func noteSound() {
        guard options.audio == nil, soundFormats.isEmpty, let tracks = context.audio?.tracks, !tracks.isEmpty else {
            return
        }
        let codecs = tracks.map(\.codec.description).joined(separator: ", ")
        context.note(
            "the sound that comes with the pictures (\(codecs)) is not recorded. To record it, set \"audio\": \"copy\"; \"none\" only removes this note"
        )
    }

    /// Where a sound can be recorded instead, and what else can be done.
    ///
    /// - Parameters:
    ///   - pictures: The pictures beside it; nil where their container is not asked about.
    ///   - isCopied: Whether it comes with the pictures; else on an input of its own.
    private func remedy(
        for track: AudioTrackFormat, beside pictures: VideoFormat?, _ codec: Codec?, isCopied: Bool
    ) -> String {
        let fit = [Container.mp4, .mov, .mkv].filter { container in
            TrackDescriptions.obstacle(to: track, in: container) == nil && (container != .mov || codec != .av1)
                && (container.carriesOrientation || pictures?.orientation ?? .up == .up)
        }
        let names = fit.map { $0 == .mkv ? ".mkv" : ".\($0.rawValue)" }
        guard let last = names.last else {
            return isCopied
                ? "Set \"audio\": \"none\" to record without sound." : "Remove the stage with this sound from 'from'."
        }
        let places = names.count == 1 ? last : "\(names.dropLast().joined(separator: ", ")) or \(last)"
        let none = isCopied ? ", or set \"audio\": \"none\"" : ""
        return "Record to \(places), or decode the sound and put 'audio-encoder' before the recorder\(none)."
    }

    private func check(_ pictures: VideoFormat, _ codec: Codec) throws {
        guard !Container.isForSound(path: options.path) else {
            throw FrameHostError(
                .invalidConfiguration, place: "path",
                what: "a file of this name has sound alone, but 'from' names pictures",
                remedy: container == .mkv ? "Record to .mkv." : "Record to .mp4 or .mov.")
        }
        // libavformat's movenc.c, mov_init: AV1 is only for MP4.
        guard container != .mov || codec != .av1 else {
            throw FrameHostError(
                .invalidConfiguration, place: "path", what: "a MOV file cannot store AV1",
                remedy: "Record to .mp4 or .mkv.")
        }
        guard container != .mkv || pictures.frameRate.value <= 1000 else {
            throw FrameHostError(
                .invalidConfiguration, place: "path",
                what:
                    "Matroska counts time in milliseconds, but the pictures come \(pictures.frameRate) times a second: the recording would last longer than they do",
                remedy: "Record to .mp4 or .mov, or put a 'rate' of at most 1000 before the encoder.")
        }
        guard container.carriesOrientation || pictures.orientation == .up else {
            throw FrameHostError(
                .invalidConfiguration, place: "path",
                what: "a Matroska file cannot store the orientation '\(pictures.orientation)'",
                remedy: "Record to .mp4 or .mov, or put a 'crop-orient' before the encoder to turn the pictures.")
        }
    }

    /// Decides what recordings say about themselves.
    ///
    /// - Parameter isAgain: Whether a stage before this one has been replaced, so that the run has begun.
    private func chooseTags(isAgain: Bool = false) {
        guard let format else { return }
        inputTags = context.inputTags
        let choice = TagChoice(
            inputTags,
            TagChoice.Wish(
                handling: options.tags, lead: leadInput,
                sounds: soundPlaces.indices.filter { soundPlaces[$0] != nil }, copiesSound: options.audio == .copy,
                hasChapters: !options.makesMoreFiles && !context.isLiveChain, container: container,
                track: TrackDescriptions(lead: format, pictures: pictures, orientation: .up, audio: [])))
        tags = choice.tags
        for note in choice.notes {
            if isAgain {
                context.log("\(note.text).", level: note.isWarning ? .warning : .info)
            } else {
                context.note(note.text, isWarning: note.isWarning)
            }
        }
    }

    private func negotiateMotion(_ formats: [MotionFormat], besidePictures: Bool) throws {
        let fault: (place: String, what: String, remedy: String)? =
            if !formats.isEmpty, !besidePictures {
                (
                    "from", "motion is recorded beside pictures, but no input has any",
                    "Remove the motion from 'from', or name a stage that gives H.264, H.265, MJPEG or AV1 too."
                )
            } else if formats.count > 1 {
                ("from", "only one input can have motion, but \(formats.count) have", "Keep one of them in 'from'.")
            } else if options.gcsv, formats.isEmpty {
                (
                    "gcsv", "there is no motion for a Gyroflow file",
                    "Name an input with motion: \"from\": [\"pictures\", \"motion\"]. Or leave 'gcsv' out."
                )
            } else if options.gcsv, let format = formats.first, !format.contents.contains(.rotationRate) {
                (
                    "gcsv", "a Gyroflow file needs the rotation rate, but the input gives \(format)",
                    container == .mkv
                        ? "Leave 'gcsv' out, and either remove the motion from 'from' or record to .mp4 or .mov."
                        : "Leave 'gcsv' out."
                )
            } else if container == .mkv, !options.gcsv, let format = formats.first {
                (
                    "from", "a Matroska file cannot store motion",
                    format.contents.contains(.rotationRate)
                        ? "Record to .mp4 or .mov, or set \"gcsv\": true to write the motion beside the file."
                        : "Record to .mp4 or .mov, or remove the motion from 'from'."
                )
            } else {
                nil
            }
        if let fault {
            throw FrameHostError(
                .invalidConfiguration, place: fault.place, what: fault.what, remedy: fault.remedy)
        }
        motionFormat = formats.first
    }

    private func checkSound(_ pictures: VideoFormat?, _ codec: Codec) throws {
        for track in context.audio?.tracks ?? [] {
            guard let obstacle = TrackDescriptions.obstacle(to: track, in: container) else { continue }
            throw FrameHostError(
                .invalidConfiguration, place: "audio", what: obstacle,
                remedy: remedy(
                    for: track, beside: pictures, codec, isCopied: true))
        }
    }

    /// [control thread] Takes the ring's memory, opens the sound, removes what a killed run left, and looks at the
    /// recordings that are there.
    func start() throws {
        PatternFolder.removeLeftOvers(of: files.pattern, single: files.single, context.files)
        if retention.isOn {
            _ = own.look(now: context.clock.moment)
            files.lastMark = own.highestNumber
        } else {
            files.lastMark = own.highestNumberOfNewest()
        }
        if options.preEventSeconds > 0, let format { ring = makeRing(format) }
        wasGuarded = context.isGuarded
        if pictures == nil, let sound = format?.audio { leadIn = Self.makeLeadIn(sound) }
        if !soundFormats.isEmpty {
            soundInputs = SoundInputs(soundFormats, seconds: options.preEventSeconds > 0 ? ringSeconds : 0)
        }
        if let motionFormat { motion = MotionInput(motionFormat, pictures, preEventSeconds: motionSeconds) }
        if options.vtt {
            // Where no stage finds faces there is no slot.
            faces = context.slot(for: Faces.self)
            captions = CaptionFeed(
                context.followEvents(), stageID: context.stageID, isLive: context.isLiveChain,
                preEventSeconds: options.preEventSeconds > 0 ? ringSeconds : 0)
        }
        guard options.audio == .copy else { return }
        guard let origin = context.audio, !origin.tracks.isEmpty else {
            return context.post(
                "sound-missing", level: .warning,
                text:
                    "There is no sound to copy: no stage before the recorder offers any. To record other sound, name its 'audio-encoder' in 'from' too."
            )
        }
        sound = try SoundFeed(origin) { [context] in context.post("sound-ended", level: .warning, text: $0) }
    }

    /// How many seconds the ring has room for. At times it keeps one group of pictures more than was asked for.
    private var ringSeconds: Double { options.preEventSeconds + 4 }

    /// How many seconds of motion are kept in addition to the time by which it can be ahead of the pictures.
    private var motionSeconds: Double { options.preEventSeconds > 0 ? ringSeconds : 0 }

    /// Bytes for the ring's payloads, with room for bitrates above the encoder's target.
    private func ringBytes(_ format: EncodedFormat) -> Int {
        let kbps = format.bitrateKbps ?? format.audio.flatMap { $0.bitRate > 0 ? $0.bitRate / 1000 + 1 : nil }
        let fromRate = kbps.map { Double($0) * 1000 / 8 * ringSeconds * 1.5 }
        return max(10_000, Int(options.preEventMegabytes.map { $0 * 1_000_000 } ?? fromRate ?? 64_000_000))
    }

    private func makeRing(_ format: EncodedFormat) -> PreEventRing {
        // With more than a thousand pictures a second the ring holds fewer seconds, and the recorder reports that.
        let rate =
            pictures.map(\.frameRate.value).map { $0 == 0 ? 120 : min(max(30, $0), 1000) }
            ?? format.audio.map(Self.packetsPerSecond) ?? 120
        return PreEventRing(
            seconds: options.preEventSeconds, byteCapacity: ringBytes(format),
            unitCapacity: 1024 + Int(rate * ringSeconds * 2))
    }

    private static func packetsPerSecond(_ sound: AudioTrackFormat) -> Double {
        Double(sound.sampleRate) / Double(max(sound.samplesPerPacket, 64))
    }

    /// Room for half a second of sound that leads.
    private static func makeLeadIn(_ sound: AudioTrackFormat) -> PreEventRing {
        PreEventRing(
            seconds: 0.5, byteCapacity: max(min(sound.bitRate, 10_000_000), 640_000) / 8,
            unitCapacity: 64 + Int(packetsPerSecond(sound)))
    }

    // MARK: Access units

    /// [stage thread] Writes one access unit, or keeps it for later.
    func consume(_ input: consuming Sample, from index: Int) throws -> SinkVerdict {
        switch consume input {
        case .accessUnit(let unit):
            if index == leadInput { return try take(unit) }
            return try take(sound: unit, at: soundPlaces[index] ?? 0)
        case .motionBlock(let block):
            motion?.add(block)
            return recording == nil ? waitingVerdict : .delivered
        default: throw FrameHostError(.broken, what: "the recorder was handed something that it does not write")
        }
    }

    private func take(sound unit: consuming AccessUnit, at track: Int) throws -> SinkVerdict {
        let about = RecordedUnit(unit)
        guard let soundInputs else { return .idle }
        unit.withBytes { soundInputs.keep(about, $0, track: track) }
        guard let recording else { return waitingVerdict }
        // Less than that can lie between the decoding of a keyframe and its time.
        if let late = recording.lateness(ofSound: about, at: track), late > Self.longestReorder {
            reportLate(late)
            return .dropped(.byStage)
        }
        do {
            try soundInputs.take(track, before: about.dts - SoundInputs.mostAhead) {
                try recording.append(sound: $1, $2, at: $0)
            }
        } catch { try goOn(after: error) }
        return .delivered
    }

    /// What becomes of sound and motion that come before the first picture: they are kept for a recording that was asked for.
    private var waitingVerdict: SinkVerdict { state.phase == .starting ? .delivered : .idle }

    /// Gives the recording the sound that is decoded before a time.
    private func giveSound(before time: MediaTime, _ recording: Recording) throws {
        try soundInputs?.take(before: time) { try recording.append(sound: $1, $2, at: $0) }
    }

    /// Writes a picture, after the sound before it. A file that starts with this picture gets the last sound of the
    /// previous file again, which a decoder needs and nobody hears.
    private func write(_ unit: RecordedUnit, _ bytes: UnsafeRawBufferPointer, _ recording: Recording) throws {
        try giveSound(before: unit.dts, recording)
        try recording.append(unit, bytes)
        guard lacksSound else { return }
        lacksSound = false
        soundInputs?.rewind()
        try giveSound(before: unit.dts, recording)
    }

    private func take(_ unit: consuming AccessUnit) throws -> SinkVerdict {
        var about = RecordedUnit(unit)
        if let captions {
            if let faces = faces.flatMap({ unit[$0] }) { about.faces = FaceIDs(faces) }
            captions.hear(with: about)
        }
        var verdict: SinkVerdict
        do { verdict = try record(about, unit) } catch {
            try goOn(after: error)
            verdict = .delivered
        }
        if let motion { reportLoss(motion) }
        if let soundInputs { reportLoss(soundInputs) }
        forgetWhatIsHiddenNow()
        let before = ring?.added
        if let ring, about.capturedAt >= keptSince { keep(about, unit, ring) }
        if let leadIn { unit.withBytes { leadIn.add(about, $0) } }
        if wait != nil, let lost = countLost(isKept: ring?.added != before) { verdict = lost }
        if retention.isOn { removeNowAndThen() }
        return verdict
    }

    private func record(_ about: RecordedUnit, _ unit: borrowing AccessUnit) throws -> SinkVerdict {
        if let wait, context.clock.now() < wait.nextTry { return .delivered }
        var step = state.take(pts: about.pts, isKeyframe: about.isKeyframe, past: ring?.end)
        if step == .finish {
            do { try finishRecording() } catch { try giveUp(error) }
            // A `start` may have come meanwhile.
            step = state.take(pts: about.pts, isKeyframe: about.isKeyframe, past: ring?.end)
        }
        switch step {
        case .idle, .finish: return .idle
        // Units before the first keyframe cannot be decoded.
        case .awaitKeyframe:
            if wait != nil { context.keyframeRequest?.raise() }
            return isCommanded ? .idle : .dropped(.untilKeyframe)
        case .begin:
            try begin()
            try unit.withBytes { try write(about, $0, recording!) }
        case .record: try unit.withBytes { try write(about, $0, recording!) }
        }
        return .delivered
    }

    /// `'out.mp4'`
    private var recordingName: String { recording.map { "'\($0.path)'" } ?? "the recording" }

    private func reportLoss(_ motion: MotionInput) {
        guard motion.hasBeenTooSmall else { return }
        context.post(
            "motion-incomplete", once: &reported, level: .warning,
            text:
                "Samples of motion are missing in \(recordingName): the memory for motion was full before the matching pictures arrived. Find the stage that delays the pictures."
        )
    }

    /// Reports sound whose file is already complete, or whose time is before the recording.
    private func reportLate(_ late: MediaTime) {
        let path = recording?.path ?? ""
        context.post(
            "sound-late", once: &reported, level: .warning,
            text:
                "Sound is left out of '\(path)': its times lie \(RecordingFault.shortSeconds(late.seconds)) s before the start of the file. Make sure that the times of sound and pictures come from the same clock, or find the stage that delays the sound.",
            details: ["path": .string(path), "lateSeconds": .number(late.seconds)])
    }

    private func reportLoss(_ sounds: SoundInputs) {
        guard sounds.hasBeenTooSmall else { return }
        context.post(
            "sound-incomplete", once: &reported, level: .warning,
            text:
                "Sound is missing in \(recordingName): the memory for sound was full before the matching pictures arrived. Find the stage that delays the pictures."
        )
    }

    /// Where a stage that hides something has been put before this one, the past shows it: it is in no recording that begins
    /// from now on. A recording that waits for room is from before.
    private func forgetWhatIsHiddenNow() {
        let isGuarded = context.isGuarded
        guard isGuarded != wasGuarded else { return }
        wasGuarded = isGuarded
        guard isGuarded, wait == nil, let ring else { return }
        keptSince = context.clock.now()
        guard !ring.isEmpty else { return }
        ring.removeAll()
        context.log(
            "\(context.stageID): The seconds before a recording ('preEventSeconds') begin anew: a stage before this one hides something from now on, which they show."
        )
    }

    private func keep(_ about: RecordedUnit, _ unit: borrowing AccessUnit, _ ring: PreEventRing) {
        unit.withBytes { ring.add(about, $0) }
        guard let lack = ring.lack else { return }
        context.post(
            "pre-event-too-small", once: &reported, level: .warning, text: RecordingFault.ofPast(lack, ring, options))
    }

    // MARK: Begin and end

    /// Begins a recording with the units in the ring.
    private func begin() throws {
        guard let format else {
            throw FrameHostError(.broken, what: "the recorder was handed an access unit before its format")
        }
        if context.inputTags != inputTags { chooseTags(isAgain: true) }
        let setup = RecordingSetup(
            format: format, pictures: pictures, sounds: soundFormats, tags: tags,
            hasMotionTrack: motion != nil && container != .mkv, container: container,
            policy: SegmentPolicy(seconds: options.segmentSeconds, megabytes: options.segmentMegabytes),
            finalize: options.finalize,
            isLive: context.isLiveChain, room: room)
        if isCommanded {
            if let fault = files.fault { throw fault }
            if retention.isOn, lackOfRoom != nil { removeOldFiles() }
            if let fault = lackOfRoom { throw fault }
        }
        let recording = Recording(
            setup, files: files, sound: sound, motion: motion, captions: captions, leadIn: leadIn, context: context,
            keepsTimes: !isCommanded && !context.isLiveChain
        ) { [unowned self] in fileChanged($0) }
        self.recording = recording
        hasBegun = true
        soundInputs?.rewind()
        if let ring {
            firstUnit = wait.map { ring.groupStart(of: $0.firstUnit) } ?? ring.removed
            try ring.forEach(from: firstUnit) { unit, bytes in try write(unit, bytes, recording) }
        }
        if wait != nil {
            wait = nil
            ring?.isHeld = false
        }
    }

    private var lackOfRoom: FrameHostError? {
        var bytes = 0
        ring?.forEach(from: wait?.firstUnit ?? 0) { bytes += $1.count }
        return files.lackOfRoom(for: bytes, at: context.clock.unixTime(at: context.clock.now()))
    }

    /// Finishes the recording with the sound up to the end of its pictures, or of the input.
    private func finishRecording(isInputEnd: Bool = false) throws {
        guard let recording else { return }
        try giveSound(before: isInputEnd ? .max : recording.end, recording)
        try recording.finish(isInputEnd: isInputEnd)
        self.recording = nil
    }

    /// [stage thread] Finishes the file.
    func drain() throws { try end(isDraining: true) }

    /// [stage thread] Finishes the file with what it has, even when the run was stopped or has failed elsewhere.
    func stop() throws {
        try end(isDraining: false)
        ring = nil
        guard !hasBegun, format != nil, options.record == .atStart else { return }
        hasBegun = true
        let name = files.nextName(at: context.clock.unixTime(at: context.clock.now()))
        let lack = pictures == nil ? "No sound" : "No keyframe"
        context.log("\(lack) reached the recorder, so '\(name)' was not written.", level: .warning)
    }

    private func end(isDraining: Bool) throws {
        let phase = state.end()
        do {
            // A recording was asked for and no unit came after that: only the units in the ring are recorded.
            if phase == .starting, ring?.isEmpty == false { try begin() }
            if recording != nil {
                if phase != .stopping { postWillStop() }
                // At the end of the input, sound may be longer than its pictures.
                try finishRecording(isInputEnd: isDraining && phase != .stopping)
            }
        } catch {
            (wait, lost.pictures) = (nil, 0)
            throw failed(error)
        }
        // A wait without anything in memory.
        wait = nil
        guard lost.pictures > 0 else { return }
        defer { lost.pictures = 0 }
        throw RecordingFault.lost(lost.pictures, because: lost.fault)
    }

    // MARK: What cannot be written

    /// A recording by command cannot be written. It begins again as soon as it can, with what the ring holds.
    private func goOn(after error: any Error) throws {
        let fault = FrameHostError.wrap(error)
        guard isCommanded, fault.code != .broken else { throw failed(error) }
        guard state.writingFailed() else { return try giveUp(error) }
        let (saved, written) = (recording?.saved.frames ?? 0, recording?.frames ?? 0)
        let hasBegun = recording != nil
        // The unit in hand is not in the ring yet.
        let first = ring.map { hasBegun ? firstUnit + saved : $0.removed } ?? 0
        if ring == nil { lost.pictures += written - saved }
        lost.fault = fault
        let now = context.clock.now()
        if wait == nil {
            wait = RecordingWait(fault, firstUnit: first, now: now)
            reported.forget("recording-loses")
            ring?.isHeld = true
            report(fault, level: .warning, goesOn: true)
        } else {
            wait?.failed(fault, hasWritten: hasBegun, firstUnit: first, now: now)
            drop()
        }
        if let sound, let origin = context.audio {
            // It has given the packets of the failed file away.
            self.sound = try SoundFeed(origin, report: sound.report)
        }
    }

    /// A recording by command cannot be completed.
    private func giveUp(_ error: any Error) throws {
        let fault = FrameHostError.wrap(error)
        guard isCommanded, fault.code != .broken else { throw failed(error) }
        lost.pictures += (recording?.frames ?? 0) - (recording?.saved.frames ?? 0)
        lost.fault = fault
        report(fault, level: .error)
    }

    /// Counts what is lost while a recording waits.
    ///
    /// - Parameter isKept: Whether the ring has the unit in hand.
    /// - Returns: What became of that unit where it is lost; nil where it is not.
    private func countLost(isKept: Bool) -> SinkVerdict? {
        let new = (isKept ? 0 : 1) + (ring.map { wait!.drop(before: $0.removed) } ?? 0)
        guard new > 0 else { return nil }
        lost.pictures += new
        context.post(
            "recording-loses", once: &reported, level: .warning, text: RecordingFault.losing(ring, options))
        return isKept ? nil : .dropped(.byStage)
    }

    /// Gives up the recording without a word: its file keeps what plays.
    private func drop() {
        recording?.giveUp()
        recording = nil
        current = nil
    }

    /// Ends everything, since the stage fails. People read its fault: the event is for programs.
    private func failed(_ error: any Error) -> any Error {
        state.end()
        report(FrameHostError.wrap(error), level: .debug)
        return error
    }

    /// - Parameter goesOn: Whether the recording begins again as soon as it can.
    private func report(_ fault: FrameHostError, level: Event.Level, goesOn: Bool = false) {
        recording?.giveUp()
        let saved = recording?.saved ?? Recording.Total()
        let path = recording?.path ?? ""
        recording = nil
        current = nil
        context.post(
            "recording-did-fail", level: level,
            text: goesOn ? RecordingFault.waiting(fault, keeps: ring != nil) : "\(fault)",
            details: [
                "path": .string(path), "savedFrames": .number(saved.frames), "savedBytes": .number(saved.bytes),
                "savedFiles": .number(saved.files), "triesAgain": .bool(goesOn),
            ])
    }

    // MARK: Commands

    /// [stage thread] `start` and `stop`.
    func command(_ name: String, arguments: JSONNode) throws {
        do {
            if name == "start" { try beginOnCommand() } else { try endOnCommand() }
        } catch let refusal as RecordingRefusal { throw refusal.fault(of: context.stageID) }
    }

    private func beginOnCommand() throws {
        if wait != nil, state.phase == .starting {
            wait?.tryNow()
        } else {
            try state.start()
        }
        isCommanded = true
        // Without a ring, the recording can start with the next picture only if that is a keyframe.
        if ring?.isEmpty != false { context.keyframeRequest?.raise() }
    }

    private func endOnCommand() throws {
        switch try state.stop(reorders: (format?.reorderDepth ?? 0) > 0) {
        case .nothing: try endWait()
        case .wait: postWillStop()
        case .finish:
            postWillStop()
            do { try finishRecording() } catch {
                isCommanded = true
                try giveUp(error)
                throw error
            }
        }
    }

    /// A recording was to be stopped before it could be written: what the ring holds of it may have room by now.
    private func endWait() throws {
        guard wait != nil else { return }
        defer {
            wait = nil
            ring?.isHeld = false
        }
        guard let ring, !ring.isEmpty else { return }
        do {
            try begin()
            try finishRecording()
        } catch {
            lost.pictures += ring.added - max(wait?.firstUnit ?? 0, firstUnit + (recording?.saved.frames ?? 0))
            lost.fault = FrameHostError.wrap(error)
            report(FrameHostError.wrap(error), level: .error)
            throw error
        }
    }

    private func postWillStop() {
        let path = recording?.path ?? ""
        context.post(
            "recording-will-stop", text: "The recording to '\(path)' is being finished.",
            details: ["path": .string(path)])
    }

    // MARK: Old files

    private func fileChanged(_ file: OutputFile?) {
        current = file
        lacksSound = file != nil && soundInputs != nil
        if retention.isOn { removeOldFiles() }
    }

    private func removeNowAndThen() {
        guard context.clock.now() - lastRetention >= 10_000_000_000 else { return }
        removeOldFiles()
    }

    private func removeOldFiles() {
        lastRetention = context.clock.now()
        let removal = own.removeExcess(
            retention, writing: (current?.size ?? 0) + (recording?.sidecarBytes ?? 0), except: current?.held.identity,
            now: context.clock.moment, context.files)
        if let strangers = removal.strangers { report(strangers) }
        for file in removal.removed {
            context.post(
                "recording-removed",
                text:
                    "'\(file.path)' was removed: it was the oldest file when 'keepSeconds' or 'keepMegabytes' was reached.",
                details: ["path": .string(file.path), "bytes": .number(file.bytes)])
        }
        report(removal.kept)
    }

    /// Reports files that look like older recordings and are not known to be any.
    private func report(_ strangers: OwnRecordings.Strangers) {
        let folder = files.pattern.folder
        context.post(
            "recording-not-removed", once: &reported, as: "strangers", level: .warning,
            text:
                "\(strangers.count == 1 ? "1 file has a name" : "\(strangers.count) files have names") of this recorder's pattern, but no mark that this recorder made \(strangers.count == 1 ? "it" : "them") there on this machine, such as '\(strangers.example)'. 'keepSeconds' and 'keepMegabytes' neither count nor remove such files (\(strangers.bytes) bytes). If an earlier version of framehost recorded them, or if they were moved or copied there, run `framehost recordings adopt \(folder)`.",
            details: [
                "path": .string(strangers.example), "files": .number(strangers.count),
                "bytes": .number(strangers.bytes),
            ])
    }

    private func report(_ kept: KeptRecordings) {
        guard let text = kept.text, let first = kept.first else { return }
        context.post(
            "recording-not-removed", once: &reported, level: .warning, text: text,
            details: ["path": .string(first.path), "files": .number(kept.count), "bytes": .number(kept.bytes)])
    }
}
