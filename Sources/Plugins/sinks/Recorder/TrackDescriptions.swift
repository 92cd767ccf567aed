// SPDX-License-Identifier: Apache-2.0

import CAVFormat
import FrameCore
import Shared

/// The tracks of a container: one that leads, of pictures or of sound, any number of sounds beside it, and one of motion
/// where there is any.
struct TrackDescriptions {
    var lead: EncodedFormat
    /// The format of the pictures that were encoded as ``lead``; nil where a sound leads.
    var pictures: VideoFormat?
    /// Written as the track's matrix where the container has one.
    var orientation: Orientation
    /// The sounds beside the track that leads.
    var audio: [AudioTrackFormat]
    /// Whether a track of motion follows.
    var hasMotion = false
    /// Whether tracks say which language is spoken.
    var keepsLanguages = true
    /// What the tracks say about themselves.
    var pictureTags = MediaTags.Track()
    var soundTags: [MediaTags.Track] = []

    var count: Int { 1 + audio.count + (hasMotion ? 1 : 0) }

    /// Bytes of the data that decoders need first, for all tracks.
    var extradataBytes: Int {
        audio.reduce(lead.parameterSets.count + (lead.audio?.extradata.count ?? 0)) { $0 + $1.extradata.count }
    }

    /// Ticks per second of the track that leads.
    func leadTicks(in container: Container) -> Int32 {
        if let pictures { return container.ticksPerSecond(for: pictures.timeBase) }
        return Int32(clamping: lead.audio.map(Self.ticksPerSecond) ?? 1000)
    }

    private func named(_ sound: AudioTrackFormat) -> AudioTrackFormat {
        var sound = sound
        if !keepsLanguages { sound.language = "" }
        return sound
    }

    /// Adds a stream for each track, in order.
    func addStreams(to context: UnsafeMutablePointer<AVFormatContext>, _ container: Container) throws
        -> [UnsafeMutablePointer<AVStream>]
    {
        let first = try Self.newStream(context)
        if let pictures {
            try describe(first, pictures, in: container)
            first.pointee.time_base = AVRational(num: 1, den: leadTicks(in: container))
        } else if let sound = lead.audio {
            try Self.describe(first, named(sound))
        }
        pictureTags.set(on: first, in: container)
        return try [first]
            + audio.map(named).enumerated().map { index, format in
                let stream = try Self.newStream(context)
                try Self.describe(stream, format)
                if container == .mov, !format.language.isEmpty {
                    av_dict_set(&stream.pointee.metadata, "language", Language.bibliographic(format.language), 0)
                }
                if soundTags.indices.contains(index) { soundTags[index].set(on: stream, in: container) }
                return stream
            }
            + (hasMotion ? [Self.describeMotion(Self.newStream(context))] : [])
    }

    private static let noMemory = FrameHostError(
        .exhausted, what: "there is not enough memory for the writer of the file",
        remedy: "Free some memory, and start the chain again.")

    private static func newStream(_ context: UnsafeMutablePointer<AVFormatContext>) throws -> UnsafeMutablePointer<
        AVStream
    > {
        guard let stream = avformat_new_stream(context, nil) else { throw noMemory }
        return stream
    }

    private static func setExtradata(_ parameters: UnsafeMutablePointer<AVCodecParameters>, _ bytes: [UInt8]) throws {
        guard !bytes.isEmpty else { return }
        parameters.pointee.extradata = av_mallocz(bytes.count + Int(AV_INPUT_BUFFER_PADDING_SIZE))?.assumingMemoryBound(
            to: UInt8.self)
        guard let extradata = parameters.pointee.extradata else { throw noMemory }
        extradata.update(from: bytes, count: bytes.count)
        parameters.pointee.extradata_size = Int32(bytes.count)
    }

    // MARK: Pictures

