// SPDX-License-Identifier: Apache-2.0

import FrameCore

extension FileSource {
    /// The events that it posts.
    static let events = [
        EventDeclaration(
            "track-not-carried", "A track of the file is dropped.",
            [
                .string("kind", "Kind of track."),
                .number("track", "Its number."),
                .string("codec", "Its codec."),
            ]),
        EventDeclaration(
            "sound-changed",
            "The rate or the channels of the sound change. Decoded sound is converted to what the chain was planned for; a copy leaves it out.",
            [
                .string("from", "Rate and channels: of a copy those before, of decoded sound those of the file."),
                .string("to", "Of a copy those from here on, of decoded sound those that are given."),
                .number("atSeconds", "Where, on the chain's timeline (s)."),
            ]),
        EventDeclaration(
            "sound-damaged",
            "Packets of sound could not be decoded, and are left out. Posted at the first one, and at the end.",
            [.number("damaged", "Number of such packets.")]),
        EventDeclaration(
            "pixels-converted", "The pictures are converted to another pixel format.",
            [
                .string("from", "The format of the file."),
                .string("to", "Format that is given."),
            ]),
        EventDeclaration(
            "rotation-not-carried", "The file asks for a rotation that is not a multiple of 90°."),
        EventDeclaration(
            "aspect-changed", "The sample aspect ratio changes; the pictures are scaled to the first.",
            [
                .string("from", "Before."),
                .string("to", "From here on."),
            ]),
        EventDeclaration(
            "color-changed", "The pictures' colour changes; range and matrix are converted to the first.",
            [
                .string("from", "Before."),
                .string("to", "From here on."),
            ]),
        EventDeclaration(
            "pictures-scaled", "The pictures change their size: they are now scaled, or no longer scaled.",
            [
                .string("from", "Size in the file."),
                .string("to", "Size that is given."),
            ]),
        EventDeclaration(
            "orientation-changed", "The orientation of the pictures changes.",
            [
                .string("from", "Before."),
                .string("to", "From here on."),
            ]),
        EventDeclaration(
            "interlaced", "The pictures are interlaced."),
        EventDeclaration(
            "keyframe-missing", "The file does not start with a keyframe.",
            [
                .number("packets", "Packets before the first keyframe.")
            ]),
        EventDeclaration(
            "times-step", "The times of the file begin anew, as where recordings were joined; all tracks go on.",
            [
                .number("seconds", "How far they step, ahead where positive."),
                .number("atSeconds", "Where, on the timeline of the file."),
            ]),
        EventDeclaration(
            "times-corrected", "Single times of the file were far from their neighbours, and count as not there.",
            [
                .number("packets", "How many."),
                .number("firstSeconds", "The first of them."),
            ]),
        EventDeclaration(
            "times-impossible", "Time stamps of the file lie outside the timeline.",
            [
                .number("ticks", "The first of them, in ticks."),
                .number("pictures", "At the end: how many pictures."),
                .number("timeStamps", "For sound: how many packets."),
            ]),
        EventDeclaration(
            "parameter-sets-changed", "The parameter sets of the H.264, H.265 or AV1 stream change."),
        EventDeclaration(
            "gap", "In real time: the file has no picture for a long time.",
            [
                .number("seconds", "How long (s)."),
                .number("atSeconds", "Where the gap starts (s)."),
            ]),
        EventDeclaration(
            "file-damaged", "The file is damaged. Posted at the 1st, 10th, 100th … fault and at the end.",
            [
                .number("damaged", "Number of damaged packets and pictures."),
                .number("atSeconds", "While it plays: where the newest one is (s)."),
                .number("concealed", "At the end: how many of them were given, with parts that the decoder guessed."),
            ]),
        EventDeclaration(
            "timeline-full", "The file is played only up to here: the chain's timeline ends after 73 years."),
        EventDeclaration(
            "file-incomplete", "The file ends early, or could not be read to its end.",
            [
                .number("missing", "Pictures in its index that are missing, or could not be decoded."),
                .number("of", "Of sound: how many packets its index has."),
                .number("missingBytes", "Bytes that its header gives and that are missing."),
                .number("holeSeconds", "Where the first pictures are missing (s)."),
                .number("nextSeconds", "When the pictures go on after that (s)."),
                .number("endSeconds", "End of its pictures (s)."),
                .number("lengthSeconds", "Length that its header gives (s)."),
            ]),
        EventDeclaration(
            "file-grew", "A file of a list has grown since the list was opened; what is new is left out.",
            [.number("endSeconds", "Where the file ends for this run (s).")]),
        EventDeclaration(
            "decoded-in-place", "At the end: how many pictures the decoder wrote into the chain's buffers.",
            [
                .number("inPlace", "These."),
                .number("copied", "Pictures that were copied there."),
            ]),
    ]
}
