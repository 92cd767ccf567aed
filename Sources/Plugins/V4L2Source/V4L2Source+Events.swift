import FrameCore
import LiveInput

extension V4L2Source {
    /// What it posts.
    static let events = [
        EventDeclaration(
            "camera-lost", "The camera is away; it is opened again when it is back.",
            [
                .string("reason", "Why."),
                .string("shown", "What is shown meanwhile.", words: WhileLost.allCases.map(\.rawValue) + ["nothing"]),
            ]),
        EventDeclaration(
            "camera-back", "The camera is back.",
            [
                .string("path", "Its device."),
                .number("awayMs", "How long it was away (ms)."),
            ]),
        EventDeclaration(
            "camera-refused", "The camera is there again and cannot be used."),
        EventDeclaration(
            "rate-differs", "The camera is set to another rate than it lists.",
            [
                .number("listed", "Frames per second that it lists."),
                .number("set", "Frames per second that it is set to."),
            ]),
        EventDeclaration(
            "control-changed", "The camera makes another value of a control than it was given.",
            [
                .string("control", "Which."),
                .number("asked", "What was asked for."),
                .number("value", "What it is."),
            ]),
        EventDeclaration(
            "pictures-copied", "The driver does not write into the chain's buffers after all."),
        EventDeclaration(
            "picture-damaged", "A picture was left out, the first."),
        EventDeclaration(
            "parameter-sets-changed", "The camera's H.264 has other parameter sets from here on."),
    ]
}
