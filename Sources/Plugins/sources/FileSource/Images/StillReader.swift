// SPDX-License-Identifier: Apache-2.0

import CAVFormat
import FrameCore

/// Reads single pictures: the size of one without decoding it, or the picture.
///
/// One thread at a time.
final class StillReader {
    /// What a picture needs.
    struct Measure: Equatable {
        var width: Int
        var height: Int
        /// Bytes of the decoded samples.
        var byteCount: Int
        /// Bytes of the file.
        var fileBytes: Int
        /// Decoded pixels, which may be more than those that are shown.
        var pixels: Int
    }

    /// The size for which a decoder may take memory, and the size that it has asked for.
    private final class Allowance {
        var mostPixels = 0
        var asked: Asked?

        struct Asked {
            var width: Int
            var height: Int
            /// The width with the room around the picture that the decoder needs.
            var codedWidth: Int
            var codedHeight: Int
            var format: Int32
            var pixels: Int { codedWidth * codedHeight }
        }
    }

    private var packet = av_packet_alloc()
    private var frame = av_frame_alloc()
    private let allowance = Allowance()
    /// Packets that a file may have before its first picture.
    private static let mostPackets = 64

    init() throws {
        guard packet != nil, frame != nil else {
            throw FrameHostError(
                .exhausted, what: "not enough memory for a decoder",
                remedy: "Free some memory, and try again.")
        }
    }

    deinit {
        av_frame_free(&frame)
        av_packet_free(&packet)
    }

    /// Measures the picture of a file. The decoder reads its header, and is refused the memory for the rest.
    ///
    /// - Throws: ``FrameHostError`` where no decoder finds a picture.
    func measure(_ path: String) throws -> Measure {
        allowance.mostPixels = 0
        let (picture, fileBytes, cause) = try decode(path)
        if let asked = allowance.asked {
            let bytes = av_image_get_buffer_size(
                AVPixelFormat(rawValue: asked.format), Int32(clamping: asked.codedWidth),
                Int32(clamping: asked.codedHeight), 64)
            return Measure(
                width: asked.width, height: asked.height, byteCount: bytes > 0 ? Int(bytes) : asked.pixels * 8,
                fileBytes: fileBytes, pixels: asked.pixels)
        }
        // The decoder did not ask: it allocates its memory itself.
        guard let picture else { throw ImageFault.noPicture(path, cause: cause) }
        defer { av_frame_unref(frame) }
        return Measure(
            width: picture.width, height: picture.height, byteCount: picture.width * picture.height * 8,
            fileBytes: fileBytes, pixels: picture.width * picture.height)
    }

    /// The picture of a file, valid until the next call.
    ///
    /// - Parameter mostPixels: A larger one is refused before it takes memory.
    /// - Throws: ``FrameHostError`` for a picture that is damaged in any part.
    func read(_ path: String, mostPixels: Int) throws -> DecodedPicture {
        allowance.mostPixels = mostPixels
        let (picture, _, cause) = try decode(path)
        guard let picture else {
            if let asked = allowance.asked, asked.pixels > mostPixels {
                throw ImageFault.tooLarge(path, pixels: asked.pixels, most: mostPixels)
            }
            throw ImageFault.noPicture(path, cause: cause)
        }
        guard !picture.isDamaged else { throw ImageFault.damaged(path) }
        return picture
    }

    /// The first picture of a file; nil with libavcodec's reason when it gives none.
    private func decode(_ path: String) throws -> (DecodedPicture?, fileBytes: Int, cause: String) {
        av_frame_unref(frame)
        allowance.asked = nil
        if let fault = FileFault.ofPath(path, isRelative: false, wasThere: true) { throw fault }
        let file = try MediaFile(still: path)
        let track = (0..<file.trackCount).first {
            file.parameters($0).codec_type == AVMEDIA_TYPE_VIDEO
                && avcodec_find_decoder(file.parameters($0).codec_id) != nil
        }
        guard let track else {
            let unknown = (0..<file.trackCount).first { file.parameters($0).codec_type == AVMEDIA_TYPE_VIDEO }
            if let unknown { throw ImageFault.noDecoder(path, codec: file.codecName(unknown)) }
            throw ImageFault.onlyOtherTracks(
                path, tracks: file.otherTracks(than: nil).map { "\($0.kind) (\($0.codecText))" })
        }
        var context = try makeDecoder(file, track)
        defer { avcodec_free_context(&context) }
        let result = firstPicture(file, track, context)
        return (
            result == 0 ? DecodedPicture(frame: frame!) : nil, file.byteCount, result == 0 ? "" : LibavText.of(result)
        )
    }