    private func describe(
        _ stream: UnsafeMutablePointer<AVStream>, _ picture: VideoFormat, in container: Container
    ) throws {
        let parameters = stream.pointee.codecpar!
        parameters.pointee.codec_type = AVMEDIA_TYPE_VIDEO
        parameters.pointee.codec_id = Self.pictureCodecID(lead.codec)
        // The form that players of phones and browsers take: parameter sets beside the samples (ISO/IEC 14496-15, 8.4.1).
        if lead.codec == .h265, container != .mkv { parameters.pointee.codec_tag = 0x3163_7668 }
        parameters.pointee.width = Int32(picture.width)
        parameters.pointee.height = Int32(picture.height)
        parameters.pointee.format = AV_PIX_FMT_YUV420P.rawValue
        parameters.pointee.video_delay = Int32(lead.reorderDepth)
        parameters.pointee.color_range = picture.color.range == .full ? AVCOL_RANGE_JPEG : AVCOL_RANGE_MPEG
        parameters.pointee.color_space = AVColorSpace(rawValue: UInt32(picture.color.matrix))
        parameters.pointee.color_primaries = AVColorPrimaries(rawValue: UInt32(picture.color.primaries))
        parameters.pointee.color_trc = AVColorTransferCharacteristic(rawValue: UInt32(picture.color.transfer))
        parameters.pointee.chroma_location = AVChromaLocation(rawValue: UInt32(picture.color.chromaSiting))
        if !picture.sampleAspectRatio.isZero {
            let aspect = AVRational(
                num: picture.sampleAspectRatio.numerator, den: picture.sampleAspectRatio.denominator)
            parameters.pointee.sample_aspect_ratio = aspect
            stream.pointee.sample_aspect_ratio = aspect
        }
        if !picture.frameRate.isZero {
            stream.pointee.avg_frame_rate = AVRational(
                num: picture.frameRate.numerator, den: picture.frameRate.denominator)
        }
        // Given with start codes, of AV1 as an open bitstream unit. The muxer converts it, and each access unit, into the
        // container's own form (ISO/IEC 14496-15).
        try Self.setExtradata(parameters, lead.parameterSets)
        // They speak of PQ and HLG; a stage before may have made something else of the pictures.
        if let hdr = pictureTags.hdr, picture.color.isHDR {
            var hdr = fh_av_hdr(hdr)
            guard fh_av_set_stream_hdr(stream, &hdr) >= 0 else { throw Self.noMemory }
        }
        guard orientation != .up, container.carriesOrientation else { return }
        let aspect = picture.sampleAspectRatio.isZero ? 1 : picture.sampleAspectRatio.value
        // The offsets are 16.16 fixed point, which excludes longer sides. No player shows those.
        let width = min((Double(picture.width) * aspect).rounded(), 32767)
        let matrix = orientation.displayMatrix(width: Int(width), height: min(picture.height, 32767))
        guard let data = av_stream_new_side_data(stream, AV_PKT_DATA_DISPLAYMATRIX, 4 * matrix.count) else {
            throw Self.noMemory
        }
        matrix.withUnsafeBytes { UnsafeMutableRawPointer(data).copyMemory(from: $0.baseAddress!, byteCount: $0.count) }
    }

    private static func pictureCodecID(_ codec: Codec) -> AVCodecID {
        switch codec {
        case .h265: AV_CODEC_ID_HEVC
        case .mjpeg: AV_CODEC_ID_MJPEG
        case .av1: AV_CODEC_ID_AV1
        default: AV_CODEC_ID_H264
        }
    }

    // MARK: Motion

    /// Ticks of the motion's track per second: with fewer, the values of one sample would be further apart.
    static let motionTicks: Int32 = 1_000_000

    private static func describeMotion(_ stream: UnsafeMutablePointer<AVStream>) -> UnsafeMutablePointer<AVStream> {
        nameMotion(stream.pointee.codecpar)
        stream.pointee.time_base = AVRational(num: 1, den: motionTicks)
        av_dict_set(&stream.pointee.metadata, "handler_name", MotionTrackName.handler, 0)
        return stream
    }

    /// Gives a data track the name under which libavformat writes it.
    static func nameMotion(_ parameters: UnsafeMutablePointer<AVCodecParameters>) {
        parameters.pointee.codec_type = AVMEDIA_TYPE_DATA
        parameters.pointee.codec_id = AV_CODEC_ID_BIN_DATA
        parameters.pointee.codec_tag = MotionTrackName.tag(MotionTrackName.written)
    }

    // MARK: Sound

    /// libavcodec's id of a codec, by its name; nil for an unknown name.
    static func codecID(_ codec: Codec) -> AVCodecID? { avcodec_descriptor_get_by_name(codec.rawValue)?.pointee.id }

    /// Why files of this kind cannot hold the packets of a track as they are; nil when they can.
    static func obstacle(to format: AudioTrackFormat, in container: Container) -> String? {
        guard (1...Int(Int32.max)).contains(format.sampleRate), format.channelCount > 0 else {
            return
                "the sound must have a sample rate and at least 1 channel, but declares \(format.sampleRate) Hz and \(format.channelCount) \(format.channelCount == 1 ? "channel" : "channels")"
        }
        let unfit = "\(container.name) cannot store sound with the codec '\(format.codec)'"
        guard let id = codecID(format.codec), let kind = av_guess_format(container.rawValue, nil, nil) else {
            return unfit
        }
        guard avformat_query_codec(kind, id, compliance) == 1 else { return unfit }
        guard format.blockAlign > 0 || !countsInBlocks.contains(id) else {
            return "the sound (\(format.codec)) does not say how large its blocks are, so nobody could play a copy"
        }
        guard container != .mkv else { return takesHeader(kind, format) ? nil : unfit }
        // libavformat's movenc.c, mov_init: these are only for MP4.
        if container == .mov, [AV_CODEC_ID_OPUS, AV_CODEC_ID_FLAC, AV_CODEC_ID_TRUEHD].contains(id) { return unfit }
        // Each packet of a transport stream begins with its own header (ADTS, ISO/IEC 13818-7 6.2). MP4 has it in one
        // place instead.
        if id == AV_CODEC_ID_AAC, format.extradata.isEmpty {
            return
                "AAC with ADTS headers, as in transport streams, cannot be stored unchanged in \(container.name)"
        }
        return takesHeader(kind, format) ? nil : unfit
    }

