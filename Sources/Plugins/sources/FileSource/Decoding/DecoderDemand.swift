// SPDX-License-Identifier: Apache-2.0

import CAVFormat
import FrameCore

/// What a decoder needs of the buffers that it decodes into: how many at once, and how much room around the picture.
struct DecoderDemand: Equatable {
    /// How many buffers it uses at once.
    let floor: Int
    let padding: BufferPadding
    /// Room in pixels, the padding included.
    let width: Int
    let height: Int

    /// Rows below the rounded height that may be read: "some of the optimized chroma MC reads one line too much".
    private static let rowsBelow = 2

    /// [control thread] nil for a decoder that cannot decode into its caller's memory, or that still writes into a
    /// picture after giving it.
    ///
    /// - Parameter threads: How many pictures are decoded at once.
    init?(_ parameters: AVCodecParameters, format: VideoFormat, threads: Int) {
        guard let kept = Self.picturesKept(parameters), let codec = avcodec_find_decoder(parameters.codec_id),
            codec.pointee.capabilities & Int32(AV_CODEC_CAP_DR1) != 0
        else { return nil }
        guard var size = Self.size(of: parameters, codec) else { return nil }
        size.height -= Self.rowsBelow
        guard let across = Self.alignment(of: format.width, toReach: size.width),
            let down = Self.alignment(of: format.height, toReach: size.height)
        else { return nil }
        width = Self.rounded(format.width, to: across)
        height = Self.rounded(format.height, to: down)
        var widest = format
        widest.width = width
        padding = BufferPadding(
            widthAlignment: across, heightAlignment: down,
            extraBytes: Self.rowsBelow * widest.strideBytes(plane: 0) + VideoFormat.strideAlignment)
        // The pictures that it keeps, those that its threads work on, and the one that is just being handed on.
        floor = kept + threads + 1
    }

    /// Whether the buffers have all the room that a picture needs to be decoded. [libavcodec's threads]
    func hasRoom(for picture: UnsafeMutablePointer<AVFrame>, _ context: UnsafeMutablePointer<AVCodecContext>) -> Bool {
        var (width, height) = (picture.pointee.width, picture.pointee.height)
        return Self.align(context, &width, &height) && width <= self.width && height <= self.height + Self.rowsBelow
    }

    /// False where rows need a larger alignment than ours have.
    private static func align(
        _ context: UnsafeMutablePointer<AVCodecContext>, _ width: inout Int32, _ height: inout Int32
    ) -> Bool {
        withUnsafeTemporaryAllocation(of: Int32.self, capacity: Int(AV_NUM_DATA_POINTERS)) { strides in
            strides.initialize(repeating: 0)
            avcodec_align_dimensions2(context, &width, &height, strides.baseAddress)
            return strides.allSatisfy { $0 <= 0 || Int32(VideoFormat.strideAlignment) % $0 == 0 }
        }
    }

    private static func size(of parameters: AVCodecParameters, _ codec: UnsafePointer<AVCodec>) -> (
        width: Int, height: Int
    )? {
        var context = avcodec_alloc_context3(codec)
        defer { avcodec_free_context(&context) }
        guard let context else { return nil }
        context.pointee.codec_id = parameters.codec_id
        context.pointee.pix_fmt = AVPixelFormat(rawValue: parameters.format)
        var (width, height) = (parameters.width, parameters.height)
        return align(context, &width, &height) ? (Int(width), Int(height)) : nil
    }

    /// The smallest power of two with which rounding up `side` reaches `length`.
    private static func alignment(of side: Int, toReach length: Int) -> Int? {
        [1, 2, 4, 8, 16, 32, 64, 128].first { rounded(side, to: $0) >= length }
    }

    private static func rounded(_ value: Int, to multiple: Int) -> Int { (value + multiple - 1) / multiple * multiple }

    // MARK: References

    /// Pictures that a decoder keeps as references or for reordering, beside those that it is decoding.
    ///
    /// nil for a codec that is not known to leave a picture unchanged once it has given it.
    static func picturesKept(_ parameters: AVCodecParameters) -> Int? {
        switch parameters.codec_id {
        case AV_CODEC_ID_H264: min(h264Pictures(parameters), h264PicturesOfStream(parameters) ?? 6, 6)
        // ITU-T H.265, A.4.2: six pictures at the largest size of a level.
        case AV_CODEC_ID_HEVC: 6
        // Eight reference slots; last, golden and alternate.
        case AV_CODEC_ID_VP9: 8
        case AV_CODEC_ID_VP8: 4
        case AV_CODEC_ID_MJPEG: 0
        default: nil
        }
    }

    /// What the stream itself declares.
    private static func h264PicturesOfStream(_ parameters: AVCodecParameters) -> Int? {
        guard let data = parameters.extradata, parameters.extradata_size > 0 else { return nil }
        return H264PictureCount.ofStream(UnsafeRawBufferPointer(start: data, count: Int(parameters.extradata_size)))
    }

    /// ITU-T H.264, table A-1: macroblocks of all pictures a decoder of this level keeps.
    private static let macroblocksByLevel: [Int32: Int] = [
        9: 396, 10: 396, 11: 900, 12: 2376, 13: 2376, 20: 2376, 21: 4752, 22: 8100, 30: 8100, 31: 18_000, 32: 20_480,
        40: 32_768,
        41: 32_768, 42: 34_816, 50: 110_400, 51: 184_320, 52: 184_320, 60: 696_320, 61: 696_320, 62: 696_320,
    ]

    private static func h264Pictures(_ parameters: AVCodecParameters) -> Int {
        let macroblocks = (Int(parameters.width) + 15) / 16 * ((Int(parameters.height) + 15) / 16)
        guard let room = macroblocksByLevel[parameters.level], macroblocks > 0 else { return 16 }
        return min(max(room / macroblocks, 1), 16)
    }
}
