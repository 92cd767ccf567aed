// SPDX-License-Identifier: Apache-2.0

import CAudio
import FrameCore

/// One packet as libavcodec gave it.
struct SoundPacket {
    /// Valid until the next call to the encoder.
    var bytes: UnsafeRawBufferPointer
    /// The number of its first sample, counted from the first that came in; negative while the encoder is primed.
    var number: Int64
    /// How many samples it stands for: fewer than a frame at the end.
    var count: Int64
}

/// One open encoder of libavcodec and the frame that is being filled; the only place of this plugin that calls
/// libavcodec.
///
/// Used by one thread at a time. Samples are copied once, into the frame; its memory is made when it is opened.
final class AudioEncoderHandle {
    /// The loudest sample that reaches a codec, +36 dBFS. A float beyond it is not sound, and becomes 0.
    private static let loudest: Float = 64

    /// Samples of each channel in a packet.
    let frameSamples: Int
    /// Samples at the start that a decoder throws away.
    let initialPadding: Int
    /// AudioSpecificConfig or OpusHead.
    let extradata: [UInt8]
    /// One bit per loudspeaker position.
    let channelMask: UInt64
    /// The codec's own number of its profile; nil where it has none.
    let profile: Int?
    /// Samples of each channel in the frame that is being filled.
    private(set) var filled = 0
    /// Samples of each channel that were handed to the encoder.
    private(set) var sent: Int64 = 0

    private static let freeMemory = "Free some memory, and start the chain again."

    private let context: UnsafeMutablePointer<AVCodecContext>
    private let frame: UnsafeMutablePointer<AVFrame>
    private let packet: UnsafeMutablePointer<AVPacket>
    private let channelCount: Int
    private let isPlanar: Bool
    private let title: String

    /// [control thread] Opens the encoder (`avcodec_open2`).
    ///
    /// - Throws: ``FrameHostError`` with libav's message.
    init(_ codec: SoundCodec, _ format: AudioFormat, bitrateKbps: Int) throws {
        // What libav prints goes to standard error, where only the program's own lines belong.
        av_log_set_level(AV_LOG_QUIET)
        guard let encoder = avcodec_find_encoder_by_name(codec.encoderName) else {
            throw FrameHostError(
                .unavailable, what: "this libavcodec has no encoder '\(codec.encoderName)'",
                remedy: "Install an FFmpeg that has it, or use another 'codec'.", option: "codec")
        }
        isPlanar = codec == .aac
        title = codec.title
        channelCount = format.channelCount
        var opened: UnsafeMutablePointer<AVCodecContext>? = avcodec_alloc_context3(encoder)
        var madeFrame: UnsafeMutablePointer<AVFrame>? = av_frame_alloc()
        var madePacket: UnsafeMutablePointer<AVPacket>? = av_packet_alloc()
        guard let context = opened, let frame = madeFrame, let packet = madePacket else {
            throw FrameHostError(
                .exhausted, what: "there is not enough memory for an audio encoder",
                remedy: AudioEncoderHandle.freeMemory)
        }
        func check(_ code: Int32, _ what: String, _ remedy: String = AudioEncoderHandle.freeMemory) throws {
            guard code < 0 else { return }
            avcodec_free_context(&opened)
            av_frame_free(&madeFrame)
            av_packet_free(&madePacket)
            throw FrameHostError(.callFailed, what: what, remedy: remedy, cause: audioErrorText(code))
        }
        context.pointee.sample_fmt = isPlanar ? AV_SAMPLE_FMT_FLTP : AV_SAMPLE_FMT_FLT
        context.pointee.sample_rate = Int32(format.sampleRate)
        context.pointee.bit_rate = Int64(bitrateKbps) * 1000
        context.pointee.time_base = AVRational(num: 1, den: Int32(format.sampleRate))
        // Containers and clients want the extradata before the first packet.
        context.pointee.flags |= AV_CODEC_FLAG_GLOBAL_HEADER
        format.set(&context.pointee.ch_layout)
        try check(
            avcodec_open2(context, encoder, nil),
            "the \(codec.title) encoder cannot be opened for \(format) at \(bitrateKbps) kbit/s",
            "Use another 'bitrateKbps' or 'codec'.")
        frame.pointee.format = context.pointee.sample_fmt.rawValue
        frame.pointee.sample_rate = context.pointee.sample_rate
        frame.pointee.nb_samples = context.pointee.frame_size
        try check(
            av_channel_layout_copy(&frame.pointee.ch_layout, &context.pointee.ch_layout),
            "there is not enough memory for a channel layout")
        try check(av_frame_get_buffer(frame, 0), "there is not enough memory for a frame of sound")
        self.context = context
        self.frame = frame
        self.packet = packet
        frameSamples = Int(context.pointee.frame_size)
        initialPadding = Int(context.pointee.initial_padding)
        extradata = Array(
            UnsafeBufferPointer(start: context.pointee.extradata, count: Int(context.pointee.extradata_size)))
        channelMask = fh_audio_mask(&context.pointee.ch_layout)
        profile = context.pointee.profile >= 0 ? Int(context.pointee.profile) : nil
    }

