// SPDX-License-Identifier: Apache-2.0

import CAVFormat
import CodedVideo
import FrameCore

extension VideoCoding {
    /// Nil for codecs whose access units cannot be passed on.
    init?(_ id: AVCodecID) {
        switch id {
        case AV_CODEC_ID_H264: self = .h264
        case AV_CODEC_ID_HEVC: self = .h265
        default: return nil
        }
    }

    var codec: Codec {
        switch self {
        case .h264: .h264
        case .h265: .h265
        }
    }
}
