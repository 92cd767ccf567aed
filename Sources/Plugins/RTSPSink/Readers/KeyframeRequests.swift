/// Turns the wishes of many readers into few requests to the encoder: one at a time, and none soon after a keyframe.
///
/// A reader that joins soon after a keyframe starts from the kept units, so the window of ``KeptUnits`` is also the shortest distance between two
/// keyframes that readers can bring about: four a second at most, however many join.
struct KeyframeRequests {
    /// A request that has brought no keyframe is repeated after this, nanoseconds.
    static let patience: Int64 = 1_000_000_000

    private var requestedAt: Int64?
    private(set) var requestCount = 0

    /// A reader needs a keyframe; true when the encoder is to be asked.
    mutating func wish(now: Int64) -> Bool {
        if let requestedAt, now - requestedAt < Self.patience { return false }
        requestedAt = now
        requestCount += 1
        return true
    }

    /// A keyframe has come.
    mutating func sawKeyframe() { requestedAt = nil }
}
