// SPDX-License-Identifier: Apache-2.0

import CAVFormat
import FrameCore
import Glibc

/// One decoder of a video track: packets in, pictures out, by libavcodec, and of usual Motion JPEG by libjpeg-turbo.
///
/// Used by one thread at a time; both decode with threads of their own.
final class PictureDecoder {
    enum Step {
        /// A picture is in the frame that was handed over.
        case picture
        /// The decoder needs a packet first.
        case hungry
        /// A packet could not be decoded.
        case damaged
        case ended
    }

    private var context: UnsafeMutablePointer<AVCodecContext>?
    private let loans: DecoderLoans?
    private var jpeg: JPEGPictures?
    private var raw: RawPictures?
    /// What the decoder found wrong since it was last asked.
    private let complaints: OpaquePointer
    private let isIntraOnly: Bool
    /// How many pictures came since it was opened or flushed.
    private var pictures = 0
    private var failuresInARow = 0
    private var isFlushing = false
    /// A decoder that fails this many times in a row while it is drained will not end by itself.
    private static let mostFailuresInARow = 1000

    /// [control thread] Opens the decoder of a file's track.
    ///
    /// - Parameters:
    ///   - threads: How many pictures are decoded at once, where the codec can.
    ///   - loans: The loans that it decodes into; nil: memory of its own.
    convenience init(_ file: MediaFile, track: Int, threads: Int, loans: DecoderLoans?) throws {
        let stream = file.stream(track)
        try self.init(
            stream.pointee.codecpar, timeBase: stream.pointee.time_base, of: file.path, threads: threads, loans: loans)
        raw = file.raw
    }

    /// [any thread]
    ///
    /// - Parameters:
    ///   - name: The input's name in messages.
    ///   - isLive: Whether threads share a picture instead of having one each, so that no picture waits for the next
    ///     one. Pictures with more than 8192x8192 pixels are then refused.
    init(
        _ parameters: UnsafePointer<AVCodecParameters>, timeBase: AVRational, of name: String, threads: Int,
        isLive: Bool = false, loans: DecoderLoans? = nil
    ) throws {
        self.loans = loans
        let codec = avcodec_find_decoder(parameters.pointee.codec_id)
        guard let codec, let context = avcodec_alloc_context3(codec),
            let complaints = fh_av_complaints_make(loans.map { Unmanaged.passUnretained($0).toOpaque() })
        else {
            throw FrameHostError(
                .exhausted, what: "not enough memory for a decoder",
                remedy: "Free some memory, and start the chain again.")
        }
        self.context = context
        self.complaints = complaints
        isIntraOnly =
            avcodec_descriptor_get(parameters.pointee.codec_id).map {
                $0.pointee.props & Int32(AV_CODEC_PROP_INTRA_ONLY) != 0
            } ?? false
        context.pointee.opaque = UnsafeMutableRawPointer(complaints)
        avcodec_parameters_to_context(context, parameters)
        context.pointee.pkt_timebase = timeBase
        context.pointee.thread_count = Int32(threads)
        // Crop exactly at the left and at the top: copying needs no alignment.
        context.pointee.flags |= AV_CODEC_FLAG_UNALIGNED
        if isLive {
            context.pointee.thread_type = FF_THREAD_SLICE
            context.pointee.max_pixels = 1 << 26
        }
        loans?.attach(to: context)
        let (opened, said) = LibavText.during { avcodec_open2(context, codec, nil) }
        guard opened >= 0 else {
            throw FileFault.decoderFailed(
                name, codec: String(cString: codec.pointee.name), reason: LibavText.of(opened), cause: said)
        }
        jpeg = try JPEGPictures(context, workers: isLive ? 1 : threads)
    }

    /// Its threads have ended afterwards, and all its loans are returned except those of pictures that others hold.
    deinit {
        jpeg?.end()
        avcodec_free_context(&context)
        free(UnsafeMutableRawPointer(complaints))
    }

    /// [stage thread] Whether the decoder found something wrong since this was last asked: it guesses what is missing, and in
    /// many formats marks no picture. With several threads, that may be in one of the next pictures.
    ///
    /// False for the first pictures from where decoding began: they may refer to some that were cut off.
    func takesComplaints() -> Bool {
        let complains = fh_av_complaints_take(complaints) > 0
        return complains && (isIntraOnly || pictures > Self.mostReferred)
    }

    /// How far a picture may refer back (H.264 and H.265: 16), and what the threads are ahead.
    private static let mostReferred = 32

    /// [stage thread] Takes the next picture that is ready.
    func receive(into picture: UnsafeMutablePointer<AVFrame>) -> Step {
        if let raw { return raw.receive(into: picture) ? .picture : isFlushing ? .ended : .hungry }
        if let step = jpeg?.receive(into: picture, isLast: isFlushing) { return step }
        let result = avcodec_receive_frame(context, picture)
        switch result {
        case 0:
            failuresInARow = 0
            pictures += 1
            return .picture
        case fh_averror_eof: return .ended
        case fh_averror_again: return .hungry
        default:
            failuresInARow += 1
            return isFlushing && failuresInARow > Self.mostFailuresInARow ? .ended : .damaged
        }
    }

    /// [stage thread] Hands over a packet; nil when none follows. False when it was damaged and could not be taken.
    func send(_ packet: UnsafeMutablePointer<AVPacket>?) throws -> Bool {
        if let packet, let jpeg {
            switch try jpeg.send(packet) {
            case .taken: return true
            case .damaged: return false
            case .left: break
            }
        }
        if packet == nil { isFlushing = true }
        if let raw {
            if let packet { raw.send(packet) }
            return true
        }
        return avcodec_send_packet(context, packet) >= 0
    }

    /// [stage thread] Drops what it holds, so that decoding can go on at another place.
    func flush() {
        jpeg?.flush()
        raw?.flush()
        avcodec_flush_buffers(context)
        _ = takesComplaints()
        pictures = 0
        isFlushing = false
        failuresInARow = 0
    }
}
