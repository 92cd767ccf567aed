// SPDX-License-Identifier: Apache-2.0

import CAVFormat
import FrameCore
import Glibc
import Recordings

/// One file being written by libavformat.
///
/// MP4 and MOV are written in fragments of at most a second, each complete by itself. Whatever ends the program,
/// everything up to the last fragment plays. The header is written after the first fragment (`delay_moov`), so that its
/// edit lists can say how far B-frames and a first PTS other than 0 shift a track. Time stamps then come back as they
/// were given.
///
/// Used by one thread at a time. Payloads are handed over without a copy; libavformat has used them when `write`
/// returns.
final class MuxerHandle {
    let file: OutputFile
    /// Access units handed over.
    private(set) var frames = 0
    /// Access units that are in the file for good.
    private(set) var savedFrames = 0
    private(set) var savedBytes: Int64 = 0
    /// The time from the first frame's PTS to the end of the last one that was handed over, and to the end of the last
    /// one that was saved.
    private(set) var span = MediaTime.zero
    private(set) var savedSpan = MediaTime.zero

    /// The size that the index will have once the file is rewritten without fragments.
    private(set) var index: IndexSize

    let tags: RecordedTags
    /// The time on the chain's timeline that is 0 in the file.
    let origin: MediaTime
    private let container: Container
    private var context: UnsafeMutablePointer<AVFormatContext>?
    private var io: UnsafeMutablePointer<AVIOContext>?
    private var packet: UnsafeMutablePointer<AVPacket>?
    /// The one that leads first, then the sounds, then the motion.
    private var tracks: [MuxerTrack]
    private let hasMotion: Bool
    /// Whether the motion's track has its name.
    private var isMotionNamed = false
    /// The latest sample of motion, and the time between it and the one before.
    private var waiting: MotionSample?
    private var period = MediaTime.zero
    private var first: MediaTime?
    private var firstDTS = MediaTime.zero

    /// [stage thread] Starts the file, which is still empty when this returns.
    ///
    /// - Parameters:
    ///   - file: A new file. It is removed when this throws.
    ///   - origin: The time on the chain's timeline that is 0 in the file.
    ///   - tags: What the file says about itself.
    ///   - creationTime: Nanoseconds since 1970, for the container's metadata; nil where the time has no meaning, or is
    ///     among the tags.
    /// - Throws: ``FrameHostError`` naming the path.
    init(
        file: OutputFile, container: Container, tracks descriptions: TrackDescriptions, origin: MediaTime,
        tags: RecordedTags, creationTime: Int64?
    ) throws {
        av_log_set_level(AV_LOG_QUIET)
        self.file = file
        self.container = container
        (self.tags, self.origin) = (tags, origin)
        index = IndexSize(
            trackCount: descriptions.count + (tags.chapters.isEmpty ? 0 : 1),
            extradataBytes: descriptions.extradataBytes + tags.indexBytes,
            motion: descriptions.hasMotion ? descriptions.count - 1 : nil)
        guard avformat_alloc_output_context2(&context, nil, container.rawValue, nil) >= 0, let context,
            let packet = av_packet_alloc()
        else {
            avformat_free_context(context)
            throw FrameHostError(
                .callFailed, what: "libavformat could not create a writer for \(container.name)",
                remedy:
                    "Install the distribution's own libavformat if this one lacks the format, or record to another format. If memory is short, free some."
            )
        }
        self.packet = packet
        tracks = []
        hasMotion = descriptions.hasMotion
        // Time stamps stay as they are. Otherwise the muxer would move them so that none is negative.
        context.pointee.avoid_negative_ts = AVFMT_AVOID_NEG_TS_DISABLED
        // A fragment is handed to the kernel as soon as it is complete.
        context.pointee.flags |= AVFMT_FLAG_FLUSH_PACKETS | AVFMT_FLAG_CUSTOM_IO
        context.pointee.strict_std_compliance = TrackDescriptions.compliance
        tags.set(in: context)
        if let creationTime {
            av_dict_set(&context.pointee.metadata, "creation_time", WallTime.text(creationTime, digits: 6), 0)
        }
        io = file.makeIO()
        context.pointee.pb = io
        let streams = try descriptions.addStreams(to: context, container)
        if container == .mkv { tags.addChapters(to: context, origin: origin) }
        try begin(context, descriptions, tags)
        // Known to the writer of MP4 before the header, they would become a track of their own, whose packets do not fit
        // into fragments. The header itself is written with the first fragment, and has a list of them.
        if container != .mkv { tags.addChapters(to: context, origin: origin) }
        let lead = TimeBase(streams[0].pointee.time_base)
        // The origin is a whole number of the ticks of the track that leads, so that times stay exact.
        let moved = lead.time(ofTicks: lead.ticks(of: origin))
        tracks = streams.enumerated().map { index, stream in
            MuxerTrack(
                stream: Int32(index), timeBase: TimeBase(stream.pointee.time_base), origin: moved, begin: origin,
                source: descriptions.audio.indices.contains(index - 1) ? descriptions.audio[index - 1] : nil,
                mostGap: container.mostGap,
                samples: container == .mkv ? nil : SampleTrack(stream))
        }
    }

