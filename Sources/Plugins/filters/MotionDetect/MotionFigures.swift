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

    /// Of the last second, so that whoever looks once a second misses nothing.
    private static let peakTime: Int64 = 1_000_000_000

    mutating func take(_ look: MotionLook, _ watch: MotionWatch, largest: Float, time: Int64) {
        let now = look.detector.level
        if now >= level || time >= peakUntil || time < peakUntil - Self.peakTime {
            (level, peakUntil) = (now, time &+ Self.peakTime)
        }
        isMotion = watch.isMotion
        isLearning = look.detector.isLearning(at: time)
        size = largest
        moving = look.detector.movingShare
        count = watch.count
    }

    /// For programs and for the page.
    var json: JSONNode {
        func percent(_ share: Float) -> JSONNode { .number((Double(share) * 10_000).rounded() / 100) }
        return [
            "isMotion": .bool(isMotion), "isLearning": .bool(isLearning),
            "level": .number((Double(level) * 100).rounded() / 100), "size": percent(size),
            "changing": percent(moving), "motions": .number(count),
        ]
    }
}
