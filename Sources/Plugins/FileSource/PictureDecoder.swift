import CAVFormat
import FrameCore

/// One libavcodec decoder: packets in, pictures out. The only place that calls libavcodec's decoding.
///
/// Used by one thread at a time; libavcodec decodes with threads of its own.
final class PictureDecoder {
    enum Step {
        /// A picture is in the frame that was handed over.
        case picture
        /// It wants a packet first.
        case hungry
        /// A packet could not be decoded.
        case damaged
        case ended
    }

    private var context: UnsafeMutablePointer<AVCodecContext>?
    private let loans: DecoderLoans?
    private var failuresInARow = 0
    private var isFlushing = false
    /// A decoder that fails this often in a row while it is flushed will not end by itself.
    private static let mostFailuresInARow = 1000

    /// [control thread] Opens the decoder of a track.
    ///
    /// - Parameters:
    ///   - threads: How many pictures are decoded at once, where the codec can.
    ///   - loans: Where it decodes to; nil: memory of its own.
    init(_ file: MediaFile, track: Int, threads: Int, loans: DecoderLoans?) throws {
        self.loans = loans
        let stream = file.stream(track)
        let codec = avcodec_find_decoder(stream.pointee.codecpar.pointee.codec_id)
        guard let codec, let context = avcodec_alloc_context3(codec) else {
            throw FrameHostError(.exhausted, what: "no memory for a decoder")
        }
        self.context = context
        avcodec_parameters_to_context(context, stream.pointee.codecpar)
        context.pointee.pkt_timebase = stream.pointee.time_base
        context.pointee.thread_count = Int32(threads)
        // Cut off exactly what is to be cut off at the left and at the top; who copies needs no alignment.
        context.pointee.flags |= AV_CODEC_FLAG_UNALIGNED
        loans?.attach(to: context)
        let (opened, said) = LibavText.during { avcodec_open2(context, codec, nil) }
        guard opened >= 0 else {
            avcodec_free_context(&self.context)
            throw FileFault.decoderFailed(
                file.path, codec: String(cString: codec.pointee.name), reason: LibavText.of(opened), cause: said)
        }
    }

    /// Its threads have ended then, and all its loans are back except those of pictures that others hold.
    deinit { avcodec_free_context(&context) }

    /// [stage thread] Takes the next picture that is ready.
    func receive(into picture: UnsafeMutablePointer<AVFrame>) -> Step {
        let result = avcodec_receive_frame(context, picture)
        switch result {
        case 0:
            failuresInARow = 0
            return .picture
        case fh_averror_eof: return .ended
        case fh_averror_again: return .hungry
        default:
            failuresInARow += 1
            return isFlushing && failuresInARow > Self.mostFailuresInARow ? .ended : .damaged
        }
    }

    /// [stage thread] Hands over a packet; nil: none follows. False when it could not be taken for damage.
    func send(_ packet: UnsafeMutablePointer<AVPacket>?) -> Bool {
        if packet == nil { isFlushing = true }
        return avcodec_send_packet(context, packet) >= 0
    }

    /// [stage thread] Forgets what it holds, to begin anew elsewhere.
    func flush() {
        avcodec_flush_buffers(context)
        isFlushing = false
        failuresInARow = 0
    }
}