    deinit { close() }

    /// How each track ends, the pictures' first.
    var ends: [TrackEnd] { tracks.map(\.end) }

    /// What was changed in sound whose samples follow each other without times, a text for each track of it.
    var fits: [String] { tracks.compactMap { $0.samples?.text } }

    /// Whether the file is open: until `finish` or an error.
    var isOpen: Bool { context != nil }

    private func begin(
        _ context: UnsafeMutablePointer<AVFormatContext>, _ descriptions: TrackDescriptions, _ tags: RecordedTags
    ) throws {
        var settings: OpaquePointer?
        defer { av_dict_free(&settings) }
        if container == .mkv {
            // A cluster ends with the first picture whose PTS is after this time. In the order of decoding that is
            // within a second.
            av_dict_set(&settings, "cluster_time_limit", "800", 0)
        } else {
            let ticks = Int64(descriptions.leadTicks(in: container))
            // Each picture of MJPEG is a keyframe, and a fragment for each would cost more than it saves.
            let cut = descriptions.lead.codec == .mjpeg ? "" : "frag_keyframe+"
            av_dict_set(&settings, "movflags", "\(cut)delay_moov+default_base_moof", 0)
            av_dict_set_int(&settings, "frag_duration", Self.fragmentDuration, 0)
            av_dict_set_int(&settings, "video_track_timescale", ticks, 0)
            av_dict_set_int(
                &settings, "movie_timescale",
                MovieTicks.common(
                    [ticks] + descriptions.audio.map { Int64(TrackDescriptions.ticksPerSecond(of: $0)) }
                        + (descriptions.hasMotion ? [Int64(TrackDescriptions.motionTicks)] : [])), 0)
        }
        tags.set(&settings, container)
        let failed = io == nil ? -ENOMEM : -file.failure
        let begun = failed != 0 ? failed : avformat_write_header(context, &settings)
        guard begun >= 0 else { throw abandon(because: begun) }
    }

    // MARK: Writing

    /// Whether the container can express the unit's time after the last one that was written.
    func reaches(_ unit: RecordedUnit) -> Bool { tracks[0].reaches(pts: unit.pts, dts: unit.dts) }
    func reaches(_ sound: AudioPacket, track index: Int) -> Bool { tracks[index + 1].reaches(sound) }

    /// The same for an access unit of sound.
    func reaches(_ sound: RecordedUnit, track index: Int) -> Bool {
        tracks[index + 1].reaches(pts: sound.pts, dts: sound.dts)
    }

    /// The longest time from one picture to the next.
    var longestGap: MediaTime { tracks[0].longestGap }

    /// Writes one access unit of the track that leads; one of pictures has start codes.
    ///
    /// - Parameters:
    ///   - isHeard: False for packets of sound before the first that is heard, which count as none.
    ///   - delay: Is added to its time in the file.
    /// - Precondition: `reaches(unit)`.
    /// - Throws: ``FrameHostError`` naming the path; the file is then closed, and cut to the part that plays.
    func write(
        _ unit: RecordedUnit, _ bytes: UnsafeRawBufferPointer, isHeard: Bool = true, delay: MediaTime = .zero
    ) throws {
        guard let context, let packet else { return }
        if first == nil { firstDTS = unit.dts }
        tracks[0].setTimes(
            packet, pts: unit.pts + delay, dts: unit.dts + delay, duration: unit.duration, byteCount: bytes.count)
        packet.pointee.flags = unit.isKeyframe ? AV_PKT_FLAG_KEY : 0
        try hand(packet, bytes, to: context)
        // A sound that has not given anything yet holds the header back. After a second the header is written without
        // it.
        if container != .mkv, tracks.count > 1, !file.hasContent,
            unit.dts - firstDTS >= MediaTime(nanoseconds: 1_000_000_000)
        {
            try flushFragment(context)
        }
        try noteSaved()
        guard isHeard else { return }
        frames += 1
        // Nobody hears an encoder's priming, which lies before the origin.
        first = first ?? max(unit.pts, origin)
        span = max(span, unit.pts + unit.duration - first!)
    }