    /// Codecs whose decoders must know the size of a block. NUT, for one, does not carry it.
    private static let countsInBlocks = [
        AV_CODEC_ID_ADPCM_IMA_WAV, AV_CODEC_ID_ADPCM_MS, AV_CODEC_ID_WMAV1, AV_CODEC_ID_WMAV2, AV_CODEC_ID_WMAPRO,
        AV_CODEC_ID_WMALOSSLESS, AV_CODEC_ID_COOK, AV_CODEC_ID_SIPR, AV_CODEC_ID_ATRAC3, AV_CODEC_ID_ATRAC3P,
    ]

    /// Whether the muxer can describe a track: some only find out when they write the header (`avformat_write_header`).
    private static func takesHeader(_ kind: UnsafePointer<AVOutputFormat>, _ format: AudioTrackFormat) -> Bool {
        var context: UnsafeMutablePointer<AVFormatContext>?
        guard avformat_alloc_output_context2(&context, kind, nil, nil) >= 0, let context else { return true }
        defer { avformat_free_context(context) }
        guard let stream = avformat_new_stream(context, nil), (try? describe(stream, format)) != nil,
            avio_open_dyn_buf(&context.pointee.pb) >= 0
        else { return true }
        context.pointee.strict_std_compliance = compliance
        let written = avformat_write_header(context, nil)
        if written >= 0 { av_write_trailer(context) }
        var bytes: UnsafeMutablePointer<UInt8>?
        avio_close_dyn_buf(context.pointee.pb, &bytes)
        av_free(bytes)
        return written >= 0
    }

    /// libavformat calls FLAC in MP4 experimental, but all present readers can read it.
    static let compliance = FF_COMPLIANCE_EXPERIMENTAL

    /// Ticks per second of a track of sound: its samples. Those of Opus are always 48,000 per second (RFC 7845, 4 and 5.1),
    /// whatever was encoded; readers say so, and a copy gets these ticks.
    static func ticksPerSecond(of format: AudioTrackFormat) -> Int {
        format.codec == .opus ? 48_000 : format.sampleRate
    }

    private static func describe(_ stream: UnsafeMutablePointer<AVStream>, _ format: AudioTrackFormat) throws {
        let parameters = stream.pointee.codecpar!
        let ticks = ticksPerSecond(of: format)
        func inTicks(_ samples: Int) -> Int32 {
            Int32(clamping: Int(Int32(clamping: samples)) * ticks / max(format.sampleRate, 1))
        }
        parameters.pointee.codec_type = AVMEDIA_TYPE_AUDIO
        parameters.pointee.codec_id = codecID(format.codec) ?? AV_CODEC_ID_NONE
        parameters.pointee.sample_rate = Int32(clamping: ticks)
        if format.channelMask != 0 {
            av_channel_layout_from_mask(&parameters.pointee.ch_layout, format.channelMask)
        } else {
            av_channel_layout_default(&parameters.pointee.ch_layout, Int32(clamping: format.channelCount))
        }
        parameters.pointee.frame_size = inTicks(format.samplesPerPacket)
        parameters.pointee.bit_rate = Int64(format.bitRate)
        parameters.pointee.block_align = Int32(clamping: format.blockAlign)
        parameters.pointee.bits_per_coded_sample = Int32(clamping: format.bitsPerSample)
        parameters.pointee.profile = Int32(clamping: format.profile ?? Int(FF_PROFILE_UNKNOWN))
        parameters.pointee.initial_padding = inTicks(format.initialPadding)
        parameters.pointee.seek_preroll = inTicks(format.seekPreroll)
        try setExtradata(parameters, format.extradata)
        stream.pointee.time_base = AVRational(num: 1, den: Int32(clamping: ticks))
        if !format.language.isEmpty { av_dict_set(&stream.pointee.metadata, "language", format.language, 0) }
    }
}

extension fh_av_hdr {
    init(_ hdr: HDRMetadata) {
        self.init()
        if let display = hdr.masteringDisplay {
            has_display = 1
            (red_x, red_y, green_x, green_y) = (display.red.x, display.red.y, display.green.x, display.green.y)
            (blue_x, blue_y, white_x, white_y) = (display.blue.x, display.blue.y, display.white.x, display.white.y)
            (maximum, minimum) = (display.maximum, display.minimum)
        }
        if let light = hdr.contentLight {
            has_light = 1
            (light_maximum, light_average) = (light.maximum, light.average)
        }
    }
}
