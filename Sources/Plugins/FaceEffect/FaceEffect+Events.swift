import FrameCore

extension FaceEffect {
    /// What it posts.
    static let events = [
        EventDeclaration(
            "faces", "The number of faces in the picture is another now.",
            [
                .number("count", "Faces that are followed.")
            ]),
        EventDeclaration(
            "detector-failed", "The detector has failed for the first time."),
        EventDeclaration(
            "detector-stuck", "The detector has not answered for 5 s."),
        EventDeclaration(
            "face-searches", "At the end: how often faces were looked for.",
            [
                .number("searches", "Searches."),
                .number("frames", "Frames that came."),
                .number("failed", "Searches that failed."),
            ]),
        EventDeclaration(
            "privacy", "With privacy, every 10 s and at the end: what became of the frames.",
            [
                .number("searched", "Frames that were searched in time."),
                .number("held", "Frames with a face covered that the search did not see."),
                .number("starting", "Frames covered wholly, as no answer had come since the start or a cut."),
                .number("late", "Frames covered wholly, as the answer came too late."),
                .number("failed", "Frames covered wholly, as the detector failed."),
                .number("uncovered", "Frames that went out as they came, as no face was found."),
            ]),
    ]
}
