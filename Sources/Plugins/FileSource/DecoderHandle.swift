import CAVFormat
import CSWScale
import FrameCore

/// A track of a file that is not played.
struct OtherTrack: Equatable {
    /// `audio`, `subtitle`, `video`, `data`.
    var kind: String
    /// Counted from 1 among its kind.
    var number: Int
    var codec: String
}

/// One open file and its video track; the only place that calls libavformat and libavcodec.
///
/// Used by one thread at a time. `step()` leaves the newest picture in the handle's one `AVFrame`, where it is valid until the next step.
final class DecoderHandle {
    enum Step {
        /// A picture is there: see the properties below and `copyPicture(to:)`.
        case picture
        /// Not yet; step again.
        case again
        case ended
    }

    let path: String
    let format: VideoFormat
    let conversion: PixelConversion
    let otherTracks: [OtherTrack]
    /// Where the track begins, in ticks.
    let origin: Int64
    /// Pictures by the file's index; nil where it has none.
    let indexedPictures: Int?
    /// Of the track, or else of the file; nil when unknown.
    let duration: MediaTime?
    /// True where the file's matrix turns by something else than quarters.
    let hasOddRotation: Bool

    /// Packets and pictures that were damaged.
    private(set) var damaged = 0
    /// Packets of the track that were read.
    private(set) var packetsRead = 0
    /// Why reading ended early, empty when it did not.
    private(set) var readFault = ""

    private var container: UnsafeMutablePointer<AVFormatContext>?
    private var decoder: UnsafeMutablePointer<AVCodecContext>?
    private var packet: UnsafeMutablePointer<AVPacket>?
    private var picture: UnsafeMutablePointer<AVFrame>?
    private var scaler: OpaquePointer?
    private let stream: UnsafeMutablePointer<AVStream>
    private let codec: UnsafePointer<AVCodec>
    private var isFlushing = false
    private var failuresInARow = 0
    /// A decoder that fails this often in a row while it is flushed will not end by itself.
    private static let mostFailuresInARow = 1000

    /// [control thread] Opens the file and finds out what is in it; decodes nothing beyond what that takes.
    ///
    /// - Throws: ``FrameHostError`` `.invalidMedia`, `.unavailable`.
    init(path: String) throws {
        fh_av_log_begin()
        var container: UnsafeMutablePointer<AVFormatContext>?
        let opened = Self.open(path, &container)
        let cause = Self.endLog()
        guard opened >= 0, let container else { throw Self.fault(opened, path, cause) }
        do {
            (stream, codec) = try Self.firstGoodTrack(container, path)
            otherTracks = Self.otherTracks(container, but: stream)
            let parameters = stream.pointee.codecpar.pointee
            conversion = PixelConversion(AVPixelFormat(rawValue: parameters.format))
            guard parameters.width > 0, parameters.height > 0, parameters.format >= 0 else { throw FileFault.noPicture(path, cause: cause) }
            (format, hasOddRotation) = Self.format(container, stream, conversion)
        } catch {
            var closing: UnsafeMutablePointer<AVFormatContext>? = container
            avformat_close_input(&closing)
            throw error
        }
        for index in 0..<Int(container.pointee.nb_streams) where container.pointee.streams[index] != stream {
            container.pointee.streams[index]!.pointee.discard = AVDISCARD_ALL
        }
        self.path = path
        self.container = container
        origin = stream.pointee.start_time == fh_av_no_pts ? 0 : stream.pointee.start_time
        indexedPictures = stream.pointee.nb_frames > 0 ? Int(stream.pointee.nb_frames) : nil
        duration =
            if stream.pointee.duration != fh_av_no_pts, stream.pointee.duration > 0 {
                format.timeBase.time(ofTicks: stream.pointee.duration)
            } else if container.pointee.duration != fh_av_no_pts, container.pointee.duration > 0 {
                TimeBase(1, AV_TIME_BASE).time(ofTicks: container.pointee.duration)
            } else { nil }
    }

    deinit {
        sws_freeContext(scaler)
        av_frame_free(&picture)
        av_packet_free(&packet)
        avcodec_free_context(&decoder)
        avformat_close_input(&container)
    }

