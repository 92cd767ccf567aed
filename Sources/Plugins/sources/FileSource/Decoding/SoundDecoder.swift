// SPDX-License-Identifier: Apache-2.0

import CAVFormat
import FrameCore

/// One libavcodec decoder of sound, and libswresample behind it, which gives what the chain agreed on: 32-bit floats,
/// interleaved, at one rate and in one channel layout, whatever the stream changes to.
///
/// Used by one thread at a time.
final class SoundDecoder {
    enum Step {
        /// Samples are there; see ``take(_:)``.
        case samples(Int)
        /// The decoder needs a packet first.
        case hungry
        /// A packet could not be decoded.
        case damaged
        case ended
    }

    let format: AudioFormat
    private var context: UnsafeMutablePointer<AVCodecContext>?
    private var frame: UnsafeMutablePointer<AVFrame>?
    private var packet: UnsafeMutablePointer<AVPacket>?
    private var resampler: OpaquePointer?
    /// What ``resampler`` takes.
    private var rate: Int32 = 0
    private var sampleFormat = AV_SAMPLE_FMT_NONE
    private var channels: Int32 = 0
    private var canStretch = false
    private var isStretching = false
    private var positions: UInt64 = 0
    /// What the stream has changed to, where it is not what the chain agreed on; nil where that was taken already.
    private var change: AudioFormat?
    private var failuresInARow = 0
    private var isFlushing = false
    private static let mostFailuresInARow = 1000

    /// [control thread] Opens the decoder of a file's track.
    ///
    /// - Parameter format: What it gives; nil: what the track has.
    convenience init(_ file: MediaFile, track: Int, format: AudioFormat? = nil) throws {
        let format = format ?? AudioTrackFormat(file.stream(track), timeBase: file.timeBase(track)).decoded
        try self.init(
            file.stream(track).pointee.codecpar, timeBase: file.stream(track).pointee.time_base,
            of: "'\(file.path)'", format)
    }

    /// [stage thread] Opens the decoder of a stream's sound.
    ///
    /// - Parameter format: What the chain agreed on.
    convenience init(_ terms: SoundTerms, format: AudioFormat) throws {
        let base = AVRational(num: terms.timeBase.numerator, den: terms.timeBase.denominator)
        try self.init(terms.parameters, timeBase: base, of: "the stream", format)
        // It begins with the resampler that stretches, since one that takes over in the middle could be heard.
        canStretch = true
    }

    private init(
        _ parameters: UnsafeMutablePointer<AVCodecParameters>, timeBase: AVRational, of shown: String,
        _ format: AudioFormat
    ) throws {
        self.format = format
        let name = String(cString: avcodec_get_name(parameters.pointee.codec_id))
        guard let codec = avcodec_find_decoder(parameters.pointee.codec_id) else {
            throw FrameHostError(
                .invalidMedia, what: "the sound of \(shown) is \(name), which this libavcodec cannot decode",
                remedy: "Convert it to AAC first.")
        }
        context = avcodec_alloc_context3(codec)
        frame = av_frame_alloc()
        packet = av_packet_alloc()
        guard let context, frame != nil, packet != nil else {
            throw FrameHostError(
                .exhausted, what: "not enough memory for a decoder",
                remedy: "Free some memory, and start the chain again.")
        }
        avcodec_parameters_to_context(context, parameters)
        context.pointee.pkt_timebase = timeBase
        // A frame is decoded in microseconds.
        context.pointee.thread_count = 1
        let opened = avcodec_open2(context, codec, nil)
        guard opened == 0 else {
            throw FrameHostError(
                .invalidMedia, what: "the decoder for the sound (\(name)) of \(shown) does not start",
                remedy: "Check \(shown) with 'ffprobe': its sound may be damaged.", cause: LibavText.of(opened))
        }
    }

    deinit {
        swr_free(&resampler)
        av_packet_free(&packet)
        av_frame_free(&frame)
        avcodec_free_context(&context)
    }

    /// The time of the samples that ``step()`` found, in ticks of the track; nil when it is unknown.
    var tick: Int64? {
        guard let frame else { return nil }
        let tick = frame.pointee.pts != fh_av_no_pts ? frame.pointee.pts : frame.pointee.best_effort_timestamp
        return tick == fh_av_no_pts ? nil : tick
    }

    /// Hands over a packet; nil when none follows.
    ///
    /// - Parameters:
    ///   - changes: What holds from this packet on.
    ///   - isHidden: Whether nothing of it is heard.
    func send(_ sound: AudioPacket?, _ changes: [SoundChange] = [], isHidden: Bool = false) {
        guard let context, let packet else { return }
        guard let sound else {
            isFlushing = true
            avcodec_send_packet(context, nil)
            return
        }
        guard av_new_packet(packet, Int32(clamping: sound.bytes.count)) == 0 else { return }
        sound.bytes.withUnsafeBytes { bytes in
            if let base = bytes.baseAddress {
                packet.pointee.data.update(from: base.assumingMemoryBound(to: UInt8.self), count: bytes.count)
            }
        }
        for change in changes {
            follow(change)
            let data = av_packet_new_side_data(packet, change.kind, change.bytes.count)
            data?.update(from: change.bytes, count: change.bytes.count)
        }
        packet.pointee.pts = sound.pts
        packet.pointee.dts = sound.dts
        packet.pointee.duration = sound.duration
        if isHidden { packet.pointee.flags |= AV_PKT_FLAG_DISCARD }
        if avcodec_send_packet(context, packet) < 0 { failuresInARow += 1 } else { failuresInARow = 0 }
        av_packet_unref(packet)
    }

