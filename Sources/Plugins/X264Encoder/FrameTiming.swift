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

/// Asks for a keyframe when the last one is too long ago by time, where counting frames does not tell (variable rate,
/// lost frames).
struct KeyframePacer {
    let interval: MediaTime
    private var last: MediaTime?
    private var isRequested = false

    init(seconds: Double) { interval = MediaTime(seconds: seconds) }

    /// The next frame is to be a keyframe.
    mutating func request() { isRequested = true }

    /// Whether the frame at `pts` is to be a keyframe; if so, the interval begins anew.
    ///
    /// - Parameter watchesTime: False where the encoder counts frames by itself and only requests are passed on.
    mutating func isDue(at pts: MediaTime, watchesTime: Bool) -> Bool {
        guard let last else {
            // The first frame is a keyframe anyway.
            self.last = pts
            isRequested = false
            return false
        }
        guard isRequested || (watchesTime && pts - last >= interval) else { return false }
        isRequested = false
        self.last = pts
        return true
    }

    /// The encoder made a keyframe of its own choice.
    mutating func sawKeyframe(at pts: MediaTime) {
        if let last, pts > last { self.last = pts }
    }
}
