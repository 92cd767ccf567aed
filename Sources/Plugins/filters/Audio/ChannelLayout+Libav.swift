// SPDX-License-Identifier: Apache-2.0

import CAudio
import FrameCore

extension AudioFormat {
    /// Sets libavutil's layout to that of the format.
    func set(_ layout: inout AVChannelLayout) {
        if self.layout.mask != 0 {
            av_channel_layout_from_mask(&layout, self.layout.mask)
        } else {
            av_channel_layout_default(&layout, Int32(channelCount))
        }
    }
}
