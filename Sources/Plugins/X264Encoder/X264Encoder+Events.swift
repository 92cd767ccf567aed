import FrameCore

extension X264Encoder {
    /// What it posts.
    static let events = [
        EventDeclaration(
            "picture-cut", "The picture has an odd side and is encoded without its last row or column.",
            [
                .number("width", "Width of what is encoded."),
                .number("height", "Height of what is encoded."),
            ])
    ]
}
