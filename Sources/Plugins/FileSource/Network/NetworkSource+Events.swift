import FrameCore
import LiveInput

extension NetworkSource {
    /// What it posts.
    static let events = [
        EventDeclaration(
            "stream-lost", "The stream is away; it is opened again when it is back.",
            [
                .string("reason", "Why."),
                .string("shown", "What is shown meanwhile.", words: WhileLost.allCases.map(\.rawValue)),
            ]),
        EventDeclaration(
            "stream-back", "The stream is there, or back.",
            [
                .number("awayMs", "How long it was away (ms).")
            ]),
        EventDeclaration(
            "stream-refused", "The stream is there and cannot be used."),
        EventDeclaration(
            "stream-damaged", "A packet or picture was damaged, the first."),
        EventDeclaration(
            "packets-dropped", "The chain is too slow for the stream, and packets are left out."),
        EventDeclaration(
            "pictures-scaled", "The pictures change their size and are scaled, or no longer are.",
            [
                .string("from", "Size in the stream."),
                .string("to", "Size that is given."),
            ]),
        EventDeclaration(
            "parameter-sets-changed", "The H.264 has other parameter sets from here on."),
    ]
}
