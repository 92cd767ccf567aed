// SPDX-License-Identifier: Apache-2.0

import CAVFormat
import FrameCore

/// The sound of a file beside its pictures: `"from": "clip.audio"`, where `clip` is a ``FileSource``.
///
/// It has the options of that stage, and its own reader of the file, so that neither waits for the other. Its timeline
/// is that of the pictures. It gives the first sound track: decoded, or with `"decode": false` its packets as they are.
final class FileSound: Source {
    static let info = StageInfo(
        id: "file-sound", summary: "Gives the sound of a file: the output 'audio' of 'file-source'.", output: .audio,
        otherOutput: StageInfo.OtherOutput(where: "decode", is: .bool(false), .encoded(AudioTrackFormat.passedOn)),
        events: FileSource.events,
        realTime: StageInfo.RealTime(with: "pace", .string(FilePace.realtime.rawValue)))
    static let type = StageType(FileSound.self)

    var options: FileSourceOptions
    let context: StageContext
    private var file: MediaFile?
    private var audio: CarriedTracks?
    /// What of the file is played.
    private var range = FileTimeRange(shift: .zero)
    /// Where the file lies on the chain's timeline, with what follows it in a list.
    private var joint = MediaTime.zero
    /// Where the sound that was given ends.
    private var given: MediaTime?
    /// Where the newest packet ends, on the timeline of the file's range.
    private var packetsEnd = MediaTime.zero
    private var rest: [Part] = []
    /// Whether the file begins where the one before has ended.
    private var followsSound = false
    /// Of the files of an undecoded list: the first packet to give of the present one, and of the next one with sound.
    private var begins: (present: MediaTime?, next: MediaTime?)
    /// A file of a list that was not begun. Of files of which none has pictures, each begins where the one before has ended, and
    /// no span is needed.
    private struct Part {
        var path: String
        var span: FileSpan?
        var isFirst: Bool
    }
    private var decoder: SoundDecoder?
    private var reader: CarriedTrackReader?
    private var track: AudioTrackFormat?
    private var format: AudioFormat?
    /// Where the pictures end on the chain's timeline; nil: where the file ends.
    private var upper: MediaTime?
    private var clock = SampleClock(sampleRate: 1)
    private var isDecoded = false
    private var zeroTime: Int64?
    private var account: SoundAccount?
    private var isFileDone = false
    /// What was decoded and is not given yet.
    private var decoded = DecodedSound()
    private var length: MediaTime?

    /// [control thread] Opens nothing.
    init(options: FileSourceOptions, context: StageContext) {
        self.options = options
        self.context = context
    }

    var demand: StageDemand {
        var demand = Self.declaredDemand
        demand.readsFiles = options.path.all.map(context.resolve)
        demand.isPaced = options.pace == .realtime
        demand.slabBytes = 4 << 20
        demand.expectedDuration = length
        return demand
    }

    /// [control thread] Opens the file and looks at its tracks.
    func negotiate() throws -> MediaFormat {
        if options.loop {
            throw FrameHostError(
                .invalidConfiguration, place: "loop", what: "a file played with 'loop' gives no sound",
                remedy: "Leave 'loop' out, or take the pictures only.")
        }
        if options.path.isList { return try negotiateList() }
        let path = context.resolve(options.path.first)
        if let fault = FileFault.ofPath(path, isRelative: !options.path.first.hasPrefix("/")) { throw fault }
        let file = try MediaFile(path: path)
        let range: FileTimeRange
        if file.hasPictures {
            // The sound begins and ends where the pictures do. This source only finds out where: the pictures' own
            // stage posts the events about them.
            let pictures = FileSource(
                options: options,
                context: StageContext(stageID: context.stageID, folder: context.folder, clock: context.clock))
            _ = try pictures.negotiate()
            range = pictures.timeRange
            length = pictures.demand.expectedDuration
        } else {
            range = try rangeOfSoundAlone(file)
        }
        let audio = CarriedTracks(file, range: range, context: context)
        guard let track = audio.tracks.first else { throw noSound(file) }
        (self.file, self.audio, self.track, self.range) = (file, audio, track, range)
        context.offerTags(file.tags(track: audio.index(ofTrack: 0), range: range))
        upper = range.end.map { $0 - range.shift }
        return try format(of: file, audio, track)
    }

    private func noSound(_ file: MediaFile) -> FrameHostError {
        let isUnknown = (0..<file.trackCount).contains { file.isUnknownSound($0) }
        return FrameHostError(
            .invalidMedia, place: "path",
            what: isUnknown
                ? "the sound of '\(file.path)' has no known rate and channels, because none of it was found in the first 64 MB or could be decoded"
                : "'\(file.path)' has no sound",
            remedy: isUnknown
                ? "Check the file with 'ffprobe': it may be damaged. Or take the pictures only."
                : "Name a file with sound, or take the pictures only.")
    }

