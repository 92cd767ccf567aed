import FrameCore

extension FileSource {
    /// What it posts.
    static let events = [
        EventDeclaration(
            "track-not-carried", "A track of the file goes nowhere.",
            [
                .string("kind", "What it has."),
                .number("track", "Its number."),
                .string("codec", "Its codec."),
            ]),
        EventDeclaration(
            "pixels-converted", "The pictures are converted to another pixel format.",
            [
                .string("from", "The format of the file."),
                .string("to", "The format that is given."),
            ]),
        EventDeclaration(
            "rotation-not-carried", "The file asks to be shown turned by something else than quarters."),
        EventDeclaration(
            "aspect-changed", "The shape of the pictures' samples changes; the chain keeps the first.",
            [
                .string("from", "The first."),
                .string("to", "The new one."),
            ]),
        EventDeclaration(
            "color-changed", "The pictures' colour changes; the chain keeps the first.",
            [
                .string("from", "The first."),
                .string("to", "The new one."),
            ]),
        EventDeclaration(
            "pictures-scaled", "The pictures change their size and are scaled, or no longer are.",
            [
                .string("from", "Size in the file."),
                .string("to", "Size that is given."),
            ]),
        EventDeclaration(
            "orientation-changed", "The pictures are to be shown turned otherwise from here on.",
            [
                .string("from", "Before."),
                .string("to", "From here on."),
            ]),
        EventDeclaration(
            "interlaced", "The pictures are interlaced."),
        EventDeclaration(
            "keyframe-missing", "The file does not begin with a keyframe.",
            [
                .number("packets", "Packets before the first one.")
            ]),
        EventDeclaration(
            "times-impossible", "Time stamps of the file lie outside the timeline.",
            [
                .number("ticks", "The first of them, in ticks."),
                .number("pictures", "At the end: how many pictures."),
                .number("timeStamps", "Of the sound: how many."),
            ]),
        EventDeclaration(
            "parameter-sets-changed", "The H.264 has other parameter sets from here on."),
        EventDeclaration(
            "gap", "In real time: the file has no picture for long.",
            [
                .number("seconds", "How long (s)."),
                .number("atSeconds", "From when on (s)."),
            ]),
        EventDeclaration(
            "file-damaged", "The file is damaged: at the first fault, and at the end.",
            [
                .number("damaged", "At the end: packets and pictures that were.")
            ]),
        EventDeclaration(
            "timeline-full", "The chain's timeline ends here."),
        EventDeclaration(
            "file-incomplete", "The file ends early, or could not be read to its end.",
            [
                .number("missing", "Pictures that its index has besides."),
                .number("endSeconds", "End of its pictures (s)."),
                .number("lengthSeconds", "Length by its own account (s)."),
            ]),
        EventDeclaration(
            "decoded-in-place", "At the end: how many pictures the decoder wrote into the chain's buffers.",
            [
                .number("inPlace", "These."),
                .number("copied", "Those that were copied there."),
            ]),
    ]
}
