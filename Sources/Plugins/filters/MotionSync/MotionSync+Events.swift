// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Synchronization

extension MotionSync {
    /// The events that it posts.
    static let events = [
        EventDeclaration(
            "motion-missing",
            "Pictures go on without motion: there are no samples near their times. Posted when that begins.",
            [.number("withoutMotion", "How many pictures had none so far.")]),
        EventDeclaration(
            "motion-present", "Pictures have motion, for the first time or again.",
            [
                .number("missingMs", "For how long it was missing (ms)."),
                .number("withoutMotion", "How many pictures had none so far."),
            ]),
        EventDeclaration(
            "motion", "How the camera moves. Posted every `reportSeconds`.",
            [
                .number("roll", "By how much it is turned clockwise about its line of sight (°), where known."),
                .number("pitch", "How far it looks up (°), where known."),
                .number("rotation", "How fast it turns (°/s), where known."),
                .number("acceleration", "What an accelerometer says: 9.8 at rest (m/s²), where known."),
                .number("ageMs", "How far the nearest measured sample was away (ms)."),
            ]),
    ]

    /// What the event `motion` says; a member that is unknown is left out.
    static func details(of motion: Motion) -> JSONNode {
        let sample = motion.sample
        var members: [(String, JSONNode)] = []
        if let roll = known(motion.roll) { members.append(("roll", degrees(roll))) }
        if let pitch = known(motion.pitch) { members.append(("pitch", degrees(pitch))) }
        if sample.contents.contains(.rotationRate) {
            members.append(("rotation", degrees(length(sample.rotationRate))))
        }
        if sample.contents.contains(.acceleration) {
            members.append(("acceleration", .number((length(sample.acceleration) * 1000).rounded() / 1000)))
        }
        return .object(members + [("ageMs", .number(Double(motion.age) / 1e6))])
    }

    /// Nil also for an angle that is not finite, which a plugin's source may cause.
    static func known(_ angle: Double?) -> Double? { angle.flatMap { $0.isFinite ? $0 : nil } }

    /// In degrees, with three decimals.
    static func degrees(_ radians: Double) -> JSONNode { .number((radians * 180_000 / .pi).rounded() / 1000) }

    private static func length(_ vector: SIMD3<Float>) -> Double {
        Double((vector.x * vector.x + vector.y * vector.y + vector.z * vector.z).squareRoot())
    }
}

/// How many pictures were matched and how. Written by the stage thread, read by any.
final class MatchFigures: Sendable {
    let matched = Atomic<Int>(0)
    let extrapolated = Atomic<Int>(0)
    let without = Atomic<Int>(0)
    let samples = Atomic<Int>(0)
    let leftOut = Atomic<Int>(0)
    /// Of the last picture that was matched, nanoseconds.
    let age = Atomic<Int>(0)
    /// Of the last picture that was matched, bits of a Double in radians; NaN while unknown.
    let roll = Atomic<UInt64>(Double.nan.bitPattern)
    let pitch = Atomic<UInt64>(Double.nan.bitPattern)

    func add(_ counter: borrowing Atomic<Int>) { counter.add(1, ordering: .relaxed) }

    var json: JSONNode {
        func value(_ counter: borrowing Atomic<Int>) -> JSONNode { .number(counter.load(ordering: .relaxed)) }
        func angle(_ name: String, _ bits: borrowing Atomic<UInt64>) -> [(String, JSONNode)] {
            let angle = Double(bitPattern: bits.load(ordering: .relaxed))
            return angle.isFinite ? [(name, MotionSync.degrees(angle))] : []
        }
        return .object(
            [
                ("matched", value(matched)), ("extrapolated", value(extrapolated)), ("withoutMotion", value(without)),
                ("samples", value(samples)), ("samplesLeftOut", value(leftOut)),
                ("ageMs", .number(Double(age.load(ordering: .relaxed)) / 1e6)),
            ] + angle("rollDegrees", roll) + angle("pitchDegrees", pitch))
    }
}
