import FrameCore

extension FPSMeter {
    /// What it posts.
    static let events = [
        EventDeclaration(
            "fps", "Every second: what was measured.",
            [
                .number("fpsByPTS", "Frames per second by their times."),
                .number("fpsByArrival", "Frames per second as they came."),
                .number("jitterMs", "Jitter (ms)."),
                .number("latencyMs", "Time since capture (ms)."),
            ])
    ]
}
