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

/// Which units after an entry cannot be decoded where decoding begins there: the leading pictures of an open one that
/// refer to pictures before it (H.265: RASL).
struct LeadingPictures {
    private(set) var leftOut = 0
    private var follows = false

    /// Whether a unit is left out.
    ///
    /// - Parameter begins: Whether decoding begins with it.
    mutating func leavesOut(_ unit: UnitOutline, begins: Bool) -> Bool {
        if begins {
            follows = unit.entry == .open
            return false
        }
        guard follows else { return false }
        if unit.place == .skippedLeading {
            leftOut += 1
            return true
        }
        // The first picture that is not a leading one ends them.
        if unit.place == .shown { follows = false }
        return false
    }
}