    /// Writes one packet of the sound at `index` of the descriptions.
    ///
    /// - Parameter delay: Is added to its time in the file.
    func write(_ sound: AudioPacket, track index: Int, delay: MediaTime) throws {
        guard let packet else { return }
        try beginSound(index)
        tracks[index + 1].setTimes(packet, sound, delay: delay)
        try sound.bytes.withUnsafeBytes { try handSound(packet, $0) }
    }

    /// Must be called before each packet of the sound at `index`.
    private func beginSound(_ index: Int) throws {
        guard let context, container != .mkv, file.hasContent, !tracks[index + 1].hasBegun else { return }
        // The header was written before this track began, so the track's first fragment says where it belongs.
        av_opt_set(context.pointee.priv_data, "movflags", "+frag_discont", 0)
    }

    private func handSound(_ packet: UnsafeMutablePointer<AVPacket>, _ bytes: UnsafeRawBufferPointer) throws {
        guard let context else { return }
        packet.pointee.flags = AV_PKT_FLAG_KEY
        // Only pictures end fragments: then libavformat knows when the last picture of one ends, and does not guess
        // it from that picture's duration, which is wrong before a pause.
        setFragmentDuration(0, context)
        defer { if let context = self.context { setFragmentDuration(Self.fragmentDuration, context) } }
        try hand(packet, bytes, to: context)
        try noteSaved()
    }

    /// Writes one access unit of the sound at `index` of the descriptions.
    ///
    /// - Parameter delay: Is added to its time in the file.
    func write(_ sound: RecordedUnit, _ bytes: UnsafeRawBufferPointer, track index: Int, delay: MediaTime) throws {
        guard let packet else { return }
        try beginSound(index)
        tracks[index + 1].setTimes(
            packet, pts: sound.pts + delay, dts: sound.dts + delay, duration: sound.duration, byteCount: bytes.count)
        try handSound(packet, bytes)
    }

    // MARK: Motion

    /// Whether the container can express the time of a sample after that of the one before.
    func reaches(motionAt time: MediaTime) -> Bool {
        waiting.map { tracks[tracks.count - 1].reaches(time, after: $0.time) } ?? true
    }

    /// Takes a sample, which is written once the next one says how long it lasts.
    ///
    /// - Precondition: There is a track of motion, and it `reaches` the time.
    func write(_ sample: MotionSample) throws {
        if let waiting {
            period = sample.time - waiting.time
            try write(waiting, until: sample.time)
        }
        waiting = sample
    }

    /// Writes the last sample, which ends no later than the pictures.
    private func writeLastSample() throws {
        guard let sample = waiting else { return }
        waiting = nil
        try write(sample, until: min(sample.time + period, max((first ?? .zero) + span, sample.time)))
    }

    /// Writes the values of a sample, each as a packet.
    private func write(_ sample: MotionSample, until end: MediaTime) throws {
        let index = tracks.count - 1
        var after = sample.contents.rawValue.nonzeroBitCount
        try withUnsafeTemporaryAllocation(byteCount: CAMM.packetBytes, alignment: 8) { bytes in
            for kind in CAMM.Kind.allCases where CAMM.write(kind, of: sample, to: bytes) {
                guard let packet else { return }
                after -= 1
                try beginSound(index - 1)
                tracks[index].setTime(packet, sample.time, until: end, after: after)
                try handSound(packet, UnsafeRawBufferPointer(bytes))
            }
        }
    }

    /// Gives the motion's track its name, once the header is in the file.
    private func nameMotion() throws {
        guard hasMotion, !isMotionNamed, file.hasContent else { return }
        isMotionNamed = true
        do { try MotionTrackName.set(in: file) } catch { throw abandon(because: -error.code) }
    }

    private func hand(
        _ packet: UnsafeMutablePointer<AVPacket>, _ bytes: UnsafeRawBufferPointer,
        to context: UnsafeMutablePointer<AVFormatContext>
    ) throws {
        let fit = tracks[Int(packet.pointee.stream_index)].fit
        if fit.silence.count > 0 {
            let filled = [UInt8](repeating: fit.silence.value, count: fit.silence.count) + bytes
            try filled.withUnsafeBytes { try write(packet, $0, to: context) }
        } else if fit.leftOut == 0 {
            try write(packet, bytes, to: context)
        } else if fit.duration > 0 {
            try write(packet, UnsafeRawBufferPointer(rebasing: bytes.dropFirst(fit.leftOut)), to: context)
        }
    }