    /// [control thread] Opens the decoder, with threads as many as suit the machine.
    func start() throws {
        decoder = avcodec_alloc_context3(codec)
        packet = av_packet_alloc()
        picture = av_frame_alloc()
        guard let decoder, packet != nil, picture != nil else { throw FrameHostError(.exhausted, what: "no memory for a decoder") }
        avcodec_parameters_to_context(decoder, stream.pointee.codecpar)
        decoder.pointee.pkt_timebase = stream.pointee.time_base
        decoder.pointee.thread_count = 0
        fh_av_log_begin()
        let result = avcodec_open2(decoder, codec, nil)
        let cause = Self.endLog()
        guard result >= 0 else {
            throw FrameHostError(
                .callFailed, what: "the decoder for '\(path)' (\(String(cString: codec.pointee.name))) does not open: \(Self.text(result))",
                cause: cause)
        }
        guard conversion.isConverted else { return }
        scaler = conversion.makeScaler(width: format.width, height: format.height, color: format.color)
        guard scaler != nil else {
            throw FrameHostError(
                .invalidMedia, what: "the pictures of '\(path)' are \(conversion.name), which libswscale cannot convert",
                remedy: "Convert the file to H.264 first.")
        }
    }

    // MARK: Pictures

    /// [stage thread] Takes the next picture from the decoder, or hands it the next packet.
    ///
    /// Damage is counted and passed over.
    func step() -> Step {
        let result = avcodec_receive_frame(decoder, picture)
        if result == 0 {
            failuresInARow = 0
            if picture!.pointee.flags & AV_FRAME_FLAG_CORRUPT != 0 || picture!.pointee.decode_error_flags != 0 { damaged += 1 }
            return .picture
        }
        if result == fh_averror_eof { return .ended }
        if result == fh_averror_again {
            feed()
            return .again
        }
        damaged += 1
        failuresInARow += 1
        return isFlushing && failuresInARow > Self.mostFailuresInARow ? .ended : .again
    }

    private func feed() {
        let result = av_read_frame(container, packet)
        if result == fh_averror_again { return }
        guard result >= 0 else {
            if result != fh_averror_eof { readFault = Self.text(result) }
            isFlushing = true
            avcodec_send_packet(decoder, nil)
            return
        }
        defer { av_packet_unref(packet) }
        guard packet!.pointee.stream_index == stream.pointee.index else { return }
        packetsRead += 1
        if avcodec_send_packet(decoder, packet) < 0 { damaged += 1 }
    }

    /// Ticks at which the picture is to be shown, nil where the file does not say.
    var tick: Int64? {
        let tick = picture!.pointee.best_effort_timestamp
        return tick == fh_av_no_pts ? nil : tick
    }

    /// Ticks for which it is to be shown, 0 when unknown.
    var durationTicks: Int64 { max(picture!.pointee.pkt_duration, 0) }

    var isInterlaced: Bool { picture!.pointee.interlaced_frame != 0 }

    /// What the picture is when it is not what the chain was made for; nil when it fits.
    var deviation: String? {
        let picture = picture!.pointee
        guard Int(picture.width) != format.width || Int(picture.height) != format.height || picture.format != conversion.source.rawValue
        else { return nil }
        let found = PixelConversion(AVPixelFormat(rawValue: picture.format))
        return "\(found.name) \(picture.width)x\(picture.height)"
    }

    /// The picture's one copy: from the decoder's buffer, which may still be a reference of pictures to come, into the chain's.
    func copyPicture(to frame: inout Frame) throws {
        guard let scaler else {
            for index in 0..<frame.planeCount {
                frame.withMutablePlane(index) {
                    fh_av_copy_plane(picture, Int32(index), $0.baseAddress, $0.strideBytes, $0.rowBytes, Int32($0.height))
                }
            }
            return
        }
        // Planes of a frame are lent one at a time; they stay where they are as long as this function has the frame.
        let y = frame.withMutablePlane(0) { $0 }
        let u = frame.withMutablePlane(1) { $0 }
        let v = frame.withMutablePlane(2) { $0 }
        let rows = fh_sws_to_i420(
            scaler, picture, y.baseAddress, Int32(y.strideBytes), u.baseAddress, Int32(u.strideBytes), v.baseAddress, Int32(v.strideBytes))
        guard rows >= 0 else { throw FrameHostError(.callFailed, what: "converting a picture failed: \(Self.text(rows))") }
    }

    // MARK: Moving

    /// Goes to the last keyframe at or before `tick`, and begins anew there.
    func seek(to tick: Int64) throws {
        let result = avformat_seek_file(container, stream.pointee.index, .min, tick, tick, 0)
        guard result >= 0 else {
            throw FrameHostError(
                .invalidMedia, what: "'\(path)' cannot be entered at another place than its begin: \(Self.text(result))",
                remedy: "Leave out 'start' and 'loop', or put the file into another container, such as MKV.")
        }
        if decoder != nil { avcodec_flush_buffers(decoder) }
        isFlushing = false
        failuresInARow = 0
    }
}
