// SPDX-License-Identifier: Apache-2.0

import CodedVideo
import FrameCore
import Glibc
import Recordings
import Reports

/// One recording, from its first picture to its last, in one file or several.
///
/// Used on the stage thread. An error leaves the earlier files as they are, and cuts the current one to the part that
/// plays.
final class Recording {
    /// The totals so far.
    struct Total {
        var frames = 0
        var bytes: Int64 = 0
        var files = 0
    }

    /// One file of the recording.
    private struct Part {
        var muxer: MuxerHandle
        var log: GyroflowLog?
        var captionLog: CaptionLog?
        var path: String
        /// The time of its first picture.
        var begin: MediaTime
    }

    private var setup: RecordingSetup
    private let files: RecordingFiles
    private let sound: SoundFeed?
    private let motion: MotionInput?
    private let captions: CaptionFeed?
    /// What came before, where a sound leads; the recorder adds to it.
    private let leadIn: PreEventRing?
    private let context: StageContext
    private let events: RecordingEvents
    /// Whether the first file keeps the chain's times. Otherwise it starts at 0.
    private let keepsTimes: Bool
    /// Called when a file of the recording has begun or ended, with the file being written.
    private let filesChanged: (OutputFile?) -> Void

    private var policy: SegmentPolicy
    private var muxer: MuxerHandle?
    /// The sound tracks of the current file that are read beside the pictures, by the feed's indices. After them come
    /// those of ``RecordingSetup/sounds``.
    private var soundTracks: [Int] = []
    /// For each sound of the setup, whether the current file's container cannot go on with it.
    private var endedSounds: [Bool] = []
    /// The Gyroflow file beside the current file.
    private var log: GyroflowLog?
    /// The WebVTT file beside the current file.
    private var captionLog: CaptionLog?
    /// The file before the current one. It has all its pictures, but not the motion of the last ones, which has not
    /// come yet: with B-frames a keyframe is decoded before the pictures in front of it are shown. It is completed
    /// once a picture's DTS reaches the start of the current file.
    private var tail: Part?
    /// Whether the current file's container cannot go on with the motion.
    private var motionHasEnded = false
    private var orientation = Orientation.up
    private var reported = Reported()
    private var origin = MediaTime.zero
    private var fileBegin = MediaTime.zero
    private var begin: MediaTime?
    private(set) var end = MediaTime.zero
    private var lastSync: Int64 = 0
    private var finished = Total()
    private(set) var path = ""

    init(
        _ setup: RecordingSetup, files: RecordingFiles, sound: SoundFeed?, motion: MotionInput? = nil,
        captions: CaptionFeed? = nil, leadIn: PreEventRing? = nil, context: StageContext, keepsTimes: Bool,
        filesChanged: @escaping (OutputFile?) -> Void
    ) {
        self.setup = setup
        self.files = files
        self.sound = sound
        self.motion = motion
        self.captions = captions
        self.leadIn = leadIn
        self.context = context
        events = RecordingEvents(context: context, container: setup.container)
        self.keepsTimes = keepsTimes
        self.filesChanged = filesChanged
        policy = setup.policy
    }

    private var open: [MuxerHandle] { [tail?.muxer, muxer].compactMap(\.self) }

    /// Pictures that were written, whether they will play or not.
    var frames: Int { open.reduce(finished.frames) { $0 + $1.frames } }

    /// Files, frames and bytes that will play, whatever happens from here on.
    var saved: Total {
        Total(
            frames: open.reduce(finished.frames) { $0 + $1.savedFrames },
            bytes: open.reduce(finished.bytes) { $0 + $1.savedBytes },
            files: open.reduce(finished.files) { $0 + ($1.savedFrames > 0 ? 1 : 0) })
    }

    /// Bytes of the files beside the one being written.
    var sidecarBytes: Int64 { (log?.size ?? 0) + (captionLog?.size ?? 0) }