    /// [control thread] The sound of the first file that has some, and behind it that of the others.
    private func negotiateList() throws -> MediaFormat {
        let files = try openList()
        let hasPictures = files.contains(where: \.hasPictures)
        var spans: [FileSpan?] = files.map { _ in nil }
        if hasPictures {
            let found = try files.map { file in
                file.hasPictures
                    ? FileSpan(file, track: try file.chooseVideoTrack(number: options.track))
                    : Self.firstSound(file).flatMap { FileSpan(file, track: $0) }
            }
            guard !found.contains(nil) else {
                throw FrameHostError(
                    .invalidMedia, place: "path", what: "one of the files does not say how long it is",
                    remedy: "Name files that were copied into MP4 or Matroska first, or take the pictures only.")
            }
            let joined = FileSpan.joined(found.compactMap { $0 })
            length = joined.last.map { $0.joint + ($0.end - $0.begin) }
            spans = joined
        } else {
            let lengths = files.map { file in Self.firstSound(file).flatMap { file.duration($0) } }
            length = lengths.contains(nil) ? nil : lengths.reduce(.zero) { $0 + $1! }
        }
        rest = files.indices.map { Part(path: files[$0].path, span: spans[$0], isFirst: $0 == 0) }
        guard let (file, audio, track) = try openNext() else {
            throw FrameHostError(
                .invalidMedia, place: "path", what: "none of the files has sound",
                remedy: "Name files with sound, or take the pictures only.")
        }
        if !options.decode { try check(files, follow: file, track) }
        let tags = files.map { file in file.tags(track: Self.firstSound(file) ?? 0, range: nil) }
        if let first = tags.first { context.offerTags(first) }
        // Beside pictures their own stage says it.
        if !hasPictures { context.noteTagsLeftOut(tags, isWithChapters: true) }
        return try format(of: file, audio, track)
    }

    /// The files of a list.
    private func openList() throws -> [MediaFile] {
        var faults: [FrameHostError] = []
        var files: [MediaFile] = []
        for (index, name) in options.path.all.enumerated() {
            let path = context.resolve(name)
            do {
                if let fault = FileFault.ofPath(path, isRelative: !name.hasPrefix("/")) { throw fault }
                let file = try MediaFile(path: path)
                if !file.hasPictures, CarriedTracks(file, range: range, context: context).tracks.isEmpty {
                    throw noSound(file)
                }
                files.append(file)
            } catch {
                var fault = FrameHostError.wrap(error)
                if ["", "path"].contains(fault.place.description) { fault.place = options.path.place(index) }
                faults.append(fault)
            }
        }
        guard faults.isEmpty else { throw FrameHostErrors(faults) }
        return files
    }

    /// Packets of all files go into one track, whose description is that of the first.
    private func check(_ files: [MediaFile], follow first: MediaFile, _ track: AudioTrackFormat) throws {
        for (index, other) in files.enumerated() {
            guard let found = CarriedTracks(other, range: range, context: context).tracks.first else { continue }
            guard
                found.codec != track.codec || found.extradata != track.extradata
                    || found.sampleRate != track.sampleRate || found.channelCount != track.channelCount
            else { continue }
            throw FrameHostError(
                .invalidMedia, place: options.path.place(index),
                what:
                    "the sound of '\(other.path)' differs from that of '\(first.path)', so it cannot go on behind it as it is",
                remedy: "Leave 'decode' out, and encode the sound.")
        }
    }

    private static func firstSound(_ file: MediaFile) -> Int? {
        (0..<file.trackCount).first {
            file.parameters($0).codec_type == AVMEDIA_TYPE_AUDIO && file.parameters($0).codec_id != AV_CODEC_ID_NONE
        }
    }

    /// The next file of a list that has sound; nil where none follows.
    private func openNext() throws -> (MediaFile, CarriedTracks, AudioTrackFormat)? {
        while !rest.isEmpty {
            let part = rest.removeFirst()
            let file = try MediaFile(path: part.path)
            let begin = Self.firstSound(file).map { file.timeBase($0).time(ofTicks: file.origin($0)) }
            let range =
                part.span?.range(isFirst: part.isFirst)
                ?? FileTimeRange(shift: part.isFirst ? .zero : begin ?? .zero)
            let audio = CarriedTracks(file, range: range, context: context)
            guard let track = audio.tracks.first else { continue }
            (self.file, self.audio, self.track, self.range) = (file, audio, track, range)
            joint = part.span.map { place(of: $0, track) } ?? given ?? .zero
            followsSound = part.span == nil && !part.isFirst
            if !options.decode, part.span != nil {
                begins.present = begins.next
                begins.next = try nextBegin()
            }
            // Of the last one all is given, as of a single file.
            upper = rest.isEmpty ? nil : part.span.map { $0.end - $0.begin }
            return (file, audio, track)
        }
        return nil
    }

