// SPDX-License-Identifier: Apache-2.0

/// Notices the first frame that lies otherwise than expected, for a stage that can neither turn it nor say how it lies.
public struct OrientationWatch: Sendable {
    /// The event of such a stage.
    public static let event = EventDeclaration(
        "orientation-not-carried", "From here on the pictures have another orientation than the stage can pass on.")

    private let expected: Orientation
    private var hasTold = false

    /// - Parameter expected: How the format says that frames lie.
    public init(_ expected: Orientation) { self.expected = expected }

    /// [stage thread] Looks at a frame, and posts the event for the first that lies otherwise.
    ///
    /// - Parameter consequence: What others see, with its remedy, as whole sentences.
    public mutating func look(
        at frame: borrowing Frame, _ context: StageContext, _ consequence: @autoclosure () -> String
    ) {
        let found = frame.orientation
        guard found != expected, !hasTold else { return }
        hasTold = true
        context.post(
            Self.event.name, level: .warning,
            text:
                "From frame \(frame.sequenceNumber) on the pictures are stored \(found), but were declared as \(expected). \(consequence())"
        )
    }
}
