// SPDX-License-Identifier: Apache-2.0

import CAVFormat
import CodedVideo

extension UnitCoding {
    /// Nil for codecs whose access units cannot be passed on.
    init?(_ id: AVCodecID) {
        switch id {
        case AV_CODEC_ID_H264: self = .nal(.h264)
        case AV_CODEC_ID_HEVC: self = .nal(.h265)
        case AV_CODEC_ID_MJPEG: self = .jpeg
        case AV_CODEC_ID_AV1: self = .av1
        default: return nil
        }
    }

    /// How many pictures a decoder must reorder at most. MJPEG and temporal units of AV1 come in the order of showing, whatever
    /// a decoder says.
    func reorderDepth(_ parameters: AVCodecParameters) -> Int {
        guard case .nal = self else { return 0 }
        return min(max(Int(parameters.video_delay), 0), 16)
    }
}
