import CAVFormat
import FrameCore

extension DecoderHandle {
    /// libav's words for one of its error codes.
    static func text(_ code: Int32) -> String {
        withUnsafeTemporaryAllocation(of: CChar.self, capacity: 256) { buffer in
            av_strerror(code, buffer.baseAddress!, buffer.count)
            return String(cString: buffer.baseAddress!)
        }
    }

    /// Ends what `fh_av_log_begin` began; the last line libav had to say.
    static func endLog() -> String {
        withUnsafeTemporaryAllocation(of: CChar.self, capacity: 512) { buffer in
            fh_av_log_end(buffer.baseAddress!, buffer.count)
            return String(cString: buffer.baseAddress!)
        }
    }

    /// Opens a local file, never another protocol: names with colons are names, and a playlist cannot reach the network.
    static func open(_ path: String, _ container: inout UnsafeMutablePointer<AVFormatContext>?) -> Int32 {
        var settings: OpaquePointer?
        defer { av_dict_free(&settings) }
        av_dict_set(&settings, "protocol_whitelist", "file", 0)
        let opened = avformat_open_input(&container, "file:" + path, nil, &settings)
        guard opened >= 0 else { return opened }
        let found = avformat_find_stream_info(container, nil)
        if found < 0 { avformat_close_input(&container) }
        return found
    }

    static func fault(_ code: Int32, _ path: String, _ cause: String) -> FrameHostError {
        let errno = code == fh_averror_invalid_data ? 0 : fh_averror_errno(code)
        return errno == 0 ? FileFault.notMedia(path, cause: cause) : FileFault.unreadable(path, errno)
    }

    /// The first video track that is no cover picture and that can be decoded.
    static func firstGoodTrack(_ container: UnsafeMutablePointer<AVFormatContext>, _ path: String) throws -> (
        UnsafeMutablePointer<AVStream>, UnsafePointer<AVCodec>
    ) {
        var undecodable: String?
        for index in 0..<Int(container.pointee.nb_streams) {
            guard let stream = container.pointee.streams[index], isVideo(stream) else { continue }
            let codec = stream.pointee.codecpar.pointee.codec_id
            if let decoder = avcodec_find_decoder(codec) { return (stream, decoder) }
            undecodable = undecodable ?? String(cString: avcodec_get_name(codec))
        }
        if let undecodable { throw FileFault.noDecoder(path, codec: undecodable) }
        throw FileFault.noVideo(path, tracks: otherTracks(container, but: nil).map { "\($0.kind) (\($0.codec))" })
    }

    private static func isVideo(_ stream: UnsafeMutablePointer<AVStream>) -> Bool {
        stream.pointee.codecpar.pointee.codec_type == AVMEDIA_TYPE_VIDEO && stream.pointee.disposition & AV_DISPOSITION_ATTACHED_PIC == 0
    }

    static func otherTracks(_ container: UnsafeMutablePointer<AVFormatContext>, but chosen: UnsafeMutablePointer<AVStream>?) -> [OtherTrack]
    {
        var counts: [String: Int] = [:]
        var tracks: [OtherTrack] = []
        for index in 0..<Int(container.pointee.nb_streams) {
            guard let stream = container.pointee.streams[index] else { continue }
            let parameters = stream.pointee.codecpar.pointee
            guard parameters.codec_type != AVMEDIA_TYPE_ATTACHMENT else { continue }
            let isCover = parameters.codec_type == AVMEDIA_TYPE_VIDEO && !isVideo(stream)
            let kind = isCover ? "cover picture" : av_get_media_type_string(parameters.codec_type).map { String(cString: $0) } ?? "unknown"
            counts[kind, default: 0] += 1
            guard stream != chosen else { continue }
            tracks.append(OtherTrack(kind: kind, number: counts[kind]!, codec: String(cString: avcodec_get_name(parameters.codec_id))))
        }
        return tracks
    }

    /// The format of the frames to come, and whether the display matrix could not be carried as it is.
    static func format(
        _ container: UnsafeMutablePointer<AVFormatContext>, _ stream: UnsafeMutablePointer<AVStream>, _ conversion: PixelConversion
    ) -> (VideoFormat, hasOddRotation: Bool) {
        let parameters = stream.pointee.codecpar.pointee
        let aspect = av_guess_sample_aspect_ratio(container, stream, nil)
        let (orientation, isExact) = orientation(stream)
        let format = VideoFormat(
            conversion.target, width: Int(parameters.width), height: Int(parameters.height), frameRate: constantRate(stream),
            timeBase: timeBase(stream), color: conversion.color(color(parameters)),
            sampleAspectRatio: aspect.num > 0 && aspect.den > 0 ? Rational(aspect.num, aspect.den) : Rational(0), orientation: orientation)
        return (format, !isExact)
    }

    private static func timeBase(_ stream: UnsafeMutablePointer<AVStream>) -> TimeBase {
        let base = stream.pointee.time_base
        return base.num > 0 && base.den > 0 ? TimeBase(base.num, base.den) : TimeBase(1, AV_TIME_BASE)
    }

    /// The frame rate where it is constant: then libavformat's lowest rate in which all time stamps fit agrees with the average, apart from
    /// the rounding of time stamps and of the file's length.
    private static func constantRate(_ stream: UnsafeMutablePointer<AVStream>) -> Rational {
        let (average, base) = (stream.pointee.avg_frame_rate, stream.pointee.r_frame_rate)
        guard average.num > 0, average.den > 0, base.num > 0, base.den > 0 else { return Rational(0) }
        let difference = (av_q2d(average) / av_q2d(base) - 1).magnitude
        return difference < 0.005 ? Rational(base.num, base.den) : Rational(0)
    }

    /// libav's numbers are those of ISO/IEC 23091-2, as ours.
    private static func color(_ parameters: AVCodecParameters) -> ColorDescription {
        func code(_ value: UInt32) -> UInt8 { value == 0 || value > 255 ? 2 : UInt8(value) }
        return ColorDescription(
            range: parameters.color_range == AVCOL_RANGE_JPEG ? .full : .video, matrix: code(parameters.color_space.rawValue),
            primaries: code(parameters.color_primaries.rawValue), transfer: code(parameters.color_trc.rawValue),
            chromaSiting: UInt8(clamping: parameters.chroma_location.rawValue))
    }

    private static func orientation(_ stream: UnsafeMutablePointer<AVStream>) -> (Orientation, isExact: Bool) {
        var size = 0
        guard let data = av_stream_get_side_data(stream, AV_PKT_DATA_DISPLAYMATRIX, &size), size >= 36 else { return (.up, true) }
        let matrix = (0..<9).map { UnsafeRawPointer(data).loadUnaligned(fromByteOffset: 4 * $0, as: Int32.self) }
        return Orientation.fromDisplayMatrix(matrix) ?? (.up, false)
    }
}
