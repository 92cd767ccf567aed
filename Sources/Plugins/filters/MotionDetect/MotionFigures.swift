// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// What the stage shows of itself, by which a person chooses its options.
struct MotionFigures: Sendable {
    private var isMotion = false
    private var isLearning = true
    private var level: Float = 0
    private var size: Float = 0
    private var moving: Float = 0
    private var count = 0
    private var peakUntil: Int64 = 0
    /// When the last picture came, by the chain's clock; nil before the first.
    private var takenAt: Int64?
    /// Nanoseconds without a picture after which nothing is said to move.
    private var patience: Int64 = 0

    /// Of the last second, so that whoever looks once a second misses nothing.
    private static let peakTime: Int64 = 1_000_000_000

    /// Takes what is known after a picture.
    ///
    /// - Parameters:
    ///   - look: Nil if the pictures are too small.
    ///   - time: Of the picture, nanoseconds.
    ///   - now: When it came, by the chain's clock.
    ///   - patience: Nanoseconds without motion after which it has ended.
    mutating func take(_ look: MotionLook?, _ watch: MotionWatch, time: Int64, now: Int64, patience: Int64) {
        let near = look?.detector.level ?? 0
        if near >= level || time >= peakUntil || time < peakUntil - Self.peakTime {
            (level, peakUntil) = (near, time &+ Self.peakTime)
        }
        isMotion = watch.isMotion
        isLearning = look?.detector.isLearning(at: time) ?? false
        size = look?.largestShare ?? 0
        moving = look?.detector.movingShare ?? 0
        count = watch.count
        // Pictures that always come slower than that are no gap.
        self.patience = patience &+ (now - (takenAt ?? now))
        takenAt = now
    }

    /// The stage ends.
    mutating func end() { isMotion = false }

    /// For programs and for the page, at a time of the chain's clock: while no pictures come, nothing is seen to move.
    func json(at now: Int64) -> JSONNode {
        func percent(_ share: Float) -> JSONNode { .number((Double(share) * 10_000).rounded() / 100) }
        let isBlind = now - (takenAt ?? now) >= patience
        return [
            "isMotion": .bool(isMotion && !isBlind), "isLearning": .bool(isLearning),
            "level": .number(isBlind ? 0 : (Double(level) * 100).rounded() / 100), "size": percent(isBlind ? 0 : size),
            "changing": percent(isBlind ? 0 : moving), "motions": .number(count),
        ]
    }
}
