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
        otherOutput: StageInfo.OtherOutput(where: "decode", is: .bool(false), .encoded(.aac, .opus)),
        events: FileSource.events,
        realTime: StageInfo.RealTime(with: "pace", .string(FilePace.realtime.rawValue)))
    static let type = StageType(FileSound.self)

    var options: FileSourceOptions
    private let context: StageContext
    private var file: MediaFile?
    private var audio: CarriedTracks?
    private var decoder: SoundDecoder?
    private var reader: (any AudioReader)?
    private var track: AudioTrackFormat?
    private var format: AudioFormat?
    /// Where the pictures end on the chain's timeline; nil: where the file ends.
    private var upper: MediaTime?
    private var clock = SampleClock(sampleRate: 1)
    private var isDecoded = false
    private var zeroTime: Int64?
    private var damaged = 0
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
        demand.readsFiles = [context.resolve(options.path)]
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
        // The sound begins and ends where the pictures do. This source only finds out where: the pictures' own
        // stage posts the events about them.
        let pictures = FileSource(
            options: options,
            context: StageContext(stageID: context.stageID, folder: context.folder, clock: context.clock))
        _ = try pictures.negotiate()
        let range = pictures.timeRange
        let file = try MediaFile(path: context.resolve(options.path))
        let audio = CarriedTracks(file, range: range, context: context)
        guard let track = audio.tracks.first else {
            throw FrameHostError(
                .invalidMedia, place: "path", what: "'\(file.path)' has no sound",
                remedy: "Name a file with sound, or take the pictures only.")
        }
        (self.file, self.audio, self.track) = (file, audio, track)
        upper = range.end.map { $0 - range.shift }
        length = pictures.demand.expectedDuration
        if !options.decode {
            guard [.aac, .opus].contains(track.codec), !track.extradata.isEmpty else {
                throw FrameHostError(
                    .invalidMedia, place: "decode",
                    what:
                        "the sound of '\(file.path)' (\(track)) cannot be passed on: it must be AAC without ADTS headers, or Opus",
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

    /// [setup thread] Opens a reader of its own.
    func start() throws {
        reader = try audio?.open(track: 0)
        clock = SampleClock(sampleRate: format?.sampleRate ?? 1)
    }

    /// [stage thread] One packet, or what the decoder makes of it.
    func produce(_ output: Output) throws -> SourceProgress {
        guard let reader, let track else { return .ended }
        guard let decoder else {
            guard let packet = try reader.next() else { return .ended }
            return try pass(packet, track, output)
        }
        switch clock.next(before: upper) {
        case .leftOut(let samples):
            decoded.drop(samples)
            return upper.map { clock.end >= $0 } == true ? .ended : .more
        case .place(let place, let of): return try give(place, of: of, output)
        case .undecided: break
        }
        if isDecoded { return .ended }
        switch try decoder.step() {
        case .hungry: decoder.send(try reader.next())
        case .damaged:
            damaged += 1
            if damaged == 1 {
                context.post(
                    "sound-damaged", level: .warning,
                    text:
                        "A packet of the sound of '\(context.resolve(options.path))' could not be decoded; it is left out."
                )
            }
            decoder.send(try reader.next())
        case .ended:
            isDecoded = true
            clock.endInput()
        case .samples(let most):
            guard most > 0 else { break }
            let time = decoder.tick.map { track.timeBase.time(ofTicks: $0) }
            clock.add(decoded.append(atMost: most, channels: decoder.format.channelCount, decoder.take), at: time)
        }
        return .more
    }

    private func pass(_ packet: AudioPacket, _ track: AudioTrackFormat, _ output: Output) throws -> SourceProgress {
        let pts = track.timeBase.time(ofTicks: packet.pts)
        guard !packet.bytes.isEmpty else { return .more }
        guard waits(for: pts) else { return .ended }
        var unit = try output.makeAccessUnit(byteCount: packet.bytes.count)
        unit.withMutableBytes { $0.copyBytes(from: packet.bytes) }
        unit.pts = pts
        unit.dts = pts
        unit.duration = track.timeBase.time(ofTicks: packet.duration)
        unit.isKeyframe = true
        try output.emit(unit)
        return .more
    }

    /// Gives samples of the earliest ones that were decoded, all of which are then gone.
    private func give(_ place: SampleClock.Place, of samples: Int, _ output: Output) throws -> SourceProgress {
        guard waits(for: place.pts) else { return .ended }
        var block = try output.makeAudioBlock(sampleCount: place.samples.count)
        block.withMutableSamples { _ = $0.update(fromContentsOf: decoded.samples(place.samples)) }
        decoded.drop(samples)
        block.pts = place.pts
        block.duration = clock.duration(of: place.samples.count)
        block.isDiscontinuity = place.isDiscontinuity
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