    // MARK: Writing

    /// Writes one access unit; the first is a keyframe.
    func append(_ unit: RecordedUnit, _ bytes: UnsafeRawBufferPointer) throws {
        if muxer == nil {
            // A format that was planned before its stream was there: each recording says what it has.
            if setup.format.parameterSets.isEmpty, let coding = UnitCoding(setup.format.codec) {
                setup.format.parameterSets = coding.parameterSets(in: bytes)
            }
            if keepsTimes, setup.isBeforeStart(unit) { return }
            if !(keepsTimes && finished.files == 0) { sound?.skip(before: unit.pts) }
            try beginFile(unit, at: begin(with: unit))
        } else if unit.isKeyframe, policy.isOn, policy.cuts(beforeKeyframeAt: unit.pts) {
            try sound?.take(shownBefore: unit.pts, write)
            try finishTail()
            try takeMotion(before: unit.pts)
            finishCaptions(at: unit.pts)
            if motion != nil, unit.dts < unit.pts { try leaveTail() } else { try finishFile(endsRecording: false) }
            try beginFile(unit, at: origin(at: unit))
        }
        try checkGap(before: unit)
        if unit.orientation != orientation, reported.isFirst("orientation-not-carried") {
            events.orientationIsNotCarried(unit, orientation, in: path)
        }
        try sound?.take(decodedBefore: unit.dts, write)
        if tail != nil, unit.dts >= fileBegin { try finishTail() }
        try takeMotion(before: max(end, unit.dts))
        let before = muxer!.savedBytes
        try muxer!.write(unit, bytes, delay: setup.leadDelay)
        policy.add(bytes: bytes.count)
        end = max(end, unit.pts + unit.duration)
        takeCaptions(with: unit)
        if setup.isLive, muxer!.savedBytes > before { try syncNowAndThen() }
    }

    /// The time that is 0 in the first file. Units that are not shown lie before it; Matroska has no times there.
    private func begin(with unit: RecordedUnit) -> MediaTime {
        guard keepsTimes else { return origin(at: unit) }
        return setup.container == .mkv ? min(unit.pts, .zero) : .zero
    }

    /// Checks the gap before a unit. A gap that the container cannot express ends the recording, with a complete
    /// file. Where there may be more files, the next one starts here.
    private func checkGap(before unit: RecordedUnit) throws {
        guard let muxer, !muxer.reaches(unit) else { return }
        let gap = unit.pts - end
        try sound?.take(shownBefore: end, write)
        try finishTail()
        try takeMotion(before: end)
        finishCaptions(at: end)
        if policy.isOn, unit.isKeyframe {
            try finishFile(endsRecording: false)
            sound?.skip(before: unit.pts)
            return try beginFile(unit, at: origin(at: unit))
        }
        try finishFile(endsRecording: true)
        throw RecordingFault.gap(
            path, setup.container, of: setup.pictures == nil ? "packet" : "picture", gap: gap, longest: muxer.longestGap
        )
    }

    private func write(_ track: Int, _ packet: AudioPacket) throws {
        guard let index = soundTracks.firstIndex(of: track), let muxer else { return }
        guard muxer.reaches(packet, track: index) else { return endSound(at: index) }
        let format = sound!.format(of: track)
        let base = format.timeBase
        guard setup.isKept(base.time(ofTicks: packet.pts), base.time(ofTicks: packet.duration), format, from: origin)
        else { return }
        try muxer.write(packet, track: index, delay: setup.delay(of: format))
        policy.add(bytes: packet.bytes.count)
    }

    /// By how much a unit of the sound at `index` ends before the current file begins; nil where it does not.
    ///
    /// The samples that a decoder needs before the sound beside the first picture count as beside it, though nobody
    /// hears them.
    func lateness(ofSound unit: RecordedUnit, at index: Int) -> MediaTime? {
        guard muxer != nil else { return nil }
        // A first file that keeps the chain's times has the sound from before its first picture, too.
        let begin = keepsTimes && finished.files == 0 ? min(origin, fileBegin) : fileBegin
        let late = begin - (unit.pts + unit.duration + setup.padding(setup.sounds[index]))
        return late > RecordingSetup.rounding ? late : nil
    }