    deinit {
        var (context, frame, packet) = (Optional(context), Optional(frame), Optional(packet))
        avcodec_free_context(&context)
        av_frame_free(&frame)
        av_packet_free(&packet)
    }

    /// Whether the frame is full and must be sent.
    var isFull: Bool { filled == frameSamples }

    /// Adds samples to the frame, as many as it has room for.
    ///
    /// - Parameters:
    ///   - samples: Interleaved.
    ///   - first: The first moment of `samples` to add.
    /// - Returns: How many of each channel were added.
    func add(_ samples: UnsafeBufferPointer<Float>, from first: Int) throws -> Int {
        let count = min(samples.count / channelCount - first, frameSamples - filled)
        try prepare()
        for channel in 0..<channelCount {
            let (target, step) = place(channel)
            var source = first * channelCount + channel
            for moment in 0..<count {
                let value = samples[source]
                // The comparison is false for NaN too, which encoders refuse or spread.
                target[moment * step] = value.magnitude <= Self.loudest ? value : 0
                source += channelCount
            }
        }
        filled += count
        return count
    }

    /// Adds silence to the frame, at most `most` samples of each channel.
    func addSilence(_ most: Int64) throws -> Int64 {
        let count = Int(min(most, Int64(frameSamples - filled)))
        try prepare()
        for channel in 0..<channelCount {
            let (target, step) = place(channel)
            for moment in 0..<count { target[moment * step] = 0 }
        }
        filled += count
        return Int64(count)
    }

    /// Makes the frame writable. An encoder may still read a frame that it was handed, though libavcodec's two do
    /// not.
    private func prepare() throws {
        guard filled == 0 else { return }
        frame.pointee.nb_samples = Int32(frameSamples)
        let code = av_frame_make_writable(frame)
        guard code >= 0 else { throw failure("there is not enough memory for a frame of sound", code) }
    }

    /// Where the next sample of a channel goes, and the step to the one after it.
    private func place(_ channel: Int) -> (UnsafeMutablePointer<Float>, Int) {
        let plane = UnsafeMutableRawPointer(frame.pointee.extended_data[isPlanar ? channel : 0]!)
            .assumingMemoryBound(to: Float.self)
        return isPlanar ? (plane + filled, 1) : (plane + filled * channelCount + channel, channelCount)
    }

    /// Hands over what the frame has. Only the last one may have less than ``frameSamples``. Afterwards all packets
    /// must be taken.
    func send() throws {
        frame.pointee.nb_samples = Int32(filled)
        frame.pointee.pts = sent
        let code = avcodec_send_frame(context, frame)
        guard code >= 0 else { throw failure("the \(title) encoder refused a frame", code) }
        sent += Int64(filled)
        filled = 0
    }

    /// Says that no frame follows. Afterwards all packets must be taken.
    func end() throws {
        let code = avcodec_send_frame(context, nil)
        guard code >= 0 || code == fh_audio_eof else { throw failure("the \(title) encoder failed to finish", code) }
    }

    /// The next packet; nil when the encoder has none.
    func receive() throws -> SoundPacket? {
        let code = avcodec_receive_packet(context, packet)
        if code == fh_audio_again || code == fh_audio_eof { return nil }
        guard code >= 0 else { throw failure("the \(title) encoder failed", code) }
        return SoundPacket(
            bytes: UnsafeRawBufferPointer(start: packet.pointee.data, count: Int(packet.pointee.size)),
            number: packet.pointee.pts, count: max(packet.pointee.duration, 0))
    }

    private func failure(_ what: String, _ code: Int32) -> FrameHostError {
        FrameHostError(
            .callFailed, what: what, remedy: "Free some memory if it has run out, and start the chain again.",
            cause: audioErrorText(code))
    }
}

/// libav's text for one of its error codes.
func audioErrorText(_ code: Int32) -> String {
    withUnsafeTemporaryAllocation(of: CChar.self, capacity: 128) { text in
        av_strerror(code, text.baseAddress, text.count)
        return String(cString: text.baseAddress!)
    }
}