    private func makeDecoder(_ file: MediaFile, _ track: Int) throws -> UnsafeMutablePointer<AVCodecContext>? {
        let codec = avcodec_find_decoder(file.parameters(track).codec_id)
        guard let context = avcodec_alloc_context3(codec) else {
            throw FrameHostError(
                .exhausted, what: "not enough memory for a decoder",
                remedy: "Free some memory, and try again.")
        }
        avcodec_parameters_to_context(context, file.stream(track).pointee.codecpar)
        context.pointee.thread_count = 1
        // Check sums are checked, and in these formats damage is an error, since half a picture is useless. TIFF is
        // not among them, because its decoder reports unknown tags as damage.
        let isStrict = [AV_CODEC_ID_MJPEG, AV_CODEC_ID_PNG, AV_CODEC_ID_APNG].contains(file.parameters(track).codec_id)
        context.pointee.err_recognition = AV_EF_CRCCHECK | (isStrict ? AV_EF_EXPLODE : 0)
        context.pointee.opaque = Unmanaged.passUnretained(allowance).toOpaque()
        context.pointee.get_buffer2 = { context, picture, flags in
            guard let context, let picture, let opaque = context.pointee.opaque else { return fh_averror_no_memory }
            let allowance = Unmanaged<Allowance>.fromOpaque(opaque).takeUnretainedValue()
            let (width, height) = (Int(picture.pointee.width), Int(picture.pointee.height))
            guard width > 0, height > 0 else { return fh_averror_invalid_data }
            if allowance.asked == nil {
                allowance.asked = Allowance.Asked(
                    width: context.pointee.width > 0 ? Int(context.pointee.width) : width,
                    height: context.pointee.height > 0 ? Int(context.pointee.height) : height, codedWidth: width,
                    codedHeight: height, format: picture.pointee.format)
            }
            guard width <= allowance.mostPixels / height else { return fh_averror_no_memory }
            return avcodec_default_get_buffer2(context, picture, flags)
        }
        var opened: UnsafeMutablePointer<AVCodecContext>? = context
        let result = avcodec_open2(context, codec, nil)
        guard result >= 0 else {
            avcodec_free_context(&opened)
            throw FileFault.decoderFailed(
                file.path, codec: file.codecName(track), reason: LibavText.of(result), cause: "")
        }
        return opened
    }

    /// 0 with a picture in `frame`, else an AVERROR.
    private func firstPicture(_ file: MediaFile, _ track: Int, _ context: UnsafeMutablePointer<AVCodecContext>?)
        -> Int32
    {
        var packets = 0
        var hasEnded = false
        while true {
            let received = avcodec_receive_frame(context, frame)
            guard received == fh_averror_again else { return received }
            guard !hasEnded, packets < Self.mostPackets else { return fh_averror_invalid_data }
            let got = file.read(into: packet)
            guard got >= 0 else {
                hasEnded = true
                let sent = avcodec_send_packet(context, nil)
                if sent < 0 { return sent }
                continue
            }
            defer { av_packet_unref(packet) }
            packets += 1
            guard Int(packet!.pointee.stream_index) == track else { continue }
            let sent = avcodec_send_packet(context, packet)
            if sent < 0 { return sent }
        }
    }
}

extension DecodedPicture {
    /// Whether parts of it may be transparent.
    var hasAlpha: Bool {
        av_pix_fmt_desc_get(pixelFormat).map { $0.pointee.flags & UInt64(AV_PIX_FMT_FLAG_ALPHA) != 0 } ?? false
    }

    /// The orientation in the picture itself: a display matrix that its decoder made from Exif, or the Exif number
    /// where it made none (WebP).
    var statedOrientation: Orientation? {
        if let orientation { return orientation.value }
        guard let entry = av_dict_get(frame.pointee.metadata, "Orientation", nil, 0) else { return nil }
        let digits = String(cString: entry.pointee.value).filter(\.isNumber)
        return UInt8(digits).flatMap { Orientation(rawValue: $0) }
    }
}