    private func write(
        _ packet: UnsafeMutablePointer<AVPacket>, _ bytes: UnsafeRawBufferPointer,
        to context: UnsafeMutablePointer<AVFormatContext>
    ) throws {
        index.add(
            track: Int(packet.pointee.stream_index), pts: packet.pointee.pts, dts: packet.pointee.dts,
            bytes: bytes.count,
            isKey: packet.pointee.flags & AV_PKT_FLAG_KEY != 0)
        // The packet has no reference-counted buffer, so libavformat copies what it keeps.
        packet.pointee.data = UnsafeMutablePointer(mutating: bytes.baseAddress?.assumingMemoryBound(to: UInt8.self))
        packet.pointee.size = Int32(clamping: bytes.count)
        let result = av_write_frame(context, packet)
        packet.pointee.data = nil
        packet.pointee.size = 0
        guard result >= 0 else { throw abandon(because: result) }
    }

    /// The duration of a fragment in microseconds, unless a keyframe ends it earlier.
    private static let fragmentDuration: Int64 = 1_000_000

    /// - Parameter microseconds: 0 so that no duration ends a fragment.
    private func setFragmentDuration(_ microseconds: Int64, _ context: UnsafeMutablePointer<AVFormatContext>) {
        guard container != .mkv else { return }
        av_opt_set_int(context.pointee.priv_data, "frag_duration", microseconds, 0)
    }

    private func flushFragment(_ context: UnsafeMutablePointer<AVFormatContext>) throws {
        // The first call only writes the header.
        for _ in 0..<2 {
            let result = av_write_frame(context, nil)
            guard result >= 0 else { throw abandon(because: result) }
        }
    }

    /// Writes a fragment of all that was handed over.
    func flush() throws {
        guard let context, container != .mkv else { return }
        if !file.hasContent {
            try flushFragment(context)
        } else {
            let result = av_write_frame(context, nil)
            guard result >= 0 else { throw abandon(because: result) }
        }
        try noteSaved()
    }

    /// The file grows when a fragment is complete. It then has everything that was handed over before this frame.
    private func noteSaved() throws {
        guard file.hasContent, file.size > savedBytes else { return }
        try nameMotion()
        savedBytes = file.size
        savedFrames = frames
        savedSpan = span
        guard file.isStillThere else { throw abandon(because: -ENOENT) }
    }

    /// Waits until all fragments are on the disk.
    func sync() throws {
        do { try file.sync() } catch { throw abandon(because: -error.code) }
    }

    // MARK: End

    /// Writes the rest and closes the file.
    ///
    /// - Parameter syncs: Whether to wait until the file is on the disk.
    func finish(syncs: Bool) throws {
        try writeLastSample()
        guard let context else { return }
        let result = av_write_trailer(context)
        guard result >= 0 else { throw abandon(because: result) }
        avio_flush(io)
        guard file.failure == 0 else { throw abandon(because: -file.failure) }
        guard file.isStillThere else { throw abandon(because: -ENOENT) }
        guard !file.wasShortened else { throw abandon(because: -ESTALE) }
        try nameMotion()
        if syncs { try sync() }
        do { try file.finish() } catch { throw abandon(because: -error.code) }
        savedBytes = file.size
        savedFrames = frames
        savedSpan = span
        close()
    }

    /// Closes the file without finishing it: cuts it to the last fragment, or removes it when there is none.
    private func abandon(because code: Int32) -> FrameHostError {
        close()
        let isGone = !file.isStillThere
        // A person has to judge what is left of it, so it stays as it is.
        guard !file.wasShortened else {
            _ = try? file.finish()
            return RecordingFault.shortened(file.path)
        }
        file.cut(to: savedFrames == 0 ? 0 : savedBytes)
        if isGone {
            (savedFrames, savedBytes, savedSpan) = (0, 0, .zero)
            return RecordingFault.removed(file.path)
        }
        let number = file.failure != 0 ? file.failure : fh_averror_errno(code)
        let saved = (savedFrames, savedSpan.seconds)
        return RecordingFault.writing(
            file.path, reason: number != 0 ? String(cString: strerror(number)) : Self.text(code), code: number,
            saved: saved)
    }

    private func close() {
        av_packet_free(&packet)
        avformat_free_context(context)
        context = nil
        OutputFile.freeIO(&io)
    }

    static func text(_ code: Int32) -> String {
        withUnsafeTemporaryAllocation(of: CChar.self, capacity: 256) { buffer in
            av_strerror(code, buffer.baseAddress!, buffer.count)
            return String(cString: buffer.baseAddress!)
        }
    }
}

extension TimeBase {
    init(_ rational: AVRational) { self.init(rational.num, rational.den) }
}
