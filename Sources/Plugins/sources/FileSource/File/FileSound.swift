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
    private var zeroTime: Int64?
    private var damaged = 0
    /// What was decoded last; grows with the largest frame.
    private var scratch = UnsafeMutableBufferPointer<Float>(start: nil, count: 0)
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
        case .ended: return .ended
        case .samples(let most): return try give(most, decoder, track, output)
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

    private func give(_ most: Int, _ decoder: SoundDecoder, _ track: AudioTrackFormat, _ output: Output) throws
        -> SourceProgress
    {
        guard most > 0 else { return .more }
        let time = decoder.tick.map { track.timeBase.time(ofTicks: $0) }
        if scratch.count < most * decoder.format.channelCount {
            scratch.deallocate()
            scratch = .allocate(capacity: most * decoder.format.channelCount)
        }
        let decoded = decoder.take(scratch)
        guard let place = clock.place(decoded, at: time, before: upper) else {
            return upper.map { clock.end >= $0 } == true ? .ended : .more
        }
        guard waits(for: place.pts) else { return .ended }
        let channels = decoder.format.channelCount
        var block = try output.makeAudioBlock(sampleCount: place.samples.count)
        let part = UnsafeBufferPointer(
            rebasing: scratch[place.samples.lowerBound * channels..<place.samples.upperBound * channels])
        block.withMutableSamples { _ = $0.update(fromContentsOf: part) }
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

    deinit { scratch.deallocate() }

    /// [stage thread] Closes the file.
    func stop() {
        reader = nil
        decoder = nil
        audio = nil
        file = nil
    }
}

/// Counts the times of decoded sound in samples, as long as the file's times agree: a value.
///
/// A container's ticks may be coarser than samples (Matroska: 1 ms), and two blocks must neither overlap nor leave a
/// sample out.
struct SampleClock {
    struct Place: Equatable {
        var pts: MediaTime
        /// Which of the samples are given.
        var samples: Range<Int>
        var isDiscontinuity: Bool
    }

    /// A file's time that is later than the count of samples by more than this is a gap. One that is earlier by
    /// more is an overlap.
    static let tolerance = MediaTime(nanoseconds: 40_000_000)

    private let sampleRate: Int
    private let leavesOutOverlap: Bool
    private var anchor: MediaTime?
    private var count: Int64 = 0

    /// - Parameter leavesOutOverlap: Whether samples are left out where the times fall behind the count of samples,
    ///   because the clock is slower than the sound.
    init(sampleRate: Int, leavesOutOverlap: Bool = false) {
        self.sampleRate = max(sampleRate, 1)
        self.leavesOutOverlap = leavesOutOverlap
    }

    /// When the next sample is heard.
    var end: MediaTime { (anchor ?? .zero) + duration(of: count) }

    func duration(of samples: some BinaryInteger) -> MediaTime {
        let count = Int64(clamping: samples)
        let rate = Int64(sampleRate)
        return MediaTime(nanoseconds: count / rate * 1_000_000_000 + count % rate * 1_000_000_000 / rate)
    }

    /// The place of the next `samples` samples; nil where none of them is heard: they lie before 0 or after `upper`.
    ///
    /// - Parameter time: What the file says; nil where it says nothing.
    mutating func place(_ samples: Int, at time: MediaTime?, before upper: MediaTime?) -> Place? {
        var isDiscontinuity = false
        if anchor == nil {
            anchor = time ?? .zero
        } else if let time, time > end + Self.tolerance {
            (anchor, count) = (time, 0)
            isDiscontinuity = true
        } else if leavesOutOverlap, let time, time + Self.tolerance < end {
            let left = Int(clamping: samplesCeiling(end - time))
            guard left < samples else { return nil }
            let begin = end
            count += Int64(samples - left)
            return Place(pts: begin, samples: left..<samples, isDiscontinuity: true)
        }
        let begin = end
        count += Int64(samples)
        let skipped = begin < .zero ? Int(clamping: samplesCeiling(.zero - begin)) : 0
        let kept = upper.map { min(Int(clamping: samplesCeiling($0 - begin)), samples) } ?? samples
        guard skipped < kept else { return nil }
        return Place(pts: begin + duration(of: skipped), samples: skipped..<kept, isDiscontinuity: isDiscontinuity)
    }

    /// How many samples begin within `time`; 0 for a time that is not above 0.
    private func samplesCeiling(_ time: MediaTime) -> Int64 {
        guard time > .zero else { return 0 }
        let rate = Int64(sampleRate)
        let (seconds, rest) = time.nanoseconds.quotientAndRemainder(dividingBy: 1_000_000_000)
        let (whole, isTooMuch) = seconds.multipliedReportingOverflow(by: rate)
        return isTooMuch ? .max / 2 : whole + (rest * rate + 999_999_999) / 1_000_000_000
    }
}