    /// Where a file of a list lies. Undecoded on a tick of its track, as a recorder that carries the sound has it.
    private func place(of span: FileSpan, _ track: AudioTrackFormat) -> MediaTime {
        options.decode ? span.joint : track.timeBase.time(ofTicks: track.timeBase.ticks(of: span.joint))
    }

    /// Where the next file with sound begins.
    private func nextBegin() throws -> MediaTime? {
        for part in rest {
            guard let span = part.span else { continue }
            // The file's own reader posts the events about it.
            let silent = StageContext(stageID: context.stageID, folder: context.folder, clock: context.clock)
            let tracks = CarriedTracks(
                try MediaFile(path: part.path), range: span.range(isFirst: false), context: silent)
            guard let track = tracks.tracks.first else { continue }
            return try CarriedList.begin(tracks.open(track: 0)).first.map {
                track.timeBase.time(ofTicks: $0.pts) + place(of: span, track)
            }
        }
        return nil
    }

    /// [stage thread] Goes over to the next file of a list; false where none follows.
    private func goOn() throws -> Bool {
        guard let (file, audio, _) = try openNext() else { return false }
        try open(file, audio)
        (isDecoded, isFileDone) = (false, false)
        decoded.removeAll()
        if let format { decoder = try SoundDecoder(file, track: audio.index(ofTrack: 0), format: format) }
        return true
    }

    private func format(of file: MediaFile, _ audio: CarriedTracks, _ track: AudioTrackFormat) throws -> MediaFormat {
        if !options.decode {
            if let obstacle = track.obstacleToPassing {
                throw FrameHostError(
                    .invalidMedia, place: "decode",
                    what: "the sound of '\(file.path)' (\(track)) cannot be passed on: \(obstacle)",
                    remedy: "Add a second file-source of the same file without \"decode\": false, and encode its sound."
                )
            }
            return .encoded(EncodedFormat(codec: track.codec, audio: track))
        }
        let decoder = try SoundDecoder(file, track: audio.index(ofTrack: 0))
        self.decoder = decoder
        format = decoder.format
        return .audio(decoder.format)
    }

    /// The part of a file without pictures that is played, by its first sound.
    private func rangeOfSoundAlone(_ file: MediaFile) throws -> FileTimeRange {
        let sounds = (0..<file.trackCount).filter { file.parameters($0).codec_type == AVMEDIA_TYPE_AUDIO }
        guard let sound = sounds.first else { return FileTimeRange(shift: .zero) }
        if let whole = file.duration(sound) {
            if file.isDurationDeclared, options.start >= whole.seconds, options.start > 0 {
                throw FileFault.startsBehindEnd(file.path, start: options.start, length: whole)
            }
            let rest = max(whole - MediaTime(seconds: options.start), .zero)
            length = options.duration.map { min(MediaTime(seconds: $0), rest) } ?? rest
        }
        return FileTimeline(
            timeBase: file.timeBase(sound), origin: file.origin(sound), start: options.start, duration: options.duration
        ).timeRange
    }

    /// [setup thread] Opens a reader of its own.
    func start() throws {
        guard let file, let audio else { return }
        SoundAccount.open(
            context, file, track: audio.index(ofTrack: 0),
            isWhole: range.begin == nil && range.end == nil && !options.path.isList)
        try open(file, audio)
    }

    private func open(_ file: MediaFile, _ audio: CarriedTracks) throws {
        reader = try audio.open(track: 0, isDecoded: options.decode)
        clock = SampleClock(sampleRate: format?.sampleRate ?? 1)
        account = SoundAccount(context, file, track: audio.index(ofTrack: 0), range: range)
        // Of a file with pictures their own stage says it.
        if !file.hasPictures { context.reportNotCarried(file.lostTracks(besides: audio.index(ofTrack: 0))) }
    }

    /// Ends the file that plays, and goes over to the next one of a list.
    private func endFile() throws -> SourceProgress {
        isFileDone = true
        guard account?.looksThroughContainer() != false else { return .more }
        account?.close(isDecoded: options.decode)
        account = nil
        if try goOn() { return .more }
        context.inputAccount?.hasEnded = true
        return .ended
    }