    /// Writes one access unit of the sound at `index` of ``RecordingSetup/sounds``. Before the first picture there is
    /// no file that could hold it.
    func append(sound unit: RecordedUnit, _ bytes: UnsafeRawBufferPointer, at index: Int) throws {
        guard let muxer, !endedSounds[index] else { return }
        let track = soundTracks.count + index
        guard lateness(ofSound: unit, at: index) == nil else { return }
        let format = setup.sounds[index]
        guard setup.isKept(unit.pts, unit.duration, format, from: origin) else { return }
        guard muxer.reaches(unit, track: track) else {
            endedSounds[index] = true
            return events.soundEnded(track, in: path)
        }
        try muxer.write(unit, bytes, track: track, delay: setup.delay(of: format))
        policy.add(bytes: bytes.count)
    }

    /// Writes the motion up to a time, for pictures that are in the file or will be.
    private func takeMotion(before time: MediaTime) throws {
        // While there is a tail, the ring keeps the motion.
        guard let motion, let muxer, tail == nil else { return }
        defer { if let log, log.failure == 0 { flush(log) } }
        try motion.take(before: time) { sample in
            log?.add(sample)
            guard setup.hasMotionTrack, !motionHasEnded else { return }
            guard muxer.reaches(motionAt: sample.time) else { return endMotion() }
            try muxer.write(sample)
            policy.add(bytes: sample.contents.rawValue.nonzeroBitCount * CAMM.packetBytes)
        }
    }

    /// Writes what has happened up to a picture.
    private func takeCaptions(with unit: RecordedUnit) {
        guard let captions, let captionLog else { return }
        captions.see(unit)
        captions.take(before: unit.dts) { captionLog.add($0) }
        if captionLog.failure == 0 { flush(captionLog) }
    }

    private func finishCaptions(at time: MediaTime) {
        guard let captions else { return }
        captions.finish(at: time) { captionLog?.add($0) }
    }

    /// Sets the current file aside until the motion of its last pictures has come.
    private func leaveTail() throws {
        guard let muxer else { return }
        // All its pictures are in the file from here on, whatever happens to the next one.
        try muxer.flush()
        tail = Part(muxer: muxer, log: log, captionLog: captionLog, path: path, begin: fileBegin)
        (self.muxer, log, captionLog) = (nil, nil, nil)
    }

    /// Completes the file before the current one with the motion that has come.
    private func finishTail() throws {
        guard let part = tail, let motion else { return }
        tail = nil
        try motion.take(before: fileBegin) { sample in
            part.log?.add(sample)
            guard setup.hasMotionTrack, part.muxer.reaches(motionAt: sample.time) else { return }
            try part.muxer.write(sample)
        }
        try complete(part, endsRecording: false)
        motion.begin(at: fileBegin)
    }

    /// After an error, completes the file before the current one, which the error does not concern, and the sidecars
    /// of the current one, whose pictures up to here are saved.
    func giveUp() {
        try? finishTail()
        finishCaptions(at: end)
        for case let log? in [log, captionLog] as [SidecarLog?] { log.finish(syncs: setup.isLive) }
        (log, captionLog) = (nil, nil)
    }

    private func flush(_ log: SidecarLog) {
        log.flush()
        events.report(log)
    }

    private func endMotion() {
        motionHasEnded = true
        events.motionEnded(in: path)
    }

    private func endSound(at index: Int) {
        events.soundEnded(soundTracks[index], in: path)
        soundTracks[index] = -1
    }

