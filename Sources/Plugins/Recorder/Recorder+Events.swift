import FrameCore

extension Recorder {
    /// What it posts.
    static let events = [
        EventDeclaration(
            "recording-did-start", "A recording has begun; its first file is there.",
            [
                .string("path", "The file."),
                .number("startSeconds", "Time of its first picture (s)."),
                .string("startTime", "The same in UTC, in a live chain."),
            ]),
        EventDeclaration(
            "recording-will-stop", "A recording is being ended.",
            [
                .string("path", "The file.")
            ]),
        EventDeclaration(
            "recording-did-stop", "A recording has ended; its files are whole.",
            [
                .string("path", "The last file."),
                .number("files", "Files, where there are several."),
                .number("frames", "Pictures."),
                .number("bytes", "Bytes."),
                .number("seconds", "How long it is (s)."),
                .number("startSeconds", "Time of its first picture (s), where there is one file."),
            ]),
        EventDeclaration(
            "recording-did-fail", "A recording has ended with a fault.",
            [
                .string("path", "The file."),
                .number("savedFrames", "Pictures that were saved."),
                .number("savedBytes", "Bytes that were saved."),
                .number("savedFiles", "Files that are whole."),
            ]),
        EventDeclaration(
            "segment-did-start", "A file of a recording in several has begun.",
            [
                .string("path", "The file."),
                .number("startSeconds", "Time of its first picture (s)."),
                .string("startTime", "The same in UTC, in a live chain."),
            ]),
        EventDeclaration(
            "segment-did-stop", "A file of a recording in several is whole.",
            [
                .string("path", "The file."),
                .number("frames", "Pictures."),
                .number("bytes", "Bytes."),
                .number("seconds", "How long it is (s)."),
                .number("startSeconds", "Time of its first picture (s)."),
            ]),
        EventDeclaration(
            "recording-removed", "The oldest file was removed, by 'keepSeconds' or 'keepMegabytes'.",
            [
                .string("path", "The file."),
                .number("bytes", "Its bytes."),
            ]),
        EventDeclaration(
            "recording-not-removed", "Files of earlier runs cannot be removed safely, and stay.",
            [
                .string("path", "One of them.")
            ]),
        EventDeclaration(
            "recording-finalised", "A file was rewritten with its index in front.",
            [
                .string("path", "The file."),
                .number("bytes", "Its bytes."),
            ]),
        EventDeclaration(
            "recording-not-finalised", "A file stays in fragments.",
            [
                .string("path", "The file."),
                .number("bytes", "Its bytes."),
            ]),
        EventDeclaration(
            "pre-event-too-small", "The memory for the past holds less than preEventSeconds."),
        EventDeclaration(
            "sound-missing", "There is no sound to copy."),
        EventDeclaration(
            "sound-ended", "The sound ends before the pictures."),
        EventDeclaration(
            "orientation-not-carried", "The pictures are turned otherwise than the file says from here on."),
    ]
}
