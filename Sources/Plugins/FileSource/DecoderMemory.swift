// SPDX-License-Identifier: Apache-2.0

import CAVFormat
import FrameCore

/// What a decoder takes for itself, beside the chain's buffers it decodes into.
enum DecoderMemory {
    /// Of each thread: a packet and the rows being worked on.
    private static let bytesOfThread = 1 << 20

    /// An estimate: measured, H.264, MPEG-4 and ProRes take from a quarter of it to 1.3 times as much (OwnMemoryTests).
    ///
    /// - Parameter hasLoans: The pictures themselves are the chain's.
    static func bytes(_ parameters: AVCodecParameters, hasLoans: Bool, threads: Int) -> Int {
        let pictures = (DecoderDemand.picturesKept(parameters) ?? picturesOfOthers(parameters.codec_id)) + threads + 1
        // With the room around it that decoders want.
        let (across, down) = ((Int(parameters.width) + 15) / 16 + 2, (Int(parameters.height) + 15) / 16 + 2)
        // A file may claim any size: none so large that the products leave Int.
        var bytesOfPicture = min(across * down, 1 << 30) * bytesOfMacroblock(parameters.codec_id)
        if !hasLoans {
            let planes = av_image_get_buffer_size(
                AVPixelFormat(rawValue: parameters.format), Int32(clamping: across * 16), Int32(clamping: down * 16), 64
            )
            bytesOfPicture += max(Int(planes), 0)
        }
        return pictures * bytesOfPicture + threads * bytesOfThread
    }

    /// Pictures kept by decoders that have no loans.
    private static func picturesOfOthers(_ codec: AVCodecID) -> Int {
        if let about = avcodec_descriptor_get(codec), about.pointee.props & Int32(AV_CODEC_PROP_INTRA_ONLY) != 0 {
            return 1
        }
        return switch codec {
        // The two that a B-picture refers to, and itself.
        case AV_CODEC_ID_MPEG1VIDEO, AV_CODEC_ID_MPEG2VIDEO, AV_CODEC_ID_MPEG4: 3
        case AV_CODEC_ID_FFV1: 1
        // AV1's eight reference slots, and pictures on their way from thread to thread; nobody is known to keep more.
        default: 12
        }
    }

    /// For each macroblock of a picture that is kept: vectors of both directions, types, references.
    private static func bytesOfMacroblock(_ codec: AVCodecID) -> Int {
        switch codec {
        case AV_CODEC_ID_H264, AV_CODEC_ID_HEVC: 200
        case AV_CODEC_ID_MJPEG: 0
        default: 32
        }
    }
}
