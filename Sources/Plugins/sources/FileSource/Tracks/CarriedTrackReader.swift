// SPDX-License-Identifier: Apache-2.0

import CAVFormat
import FrameCore
import Reports

/// Reads the packets of one sound track as they are, cut to the part of the file whose pictures are shown, with times
/// on the chain's timeline.
///
/// It opens the file itself. A packet that overlaps the start of the part is given whole, after as many earlier
/// packets as a decoder needs.
final class CarriedTrackReader: AudioReader {
    private let file: MediaFile
    private let track: Int
    private let context: StageContext
    private var packet: UnsafeMutablePointer<AVPacket>?
    /// In ticks of the track, in the file's own time. Packets that end at `lower` or before are left out, and so are
    /// those that begin at `upper` or later.
    private let lower: Int64?
    private let upper: Int64?
    /// Subtracted from each tick to get the chain's time.
    private let shift: Int64
    private var attempt: SeekAttempt?
    private var following: Int64 = 0
    private var times: TrackTimes
    private var isOver = false
    /// The file offset of the last packet; -1 where it is not known.
    private var position: Int64 = -1
    private let format: AudioTrackFormat
    /// Whether the packets are decoded, which follows what the sound changes to. Otherwise they go into a track that has one
    /// description.
    private let isDecoded: Bool
    /// The description with which the packets began, and the present one.
    private var headers: (first: SoundHeader?, present: SoundHeader?) = (nil, nil)
    private var reported = Reported()
    /// What a decoder must have before the last packet that was given.
    private(set) var changes: [SoundChange] = []
    private var comingChanges: [SoundChange] = []
    /// Whether an edit list hides the last packet that was given, which only serves to decode those after it.
    private(set) var isHidden = false
    /// Whether a packet was given that is heard.
    private var hasBegun = false

    /// [control thread]
    ///
    /// - Parameters:
    ///   - track: The index among all tracks.
    ///   - isDecoded: Whether the packets are decoded. Otherwise those are left out that a copy cannot describe.
    init(
        path: String, track: Int, format: AudioTrackFormat, range: FileTimeRange, isDecoded: Bool,
        context: StageContext
    ) throws {
        self.track = track
        self.format = format
        self.isDecoded = isDecoded
        headers = (SoundHeader(of: format), SoundHeader(of: format))
        times = TrackTimes(timeBase: format.timeBase)
        self.context = context
        file = try MediaFile(path: path)
        guard track < file.trackCount, let packet = av_packet_alloc() else { throw FileFault.changed(path) }
        self.packet = packet
        file.giveOnly(track: track)
        let base = format.timeBase
        // Packets before the start are decoded but not heard: those of the codec's preroll, and at least the one
        // that overlaps the first.
        let early = MediaTime(
            seconds: Double(max(format.seekPreroll, format.samplesPerPacket)) / Double(max(format.sampleRate, 1)))
        lower = range.begin.map { base.ticks(of: $0 - early) }
        upper = range.end.map { base.ticks(of: $0) }
        shift = base.ticks(of: range.shift)
        if let lower {
            attempt = SeekAttempt(lower, isFirst: true, origin: file.origin(track), timeBase: base)
            try go()
        }
    }

    deinit { av_packet_free(&packet) }

    /// [consumer's thread] The next packet; nil at the end of the part.
    func next() throws -> AudioPacket? {
        while !isOver {
            let result = file.read(into: packet)
            if result == fh_averror_again { continue }
            guard result >= 0 else {
                if attempt?.isTooLate(nil) == true {
                    try goBack()
                    continue
                }
                isOver = true
                reportTimes()
                if result != fh_averror_eof { reportFault(result) }
                reportMissing()
                return nil
            }
            defer { av_packet_unref(packet) }
            guard let found = try take(packet!.pointee) else { continue }
            return found
        }
        return nil
    }