    /// [stage thread] One packet, or what the decoder makes of it.
    func produce(_ output: Output) throws -> SourceProgress {
        guard let reader, let track else { return .ended }
        if isFileDone { return try endFile() }
        guard let decoder else {
            guard let packet = try read(reader, track) else { return try endFile() }
            return try pass(packet, track, output)
        }
        switch clock.next(before: upper) {
        case .leftOut(let samples):
            decoded.drop(samples)
            return upper.map { clock.end >= $0 } == true ? try endFile() : .more
        case .place(let place, let of): return try give(place, of: of, output)
        case .undecided: break
        }
        if isDecoded { return try endFile() }
        switch try decoder.step() {
        case .hungry: decoder.send(try read(reader, track), reader.changes, isHidden: reader.isHidden)
        case .damaged:
            account?.damage()
            decoder.send(try read(reader, track), reader.changes, isHidden: reader.isHidden)
        case .ended:
            isDecoded = true
            clock.endInput()
        case .samples(let most):
            guard most > 0 else { break }
            account?.decode()
            let time = decoder.tick.map { track.timeBase.time(ofTicks: $0) }
            if let change = decoder.takeChange() { report(change, to: decoder.format, at: time) }
            clock.add(decoded.append(atMost: most, channels: decoder.format.channelCount, decoder.take), at: time)
        }
        return .more
    }

    private func read(_ reader: CarriedTrackReader, _ track: AudioTrackFormat) throws -> AudioPacket? {
        guard let packet = try reader.next() else {
            // What the codec adds to the end is no pause before the next song.
            if options.path.isList, upper == nil, !rest.isEmpty { upper = packetsEnd }
            return nil
        }
        packetsEnd = track.timeBase.time(ofTicks: packet.pts.plus(packet.duration))
        account?.read(upTo: packetsEnd)
        return packet
    }

    /// Says that the sound is not what it was when the chain was planned.
    private func report(_ change: AudioFormat, to format: AudioFormat, at time: MediaTime?) {
        let time = max(time ?? clock.end, .zero) + joint
        context.post(
            "sound-changed",
            text:
                "From \(time.shortSeconds) s on the sound of '\(file?.path ?? "")' is \(change.figures). It is converted to \(format.figures).",
            details: [
                "from": .string(change.figures), "to": .string(format.figures), "atSeconds": .number(time.seconds),
            ])
    }

    /// Whether a file of a list has no sound up to its end, and another one follows.
    private func followsGap(_ pts: MediaTime) -> Bool {
        joint > .zero && given.map { pts > $0 + SampleClock.tolerance } ?? true
    }

    /// Gives a packet as it is. At the joints of a list these are the packets that ``CarriedList`` gives too.
    private func pass(_ packet: AudioPacket, _ track: AudioTrackFormat, _ output: Output) throws -> SourceProgress {
        let own = track.timeBase.time(ofTicks: packet.pts)
        guard !packet.bytes.isEmpty else { return .more }
        let duration = track.timeBase.time(ofTicks: packet.duration)
        // Of a list: what only prepares a decoder, and what the next file lies over.
        if let begin = begins.present {
            if own + joint < begin { return .more }
        } else if joint > .zero, own + duration <= .zero {
            return .more
        }
        if let upper, own >= upper, options.path.isList { return .more }
        if let next = begins.next, (own + joint).gives(wayTo: next, lasting: duration) { return .more }
        // A song's first packet begins before the first sound that is heard.
        if followsSound, let given, own + joint < given { joint = given - own }
        let pts = own + joint
        guard waits(for: pts) else { return .ended }
        var unit = try output.makeAccessUnit(byteCount: packet.bytes.count)
        unit.withMutableBytes { $0.copyBytes(from: packet.bytes) }
        unit.pts = pts
        unit.dts = pts
        unit.duration = duration
        given = pts + unit.duration
        unit.isKeyframe = true
        try output.emit(unit)
        return .more
    }

    /// Gives samples of the earliest ones that were decoded, all of which are then gone.
    private func give(_ place: SampleClock.Place, of samples: Int, _ output: Output) throws -> SourceProgress {
        guard waits(for: place.pts + joint) else { return .ended }
        var block = try output.makeAudioBlock(sampleCount: place.samples.count)
        block.withMutableSamples { _ = $0.update(fromContentsOf: decoded.samples(place.samples)) }
        decoded.drop(samples)
        block.pts = place.pts + joint
        block.duration = clock.duration(of: place.samples.count)
        block.isDiscontinuity = place.isDiscontinuity || followsGap(place.pts + joint)
        given = place.pts + joint + block.duration
        try output.emit(block)
        return .more
    }

    /// In real time, waits until a time of the chain's timeline is due; false when the source must end.
    private func waits(for pts: MediaTime) -> Bool {
        guard options.pace == .realtime else { return true }
        let now = MediaTime(nanoseconds: context.clock.now())
        if zeroTime == nil { zeroTime = (now - pts).nanoseconds }
        return context.sleep(until: zeroTime! + pts.nanoseconds)
    }

    /// [stage thread] Closes the file.
    func stop() {
        reader = nil
        decoder = nil
        audio = nil
        file = nil
    }
}
