// SPDX-License-Identifier: Apache-2.0

/// When a detection is due.
struct DetectionSchedule {
    /// Frames from one regular detection to the next.
    var every: Int
    private var last: Int?
    /// Extra detections since the last regular one.
    private var extra = 0

    init(every: Int) { self.every = every }

    /// - Parameters:
    ///   - isNeeded: Whether a face waits for its second look, or was just lost from sight.
    ///   - isUrgent: Whether there was a cut, or privacy is on.
    func isDue(frame: Int, isNeeded: Bool, isUrgent: Bool) -> Bool {
        guard let last else { return true }
        if isUrgent || frame - last >= every { return true }
        return isNeeded && extra < 2
    }

    mutating func began(frame: Int) {
        if let last, frame - last < every { extra += 1 } else { extra = 0 }
        last = frame
    }
}
