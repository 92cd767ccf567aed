import CAVFormat
import FrameCore
import Glibc

/// One file being written by libavformat; the only place that calls it.
///
/// MP4 and MOV are written in fragments of at most a second, each complete by itself: whatever ends the program, what was written up to
/// the last fragment plays. The first fragment is awaited before the header is written (`delay_moov`), so that the header's edit list can
/// say how far B-frames and a first PTS other than 0 shift the track: time stamps come back as they were given.
///
/// Used by one thread at a time. Payloads are handed over without a copy; libavformat has used them when `write` returns.
final class MuxerHandle {
    let path: String
    /// Access units handed over.
    private(set) var frames = 0
    /// Of these, those in the file for good.
    private(set) var savedFrames = 0
    private(set) var savedBytes: Int64 = 0
    /// Time from the first frame's PTS to the end of the last one handed over, and of the last one saved.
    private(set) var span = MediaTime.zero
    private(set) var savedSpan = MediaTime.zero

    private var context: UnsafeMutablePointer<AVFormatContext>?
    private var packet: UnsafeMutablePointer<AVPacket>?
    private let stream: UnsafeMutablePointer<AVStream>
    private var timeBase = TimeBase.nanoseconds
    private var first: MediaTime?
    private var lastDTS = Int64.min
    /// Duration for a frame that has none: that of the one before.
    private var lastDuration: Int64 = 0

    /// [stage thread] Creates the file and begins it.
    ///
    /// - Throws: ``FrameHostError`` naming the path. No file is left then that was not there before.
    init(path: String, container: Container, format: EncodedFormat, orientation: Orientation, overwrite: Bool) throws {
        av_log_set_level(AV_LOG_QUIET)
        self.path = path
        guard avformat_alloc_output_context2(&context, nil, container.rawValue, nil) >= 0, let context,
            let stream = avformat_new_stream(context, nil), let packet = av_packet_alloc()
        else {
            avformat_free_context(context)
            throw FrameHostError(.callFailed, what: "this libavformat cannot write \(container.rawValue)")
        }
        self.stream = stream
        self.packet = packet
        let ticks = container.ticksPerSecond(for: format.video.timeBase)
        // Time stamps stay as they are; the muxer would move them so that none is negative.
        context.pointee.avoid_negative_ts = AVFMT_AVOID_NEG_TS_DISABLED
        // What a fragment has is with the kernel as soon as it is complete.
        context.pointee.flags |= AVFMT_FLAG_FLUSH_PACKETS
        try Self.describe(stream, format, orientation, carriesOrientation: container.carriesOrientation)
        stream.pointee.time_base = AVRational(num: 1, den: ticks)
        try Self.create(path, overwrite: overwrite)
        try open(container, ticks)
    }

    deinit { close() }

    /// True until `finish`, `abandon`, or an error.
    var isOpen: Bool { context?.pointee.pb != nil }

    /// Writes one access unit with start codes.
    ///
    /// - Throws: ``FrameHostError`` naming the path; the file is closed then, cut to what plays.
    func write(_ unit: borrowing AccessUnit) throws {
        guard let context, let packet else { return }
        setTimes(unit, packet)
        packet.pointee.flags = unit.isKeyframe ? AV_PKT_FLAG_KEY : 0
        let result = unit.withBytes { bytes in
            // Without a buffer to count references of, libavformat may not keep the bytes, and with one stream it does not need to.
            packet.pointee.data = UnsafeMutablePointer(mutating: bytes.baseAddress?.assumingMemoryBound(to: UInt8.self))
            packet.pointee.size = Int32(bytes.count)
            defer {
                packet.pointee.data = nil
                packet.pointee.size = 0
            }
            return av_write_frame(context, packet)
        }
        guard result >= 0 else { throw abandon(because: result) }
        noteSaved(context)
        frames += 1
        first = first ?? unit.pts
        span = max(span, unit.pts + unit.duration - first!)
    }

    /// Writes what is still to be written and closes the file.
    func finish() throws {
        guard let context, isOpen else { return }
        let result = av_write_trailer(context)
        guard result >= 0 else { throw abandon(because: result) }
        avio_flush(context.pointee.pb)
        savedBytes = avio_size(context.pointee.pb)
        savedFrames = frames
        savedSpan = span
        let closed = avio_closep(&context.pointee.pb)
        guard closed >= 0 else { throw abandon(because: closed) }
        close()
    }

    // MARK: Time

    private func setTimes(_ unit: borrowing AccessUnit, _ packet: UnsafeMutablePointer<AVPacket>) {
        var dts = timeBase.ticks(of: unit.dts)
        // Two decode times can fall on one of a coarser container's ticks; there they follow each other by one.
        if dts <= lastDTS { dts = lastDTS + 1 }
        if lastDTS != .min { lastDuration = dts - lastDTS }
        lastDTS = dts
        packet.pointee.dts = dts
        packet.pointee.pts = max(timeBase.ticks(of: unit.pts), dts)
        packet.pointee.duration = unit.duration > .zero ? timeBase.ticks(of: unit.duration) : lastDuration
    }

    /// The file grows when a fragment is complete; what was handed over before this frame is in it then.
    private func noteSaved(_ context: UnsafeMutablePointer<AVFormatContext>) {
        // avio_tell is an inline function of this.
        let position = avio_seek(context.pointee.pb, 0, SEEK_CUR)
        guard position > savedBytes else { return }
        savedBytes = position
        savedFrames = frames
        savedSpan = span
    }

    // MARK: Begin and end