    private func take(_ packet: AVPacket) throws -> AudioPacket? {
        guard packet.stream_index == track else { return nil }
        position = packet.pos
        noteHeader(packet)
        isHidden = packet.flags & AV_PKT_FLAG_DISCARD != 0
        let givenPTS = times.tick(packet.pts)
        // The same time is counted once.
        let known = (pts: givenPTS, dts: packet.dts == packet.pts ? givenPTS : times.tick(packet.dts))
        let (pts, duration) = (known.pts ?? known.dts ?? following, times.duration(packet.duration))
        let dts = known.dts ?? pts
        // What an edit list hides in the middle lies over what is heard. A copy has none of it.
        if isHidden, !isDecoded, hasBegun || pts >= shift { return nil }
        if !isHidden || !hasBegun {
            if attempt?.isTooLate(pts) == true {
                try goBack()
                return nil
            }
            attempt = nil
            following = min(pts.plus(duration), TimeBase.mostTicks)
        }
        if let lower, pts.plus(duration) <= lower { return nil }
        if let upper, pts >= upper, !isHidden {
            isOver = true
            reportTimes()
            return nil
        }
        // Where only packets say it, a copy is described by the first one.
        headers.first = headers.first ?? headers.present
        guard isDecoded || headers.first == headers.present else {
            reportChange(at: pts)
            return nil
        }
        if !isHidden { hasBegun = true }
        (changes, comingChanges) = (comingChanges, [])
        // How much an edit list hides, to the sample.
        if isHidden, let skip = packet.sideData(AV_PKT_DATA_SKIP_SAMPLES) {
            changes.append(SoundChange(kind: AV_PKT_DATA_SKIP_SAMPLES, bytes: skip))
        }
        let bytes = UnsafeRawBufferPointer(start: packet.data, count: Int(packet.size))
        let header = isDecoded || format.extradata.isEmpty ? 0 : ADTSHeader.read(bytes)?.byteCount ?? 0
        return AudioPacket(
            bytes: Array(bytes.dropFirst(header)), pts: pts.minus(shift), dts: dts.minus(shift), duration: duration)
    }

    /// Takes note of what a packet says of itself, whether it is given or not.
    private func noteHeader(_ packet: AVPacket) {
        if isDecoded {
            comingChanges += packet.changes
        } else if let header = SoundHeader(packet, of: format) {
            // What a track's description was made of, until its first packet tells.
            if case .adts(let adts) = header, headers.first == .extradata(adts.config) { headers.first = header }
            headers.present = header
        }
    }

    private func reportChange(at pts: Int64) {
        guard let first = headers.first, let present = headers.present else { return }
        let (from, to) = (first.text, present.text)
        let time = format.timeBase.time(ofTicks: pts.minus(shift))
        context.post(
            "sound-changed", once: &reported, level: .warning,
            text:
                "The sound of '\(file.path)' changes at \(time.shortSeconds) s\(from.isEmpty || to.isEmpty ? "" : " from \(from) to \(to)"). A copy of a track has one format, so the sound is left out while it has another. To have it converted, put 'audio-encoder' behind the output 'audio' of this stage.",
            details: ["from": .string(from), "to": .string(to), "atSeconds": .number(time.seconds)])
    }

    private func goBack() throws {
        attempt?.goBack()
        try go()
    }

    private func go() throws {
        guard attempt?.place.map({ file.seek(to: $0, track: track) }) != true else { return }
        attempt?.goToBegin()
        try file.reopen()
    }

    private func reportTimes() {
        guard times.impossible > 0, let first = times.firstImpossible else { return }
        context.post(
            "times-impossible", level: .warning,
            text:
                times.impossible == 1
                ? "1 time stamp of the sound of '\(file.path)' was impossible, \(first) in ticks of \(times.timeBase) s: a time must lie within 73 years of 0. It counts as directly after the packet before it, or as the start where there is none."
                : "\(times.impossible) time stamps of the sound of '\(file.path)' were impossible, the first \(first) in ticks of \(times.timeBase) s: a time must lie within 73 years of 0. Each counts as directly after the packet before it, or as the start where there is none.",
            details: ["ticks": .number(first), "timeStamps": .number(times.impossible)])
    }

    /// Says where the file's index has more of the sound than could be read, in the account of the file too.
    private func reportMissing() {
        guard upper == nil, let index = file.indexed(track, after: position), let missing = index.after, missing > 0
        else {
            return
        }
        let text =
            "The sound of '\(file.path)' ends early: \(missing) of its \(index.packets) packets \(missing == 1 ? "is" : "are") missing"
        context.post(
            "file-incomplete", level: .warning, text: "\(text).",
            details: ["missing": .number(missing), "of": .number(index.packets)])
        lack(text)
    }

    private func reportFault(_ code: Int32) {
        let text = "The sound of '\(file.path)' could not be read to its end: \(LibavText.of(code))"
        context.post("file-incomplete", level: .warning, text: "\(text).")
        lack(text)
    }

    private func lack(_ text: String) {
        guard var account = context.inputAccount, account.shortfall == nil else { return }
        account.shortfall = text
        context.inputAccount = account
    }
}
