// SPDX-License-Identifier: Apache-2.0

import FrameCore

extension Recorder {
    /// The events that it posts.
    static let events = [
        EventDeclaration(
            "recording-did-start", "A recording has started; its first file exists.",
            [
                .string("path", "The file."),
                .number("startSeconds", "Time of its first picture (s)."),
                .string("startTime", "The same time in UTC; only in a live chain."),
            ]),
        EventDeclaration(
            "recording-will-stop", "A recording is being ended.",
            [
                .string("path", "The file.")
            ]),
        EventDeclaration(
            "recording-did-stop", "A recording has ended; its files are complete.",
            [
                .string("path", "The last file."),
                .number("files", "Number of files, if there are several."),
                .number("frames", "Pictures."),
                .number("bytes", "Bytes."),
                .number("seconds", "Duration (s)."),
                .number("startSeconds", "Time of its first picture (s), if there is one file."),
            ]),
        EventDeclaration(
            "recording-did-fail",
            "A recording has ended with an error, or could not begin.",
            [
                .string("path", "The file."),
                .number("savedFrames", "Number of pictures saved."),
                .number("savedBytes", "Number of bytes saved."),
                .number("savedFiles", "Number of complete files."),
                .bool(
                    "triesAgain", "Whether it begins again as soon as it can be written."),
            ]),
        EventDeclaration(
            "recording-loses",
            "Pictures are lost, because a recording that was asked for cannot be written. Posted once until it can."),
        EventDeclaration(
            "segment-did-start", "A new file of a recording in several files has started.",
            [
                .string("path", "The file."),
                .number("startSeconds", "Time of its first picture (s)."),
                .string("startTime", "The same time in UTC; only in a live chain."),
            ]),
        EventDeclaration(
            "segment-did-stop", "A file of a recording in several files is complete.",
            [
                .string("path", "The file."),
                .number("frames", "Pictures."),
                .number("bytes", "Bytes."),
                .number("seconds", "Duration (s)."),
                .number("startSeconds", "Time of its first picture (s)."),
            ]),
        EventDeclaration(
            "recording-removed", "The oldest file was removed because of 'keepSeconds' or 'keepMegabytes'.",
            [
                .string("path", "The file."),
                .number("bytes", "Its bytes."),
            ]),
        EventDeclaration(
            "recording-not-removed",
            "Own files may not be removed (write-protected, no permission, no file locks), or files of the pattern have no mark of this recorder. They are kept. Posted once for each.",
            [
                .string("path", "One of them."),
                .number("files", "How many there are."),
                .number("bytes", "Their bytes."),
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
            "motion-ended", "The motion of a file ends before the pictures.",
            [
                .string("path", "The file.")
            ]),
        EventDeclaration(
            "captions-ended", "The WebVTT file of a recording ends before it.",
            [
                .string("path", "The file.")
            ]),
        EventDeclaration(
            "motion-incomplete", "Samples of motion are missing, since the pictures came too late after them."),
        EventDeclaration(
            "sound-late", "Sound is left out, since its times lie before the start of the file. Posted once.",
            [
                .string("path", "The file."),
                .number("lateSeconds", "By how much the first of it is too late (s)."),
            ]),
        EventDeclaration(
            "sound-fitted",
            "Silence was put into a file's sound, or sound left out, so that it stays beside the pictures: in MP4 and MOV the samples of PCM and G.711 have no times of their own.",
            [
                .string("path", "The file.")
            ]),
        EventDeclaration(
            "sound-incomplete", "Sound is missing, since the pictures came too late after it."),
        EventDeclaration(
            "orientation-not-carried", "From here on the pictures have another orientation than the file declares."),
    ]
}