    /// What the container says of the track: codec, parameter sets, size, colour, sample aspect ratio, orientation.
    private static func describe(
        _ stream: UnsafeMutablePointer<AVStream>, _ format: EncodedFormat, _ orientation: Orientation, carriesOrientation: Bool
    ) throws {
        let parameters = stream.pointee.codecpar!
        let video = format.video
        parameters.pointee.codec_type = AVMEDIA_TYPE_VIDEO
        parameters.pointee.codec_id = AV_CODEC_ID_H264
        parameters.pointee.width = Int32(video.width)
        parameters.pointee.height = Int32(video.height)
        parameters.pointee.format = AV_PIX_FMT_YUV420P.rawValue
        parameters.pointee.video_delay = Int32(format.reorderDepth)
        parameters.pointee.color_range = video.color.range == .full ? AVCOL_RANGE_JPEG : AVCOL_RANGE_MPEG
        parameters.pointee.color_space = AVColorSpace(rawValue: UInt32(video.color.matrix))
        parameters.pointee.color_primaries = AVColorPrimaries(rawValue: UInt32(video.color.primaries))
        parameters.pointee.color_trc = AVColorTransferCharacteristic(rawValue: UInt32(video.color.transfer))
        parameters.pointee.chroma_location = AVChromaLocation(rawValue: UInt32(video.color.chromaSiting))
        if !video.sampleAspectRatio.isZero {
            let aspect = AVRational(num: video.sampleAspectRatio.numerator, den: video.sampleAspectRatio.denominator)
            parameters.pointee.sample_aspect_ratio = aspect
            stream.pointee.sample_aspect_ratio = aspect
        }
        if !video.frameRate.isZero {
            stream.pointee.avg_frame_rate = AVRational(num: video.frameRate.numerator, den: video.frameRate.denominator)
        }
        // Given with start codes; the muxer makes the container's own form of it, and of each access unit (ISO/IEC 14496-15).
        let sets = format.parameterSets
        parameters.pointee.extradata = av_mallocz(sets.count + Int(AV_INPUT_BUFFER_PADDING_SIZE))?.assumingMemoryBound(to: UInt8.self)
        guard let extradata = parameters.pointee.extradata else { throw FrameHostError(.exhausted, what: "no memory for a muxer") }
        extradata.update(from: sets, count: sets.count)
        parameters.pointee.extradata_size = Int32(sets.count)
        guard orientation != .up, carriesOrientation else { return }
        let aspect = video.sampleAspectRatio.isZero ? 1 : video.sampleAspectRatio.value
        let matrix = orientation.displayMatrix(width: Int((Double(video.width) * aspect).rounded()), height: video.height)
        guard let data = av_stream_new_side_data(stream, AV_PKT_DATA_DISPLAYMATRIX, 4 * matrix.count) else {
            throw FrameHostError(.exhausted, what: "no memory for a muxer")
        }
        matrix.withUnsafeBytes { UnsafeMutableRawPointer(data).copyMemory(from: $0.baseAddress!, byteCount: $0.count) }
    }

    /// Makes the empty file. A file that is replaced is unlinked, not emptied: whoever reads it (this chain's source, perhaps) keeps it.
    private static func create(_ path: String, overwrite: Bool) throws {
        var status = stat()
        if overwrite, lstat(path, &status) == 0 {
            // A device or pipe is written to as it is; a link's file is emptied.
            guard status.st_mode & S_IFMT == S_IFREG else { return }
            guard unlink(path) == 0 else { throw RecordingFault.unwritable(path, errno) }
        }
        let file = Glibc.open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o666)
        guard file >= 0 else { throw errno == EEXIST ? RecordingFault.exists(path) : RecordingFault.unwritable(path, errno) }
        Glibc.close(file)
    }

    private func open(_ container: Container, _ ticks: Int32) throws {
        let result = avio_open(&context!.pointee.pb, "file:" + path, AVIO_FLAG_WRITE)
        guard result >= 0 else { throw abandon(because: result) }
        var settings: OpaquePointer?
        defer { av_dict_free(&settings) }
        if container == .mkv {
            av_dict_set(&settings, "cluster_time_limit", "1000", 0)
        } else {
            av_dict_set(&settings, "movflags", "frag_keyframe+delay_moov+default_base_moof", 0)
            av_dict_set(&settings, "frag_duration", "1000000", 0)
            av_dict_set_int(&settings, "video_track_timescale", Int64(ticks), 0)
            // Edit lists count in the movie's ticks; with the track's they are exact.
            av_dict_set_int(&settings, "movie_timescale", Int64(ticks), 0)
        }
        let begun = avformat_write_header(context, &settings)
        guard begun >= 0 else { throw abandon(because: begun) }
        timeBase = TimeBase(stream.pointee.time_base.num, stream.pointee.time_base.den)
    }

    /// Closes the file without finishing it: cut to the last fragment, or removed when there is none.
    private func abandon(because code: Int32) -> FrameHostError {
        if isOpen { avio_closep(&context!.pointee.pb) }
        close()
        var status = stat()
        if lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG {
            if savedFrames == 0 { unlink(path) } else { truncate(path, Int(savedBytes)) }
        }
        return RecordingFault.writing(
            path, reason: Self.text(code), isFull: fh_averror_errno(code) == ENOSPC || fh_averror_errno(code) == EDQUOT,
            saved: (savedFrames, savedSpan.seconds))
    }

    private func close() {
        if isOpen { avio_closep(&context!.pointee.pb) }
        av_packet_free(&packet)
        avformat_free_context(context)
        context = nil
    }

    private static func text(_ code: Int32) -> String {
        withUnsafeTemporaryAllocation(of: CChar.self, capacity: 256) { buffer in
            av_strerror(code, buffer.baseAddress!, buffer.count)
            return String(cString: buffer.baseAddress!)
        }
    }
}
