// SPDX-License-Identifier: Apache-2.0

/// Turns the needs of many readers into few requests to the encoder: one at a time, and none soon after a keyframe.
///
/// A reader that joins soon after a keyframe starts from the kept units, so the window of ``KeptUnits`` is also the
/// shortest distance between two keyframes that readers can bring about: 250 ms for the first two, 500 ms for those
/// that follow in a crowd.
struct KeyframeRequests {
    /// A request that has not brought a keyframe is repeated after this time, nanoseconds.
    static let patience: Int64 = 1_000_000_000
    /// Requested keyframes that follow each other within this time count as a crowd, nanoseconds.
    static let crowding: Int64 = 1_000_000_000

    private var requestedAt: Int64?
    /// When the newest requested keyframe came.
    private var broughtAt: Int64?
    private(set) var requestCount = 0

    /// Notes that a reader needs a keyframe; true when the encoder must be asked.
    mutating func noteNeed(now: Int64) -> Bool {
        if let requestedAt, now - requestedAt < Self.patience { return false }
        requestedAt = now
        requestCount += 1
        return true
    }

    /// Notes that a keyframe has come; true when it was requested soon after another.
    mutating func sawKeyframe(now: Int64) -> Bool {
        guard requestedAt != nil else { return false }
        requestedAt = nil
        defer { broughtAt = now }
        return broughtAt.map { now - $0 < Self.crowding } ?? false
    }
}