    /// Syncs the file once a second. A power cut then costs at most two seconds: the last fragment, and the time
    /// between two calls.
    private func syncNowAndThen() throws {
        let now = context.clock.now()
        guard now - lastSync >= 900_000_000 else { return }
        lastSync = now
        try muxer!.sync()
        log?.sync()
        captionLog?.sync()
    }

    /// Ends the recording. Everything that was appended is in its files.
    ///
    /// - Parameter isInputEnd: Whether it ends because its input does: sound that is longer than the pictures is then
    ///   part of it.
    func finish(isInputEnd: Bool = false) throws {
        guard muxer != nil else { return }
        try sound?.take(shownBefore: isInputEnd && sound?.goesOnAfterPictures == true ? .max : end, write)
        try finishTail()
        try takeMotion(before: end)
        finishCaptions(at: end)
        try finishFile(endsRecording: true)
    }

    // MARK: Files

    private func beginFile(_ unit: RecordedUnit, at origin: MediaTime) throws {
        let clock = unit.capturedAt != 0 ? unit.capturedAt : context.clock.now()
        let unixTime = context.clock.unixTime(at: clock)
        path = files.nextName(at: unixTime)
        let file = try files.make(at: unixTime, clock: clock, made: context.clock.moment)
        path = file.path
        self.origin = origin
        orientation = setup.container.carriesOrientation ? unit.orientation : .up
        soundTracks = sound?.remaining() ?? []
        let tags = setup.tags
        let carried = soundTracks.map { tags.carried.indices.contains($0) ? tags.carried[$0] : MediaTags.Track() }
        let tracks = TrackDescriptions(
            lead: setup.format, pictures: setup.pictures, orientation: orientation,
            audio: soundTracks.map { sound!.format(of: $0) } + setup.sounds, hasMotion: setup.hasMotionTrack,
            keepsLanguages: tags.keepsLanguages, pictureTags: tags.pictures, soundTags: carried + tags.sounds)
        endedSounds = setup.sounds.map { _ in false }
        muxer = try MuxerHandle(
            file: file, container: setup.container, tracks: tracks, origin: origin, tags: tags,
            creationTime: setup.isLive && tags.creationTime == nil ? unixTime : nil)
        log = motion.flatMap { motion in
            file.sidecars[.gyroflow].map { GyroflowLog($0, motion.format.contents, begin: unit.pts) }
        }
        captionLog = captions.flatMap { _ in file.sidecars[.captions].map { CaptionLog($0, origin: origin) } }
        for case let log? in [log, captionLog] as [SidecarLog?] { events.report(log) }
        for sidecar in files.sidecars where file.sidecars[sidecar] == nil {
            events.reportLack(of: sidecar, beside: file)
        }
        captions?.begin(at: unit.pts)
        motionHasEnded = false
        if tail == nil { motion?.begin(at: unit.pts) }
        policy.beginFile(at: unit.pts)
        fileBegin = unit.pts
        end = unit.pts
        lastSync = context.clock.now()
        if setup.isLive { OutputFile.syncFolder(of: path) }
        filesChanged(file)
        postBegin(unixTime)
        try writeLeadIn(before: unit)
    }

    /// The time that is 0 in a file that begins with a unit: the unit's. Where a sound leads and nothing came before, its
    /// first samples are those that a decoder needs and nobody hears. In Matroska they lie behind 0, since readers take a
    /// time before it for none.
    private func origin(at unit: RecordedUnit) -> MediaTime {
        guard let sound = setup.format.audio, setup.container != .mkv else { return unit.pts }
        var hasLeadIn = false
        leadIn?.forEach { packet, _ in if setup.isLeadIn(packet, to: unit) { hasLeadIn = true } }
        return hasLeadIn ? unit.pts : unit.pts + setup.padding(sound)
    }

