// SPDX-License-Identifier: Apache-2.0

/// Notices the first frame that lies otherwise than expected, for a stage that can neither turn it nor say how it lies.
///
/// Such a stage declares ``event`` and posts it, as a warning.
public struct OrientationWatch: Sendable {
    /// The event of such a stage.
    public static let event = EventDeclaration(
        "orientation-not-carried", "From here on the pictures have another orientation than the stage can pass on.")

    private let expected: Orientation
    private var hasTold = false

    /// - Parameter expected: How the format says that frames lie.
    public init(_ expected: Orientation) { self.expected = expected }

    /// [stage thread] What the event says of this frame, as a sentence; nil but for the first that lies otherwise.
    public mutating func notice(_ frame: borrowing Frame) -> String? {
        let found = frame.orientation
        guard found != expected, !hasTold else { return nil }
        hasTold = true
        return
            "From frame \(frame.sequenceNumber) on the pictures are stored \(found), but were declared as \(expected)."
    }
}
