// SPDX-License-Identifier: Apache-2.0

import CAVFormat
import FrameCore

/// The memory that a decoder takes for itself, beside the chain's buffers that it decodes into.
enum DecoderMemory {
    /// For each thread: a packet and the rows being worked on.
    private static let bytesOfThread = 1 << 20

    /// An estimate: in measurements H.264, MPEG-4 and ProRes take from a quarter of it to 1.3 times as much
    /// (OwnMemoryTests).
    ///
    /// - Parameter hasLoans: Whether the pictures themselves are in the chain's buffers.
    static func bytes(_ parameters: AVCodecParameters, hasLoans: Bool, threads: Int) -> Int {
        let pictures = (DecoderDemand.picturesKept(parameters) ?? picturesOfOthers(parameters.codec_id)) + threads + 1
        // With the room around the picture that decoders need.
        let (across, down) = ((Int(parameters.width) + 15) / 16 + 2, (Int(parameters.height) + 15) / 16 + 2)
        // A file may claim any size. The bound keeps the products from overflowing.
        var bytesOfPicture = min(across * down, 1 << 30) * bytesOfMacroblock(parameters.codec_id)
        if !hasLoans {
            let planes = av_image_get_buffer_size(
                AVPixelFormat(rawValue: parameters.format), Int32(clamping: across * 16), Int32(clamping: down * 16), 64
            )
            bytesOfPicture += max(Int(planes), 0)
        }
        return pictures * bytesOfPicture + threads * bytesOfThread
    }

    /// Pictures that decoders without loans keep.
    private static func picturesOfOthers(_ codec: AVCodecID) -> Int {
        if let about = avcodec_descriptor_get(codec), about.pointee.props & Int32(AV_CODEC_PROP_INTRA_ONLY) != 0 {
            return 1
        }
        return switch codec {
        // A B-picture and the two that it refers to.
        case AV_CODEC_ID_MPEG1VIDEO, AV_CODEC_ID_MPEG2VIDEO, AV_CODEC_ID_MPEG4: 3
        case AV_CODEC_ID_FFV1: 1
        // AV1's eight reference slots, and pictures on their way between threads. No known decoder keeps more.
        default: 12
        }
    }

    /// Bytes for each macroblock of a kept picture: vectors in both directions, types, references.
    private static func bytesOfMacroblock(_ codec: AVCodecID) -> Int {
        switch codec {
        case AV_CODEC_ID_H264, AV_CODEC_ID_HEVC: 200
        case AV_CODEC_ID_MJPEG: 0
        default: 32
        }
    }
}