    /// Where a sound leads, begins the file with what its decoder needs before the first sample that is heard. Players of
    /// Matroska would play that too.
    private func writeLeadIn(before unit: RecordedUnit) throws {
        guard let leadIn, let muxer, setup.container != .mkv else { return }
        try leadIn.forEach { packet, bytes in
            guard setup.isLeadIn(packet, to: unit) else { return }
            try muxer.write(packet, bytes, isHeard: false, delay: setup.leadDelay)
        }
    }

    private func finishFile(endsRecording: Bool) throws {
        guard let muxer else { return }
        let part = Part(muxer: muxer, log: log, captionLog: captionLog, path: path, begin: fileBegin)
        try complete(part, endsRecording: endsRecording)
        (self.muxer, log, captionLog) = (nil, nil, nil)
        filesChanged(nil)
    }

    private func complete(_ part: Part, endsRecording: Bool) throws {
        let muxer = part.muxer
        try muxer.finish(syncs: setup.isLive)
        if let mark = muxer.file.mark { files.completed(mark) }
        for case let log? in [part.log, part.captionLog] as [SidecarLog?] {
            let wasWhole = log.failure == 0
            log.finish(syncs: setup.isLive)
            if wasWhole { events.report(log) }
        }
        finished.frames += muxer.frames
        finished.bytes += muxer.savedBytes
        finished.files += 1
        if policy.isOn {
            context.post("segment-did-stop", text: text(part), details: details(part))
        }
        for text in muxer.fits {
            context.post(
                "sound-fitted",
                text:
                    "In '\(part.path)' \(text): so the sound stays beside the pictures, since its samples have no times of their own in \(setup.container.name). A Matroska file (.mkv) has them.",
                details: ["path": .string(part.path)])
        }
        if endsRecording { postEnd(part) }
        if let finaliser = Finaliser(
            path: part.path, container: setup.container, when: setup.finalize, like: muxer, room: setup.room)
        {
            finaliser.addJob(context)
        }
    }

    // MARK: What it says

    private func postBegin(_ unixTime: Int64) {
        var details: [(String, JSONNode)] = [("path", .string(path)), ("startSeconds", .number(fileBegin.seconds))]
        if setup.isLive { details.append(("startTime", .string(WallTime.text(unixTime, digits: 6)))) }
        if begin == nil {
            context.post("recording-did-start", text: "The recording to '\(path)' begins.", details: .object(details))
        }
        begin = begin ?? fileBegin
        guard policy.isOn else { return }
        context.post(
            "segment-did-start", text: "File \(finished.files + open.count) is '\(path)'.", details: .object(details))
    }

    private func postEnd(_ part: Part) {
        guard finished.files > 1 else {
            // The event of the only segment has just said the rest.
            let text = policy.isOn ? "The recording is complete: 1 file." : text(part)
            return context.post("recording-did-stop", text: text, details: details(part))
        }
        let span = end - (begin ?? end)
        context.post(
            "recording-did-stop",
            text:
                "The recording is complete: \(finished.files) files with \(figures(finished.frames, span, finished.bytes)) in total. The last file is '\(path)'.",
            details: [
                "path": .string(path), "files": .number(finished.files), "frames": .number(finished.frames),
                "bytes": .number(finished.bytes),
                "seconds": .number(span.seconds),
            ])
    }

    private func text(_ part: Part) -> String {
        "'\(part.path)' has \(figures(part.muxer.frames, part.muxer.span, part.muxer.savedBytes))."
    }

    private func figures(_ frames: Int, _ span: MediaTime, _ bytes: Int64) -> String {
        "\(RecordingFault.count(frames)) (\(RecordingFault.shortSeconds(span.seconds)) s, \(bytes) bytes)"
    }

    private func details(_ part: Part) -> JSONNode {
        let muxer = part.muxer
        return [
            "path": .string(part.path), "frames": .number(muxer.frames), "bytes": .number(muxer.savedBytes),
            "seconds": .number(muxer.span.seconds), "startSeconds": .number(part.begin.seconds),
        ]
    }
}