    /// Takes over the channels of PCM, which libavcodec 59 does not do (`apply_param_change`).
    private func follow(_ change: SoundChange) {
        guard let context, change.kind == AV_PKT_DATA_PARAM_CHANGE,
            String(cString: avcodec_get_name(context.pointee.codec_id)).hasPrefix("pcm_")
        else { return }
        let present = Int(context.pointee.ch_layout.nb_channels)
        let found = SoundHeader.parse(change.bytes, rate: Int(context.pointee.sample_rate), channels: present)
        guard found.channels != present, AudioFormat.channelCounts.contains(found.channels) else { return }
        av_channel_layout_uninit(&context.pointee.ch_layout)
        av_channel_layout_default(&context.pointee.ch_layout, Int32(found.channels))
    }

    /// Hands over a packet from libavformat; false where it cannot be decoded.
    func send(_ packet: UnsafeMutablePointer<AVPacket>) -> Bool {
        guard let context else { return false }
        for change in packet.pointee.changes { follow(change) }
        let isTaken = avcodec_send_packet(context, packet) >= 0
        failuresInARow = isTaken ? 0 : failuresInARow + 1
        return isTaken
    }

    /// Says that no packet follows.
    func flush() { send(nil as AudioPacket?) }

    func step() throws -> Step {
        guard let context, let frame else { return .ended }
        let result = avcodec_receive_frame(context, frame)
        if result == fh_averror_again { return failuresInARow > 0 && !isFlushing ? .damaged : .hungry }
        if result == fh_averror_eof { return .ended }
        guard result >= 0 else {
            failuresInARow += 1
            return failuresInARow > Self.mostFailuresInARow ? .ended : .damaged
        }
        try fitResampler(to: frame.pointee)
        return .samples(Int(swr_get_out_samples(resampler, frame.pointee.nb_samples)))
    }

    /// Writes the samples that ``step()`` found into `samples`, which has room for as many as it said.
    ///
    /// - Returns: Samples of each channel.
    func take(_ samples: UnsafeMutableBufferPointer<Float>) -> Int {
        guard let frame, let base = samples.baseAddress else { return 0 }
        var target: UnsafeMutablePointer<UInt8>? = UnsafeMutableRawPointer(base).assumingMemoryBound(to: UInt8.self)
        let room = Int32(clamping: samples.count / format.channelCount)
        let planes = UnsafeRawPointer(frame.pointee.extended_data)?.assumingMemoryBound(
            to: UnsafePointer<UInt8>?.self)
        let count = swr_convert(
            resampler, &target, room, UnsafeMutablePointer(mutating: planes), frame.pointee.nb_samples)
        return max(Int(count), 0)
    }

    /// Makes the sound longer by so much in the next quarter of a second, or shorter, by a hundredth of that at most: nobody
    /// hears it.
    func stretch(by late: MediaTime) {
        guard resampler != nil, late != .zero || isStretching else { return }
        isStretching = late != .zero
        let distance = max(format.sampleRate / 4, 1)
        let most = Double(distance) / 100
        let samples = min(max(late.seconds * Double(format.sampleRate), -most), most)
        swr_set_compensation(resampler, Int32(samples.rounded()), Int32(clamping: distance))
    }

    /// `stereo`, `ambisonic 1`.
    private static func name(of layout: inout AVChannelLayout) -> String {
        var words = [CChar](repeating: 0, count: 128)
        av_channel_layout_describe(&layout, &words, words.count)
        return String(decoding: words.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    /// What the stream has changed to since the last call, where it must be converted to what the chain agreed on.
    func takeChange() -> AudioFormat? {
        defer { change = nil }
        return change
    }

    private func fitResampler(to frame: AVFrame) throws {
        let mask = frame.ch_layout.order == AV_CHANNEL_ORDER_NATIVE ? frame.ch_layout.u.mask : 0
        guard
            resampler == nil || frame.sample_rate != rate || frame.format != sampleFormat.rawValue
                || frame.ch_layout.nb_channels != channels || mask != positions
        else { return }
        (rate, channels, positions) = (frame.sample_rate, frame.ch_layout.nb_channels, mask)
        sampleFormat = AVSampleFormat(rawValue: frame.format)
        var input = frame.ch_layout
        var output = AVChannelLayout()
        if format.layout.mask != 0 {
            av_channel_layout_from_mask(&output, format.layout.mask)
        } else {
            av_channel_layout_default(&output, Int32(clamping: format.channelCount))
        }
        // Channels without names stay where they are.
        if mask == 0, channels == output.nb_channels, input.order == AV_CHANNEL_ORDER_UNSPEC { input = output }
        let found = AudioFormat(
            sampleRate: Int(rate), channelCount: Int(channels),
            layout: mask != 0 ? ChannelLayout(mask: mask) : channels == output.nb_channels ? format.layout : nil)
        if found != format { change = found }
        swr_free(&resampler)
        var made = swr_alloc_set_opts2(
            &resampler, &output, AV_SAMPLE_FMT_FLT, Int32(clamping: format.sampleRate), &input, sampleFormat, rate, 0,
            nil)
        if made >= 0, canStretch, let resampler {
            made = av_opt_set_int(UnsafeMutableRawPointer(resampler), "flags", Int64(SWR_FLAG_RESAMPLE), 0)
        }
        if made >= 0 { made = swr_init(resampler) }
        guard made >= 0 else {
            throw FrameHostError(
                .invalidMedia,
                what:
                    "the sound's channels (\(Self.name(of: &input)), \(rate) Hz) cannot be converted to \(format.channelText) at \(format.sampleRate) Hz",
                remedy:
                    "Convert the sound to a usual channel layout first, such as stereo. If the file or stream is supposed to have such a layout already, check it with 'ffprobe': it may be damaged.",
                cause: LibavText.of(made))
        }
    }
}
