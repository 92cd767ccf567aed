import FrameCore

extension Rate {
    /// What it posts.
    static let events = [
        EventDeclaration(
            "gap", "No frame came for so long that it is not filled with repeats.",
            [
                .number("seconds", "How long (s).")
            ]),
        EventDeclaration(
            "rate", "At the end: what was repeated and dropped.",
            [
                .number("taken", "Frames that came."),
                .number("given", "Frames that were given."),
                .number("repeats", "Frames that were given again."),
                .number("drops", "Frames that were dropped."),
                .number("gaps", "Gaps that were not filled."),
            ]),
    ]
}
