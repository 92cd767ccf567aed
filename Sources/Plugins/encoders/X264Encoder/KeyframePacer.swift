// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// Asks for a keyframe when the last one is too long ago by time, where counting frames is not enough (variable rate,
/// lost frames).
struct KeyframePacer {
    let interval: MediaTime
    private var last: MediaTime?
    private var isRequested = false

    init(seconds: Double) { interval = MediaTime(seconds: seconds) }

    /// Makes the next frame a keyframe.
    mutating func request() { isRequested = true }

    /// Whether the frame at `pts` must be a keyframe. If so, the interval starts again.
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

    /// Notes that the encoder made a keyframe by itself.
    mutating func sawKeyframe(at pts: MediaTime) {
        if let last, pts > last { self.last = pts }
    }
}
