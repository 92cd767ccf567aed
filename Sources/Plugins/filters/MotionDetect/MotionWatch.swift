// SPDX-License-Identifier: Apache-2.0

/// When motion begins and ends, by the times of the pictures.
struct MotionWatch {
    /// What changed with a picture.
    enum Change: Equatable {
        case began
        /// Nanoseconds from the first to the last picture that moved, and the largest share that moved.
        case ended(duration: Int64, size: Float)
    }

    private var since: Int64?
    private var last: Int64 = 0
    private var largest: Float = 0
    /// How often motion began.
    private(set) var count = 0
    /// Whether something moves, or did so a short time ago.
    var isMotion: Bool { since != nil }

    /// Takes a picture.
    ///
    /// - Parameters:
    ///   - size: The share of the picture that the largest thing moves; 0 where nothing does.
    ///   - time: Of the picture, nanoseconds.
    ///   - patience: Nanoseconds without motion after which it has ended.
    mutating func take(size: Float, time: Int64, patience: Int64) -> Change? {
        // Times that begin anew, as of a clip that is played again: what was counts as just now.
        if since != nil, time < last {
            since = time - max(last - (since ?? last), 0)
            last = time
        }
        if size > 0 {
            last = time
            largest = max(largest, size)
            guard since == nil else { return nil }
            (since, largest) = (time, size)
            count += 1
            return .began
        }
        guard since != nil, time - last >= patience else { return nil }
        return end()
    }

    /// Ends what is under way.
    mutating func end() -> Change? {
        guard let since else { return nil }
        self.since = nil
        return .ended(duration: last - since, size: largest)
    }
}
