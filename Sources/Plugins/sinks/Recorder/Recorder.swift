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
    private let old: OldRecordings
    private var inputs: RecorderInputs?
    /// The last half second of a sound that leads: a file begins with what its decoder needs first.
    private var leadIn: PreEventRing?
    private var hidden: HiddenPast
    private var tags = ChosenTags()
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
    private var reports: RecorderReports
    /// Whether a command started the recording. Otherwise it began with the run.
    private var isCommanded: Bool
    private var hasBegun = false
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
        reports = RecorderReports(context)
        hidden = HiddenPast(context)
        old = OldRecordings(files, options, owner, context)
        state = RecordingState(startsAtOnce: options.record == .atStart)
        isCommanded = options.record == .onCommand
    }

    var demand: StageDemand {
        var demand = Self.declaredDemand
        demand.writesFiles = files.named
        if files.single == nil { demand.claims = [files.pattern.claim] }
        guard let inputs else { return demand }
        demand.ownBytes = SoundInputs.memory(inputs.sounds, seconds: keptSeconds)
        if options.preEventSeconds > 0 { demand.ownBytes += PreEventRing.bytes(inputs.format, options) }
        if let motion = inputs.motion {
            demand.ownBytes += MotionInput.memory(motion, inputs.pictures, preEventSeconds: keptSeconds)
        }
        return demand
    }

    /// [control thread] Checks the place of the files and creates nothing.
    func negotiate(_ inputs: [MediaFormat]) throws {
        let found = try RecorderInputs(inputs, options, container)
        if let fault = files.fault { throw fault }
        try found.checkPictures(options, container)
        if options.audio == .copy { try found.checkCopied(context.audio?.tracks ?? [], container) }
        self.inputs = found
        if options.audio == nil, let note = found.note(ofSound: context.audio?.tracks ?? []) { context.note(note) }
        tags = ChosenTags()
        tags.choose(found, options, container, context)
    }

    /// [control thread] Takes the ring's memory, opens the sound, removes what a killed run left, and looks at the
    /// recordings that are there.
    func start() throws {
        PatternFolder.removeLeftOvers(of: files.pattern, single: files.single, context.files)
        files.lastMark = old.look()
        hidden = HiddenPast(context)
        if let inputs {
            if options.preEventSeconds > 0 { ring = PreEventRing.ofPast(inputs.format, options) }
            if inputs.pictures == nil, let sound = inputs.format.audio { leadIn = PreEventRing.leadIn(sound) }
            if !inputs.sounds.isEmpty { soundInputs = SoundInputs(inputs.sounds, seconds: keptSeconds) }
            motion = inputs.motion.map { MotionInput($0, inputs.pictures, preEventSeconds: keptSeconds) }
        }
        if options.vtt {
            // Where no stage finds faces there is no slot.
            faces = context.slot(for: Faces.self)
            captions = CaptionFeed(
                context.followEvents(), stageID: context.stageID, isLive: context.isLiveChain,
                preEventSeconds: keptSeconds)
        }
        if options.audio == .copy { sound = try SoundFeed.beside(context) }
    }

    /// For how long things are kept for a recording that begins in the past; 0 where none does.
    private var keptSeconds: Double { options.preEventSeconds > 0 ? PreEventRing.seconds(options) : 0 }

    // MARK: Access units

    /// [stage thread] Writes one access unit, or keeps it for later.
    func consume(_ input: consuming Sample, from index: Int) throws -> SinkVerdict {
        switch consume input {
        case .accessUnit(let unit):
            if index == inputs?.lead { return try take(unit) }
            return try take(sound: unit, at: inputs.flatMap { $0.soundPlaces[index] } ?? 0)
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
            reports.soundIsLate(late, recording.path)
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
        if motion?.hasBeenTooSmall == true { reports.motionIsIncomplete(recording?.path) }
        if soundInputs?.hasBeenTooSmall == true { reports.soundIsIncomplete(recording?.path) }
        hidden.forget(ring, isWaiting: wait != nil, context)
        let before = ring?.added
        if let ring, about.capturedAt >= hidden.keptSince { keep(about, unit, ring) }
        if let leadIn { unit.withBytes { leadIn.add(about, $0) } }
        if wait != nil, let lost = countLost(isKept: ring?.added != before) { verdict = lost }
        if old.isDue { removeOldFiles() }
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

    private func keep(_ about: RecordedUnit, _ unit: borrowing AccessUnit, _ ring: PreEventRing) {
        unit.withBytes { ring.add(about, $0) }
        if let lack = ring.lack { reports.pastIsTooSmall(RecordingFault.ofPast(lack, ring, options)) }
    }

    // MARK: Begin and end

    /// Begins a recording with the units in the ring.
    private func begin() throws {
        guard let inputs else {
            throw FrameHostError(.broken, what: "the recorder was handed an access unit before its format")
        }
        tags.choose(inputs, options, container, context)
        let setup = RecordingSetup(
            inputs, options, container, tags: tags.tags, hasMotion: motion != nil, isLive: context.isLiveChain, room)
        if isCommanded {
            if let fault = files.fault { throw fault }
            if old.isOn, lackOfRoom != nil { removeOldFiles() }
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
        guard !hasBegun, let inputs, options.record == .atStart else { return }
        hasBegun = true
        let name = files.nextName(at: context.clock.unixTime(at: context.clock.now()))
        let lack = inputs.pictures == nil ? "No sound" : "No keyframe"
        context.log("\(lack) reached the recorder, so '\(name)' was not written.", level: .warning)
    }

    private func end(isDraining: Bool) throws {
        let phase = state.end()
        do {
            // A recording was asked for and no unit came after that: only the units in the ring are recorded.
            if phase == .starting, ring?.isEmpty == false { try begin() }
            if recording != nil {
                if phase != .stopping { reports.recordingWillStop(recording?.path) }
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
            reports.recordingWaits()
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
        reports.recordingLoses(RecordingFault.losing(ring, options))
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
        reports.recordingFailed(
            goesOn ? RecordingFault.waiting(fault, keeps: ring != nil) : "\(fault)", level: level, path, saved,
            triesAgain: goesOn)
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
        switch try state.stop(reorders: (inputs?.format.reorderDepth ?? 0) > 0) {
        case .nothing: try endWait()
        case .wait: reports.recordingWillStop(recording?.path)
        case .finish:
            reports.recordingWillStop(recording?.path)
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

    private func fileChanged(_ file: OutputFile?) {
        current = file
        lacksSound = file != nil && soundInputs != nil
        removeOldFiles()
    }

    private func removeOldFiles() {
        old.remove(writing: (current?.size ?? 0) + (recording?.sidecarBytes ?? 0), except: current?.held.identity)
    }
}
