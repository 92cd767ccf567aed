// SPDX-License-Identifier: Apache-2.0

import CAVFormat

/// What decoding costs, for the plan. Measured with 720p clips of about 5 Mbit/s, on one thread.
enum DecoderCost {
    static func nanosecondsPerPixel(_ parameters: AVCodecParameters) -> Double {
        switch parameters.codec_id {
        case AV_CODEC_ID_RAWVIDEO, AV_CODEC_ID_WRAPPED_AVFRAME: 0.3
        default: 4
        }
    }
}
