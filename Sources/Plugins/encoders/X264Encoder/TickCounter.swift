// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// PTS as ticks for the encoder, strictly rising.
struct TickCounter {
    let timeBase: TimeBase
    private var last: Int64?

    init(timeBase: TimeBase) { self.timeBase = timeBase }

    /// The tick of `pts`; nil, and nothing changes, for a frame that is not later than the one before it by at least
    /// one tick: H.264 decoders and containers order pictures by time, so two cannot share one.
    mutating func tick(of pts: MediaTime) -> Int64? {
        let tick = timeBase.ticks(of: pts)
        if let last, tick <= last { return nil }
        last = tick
        return tick
    }
}
