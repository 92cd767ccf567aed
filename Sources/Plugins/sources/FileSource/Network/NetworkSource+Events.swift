// SPDX-License-Identifier: Apache-2.0

import FrameCore
import LiveInput

extension NetworkSource {
    /// The events that it posts.
    static let events = [
        EventDeclaration(
            "stream-lost", "The stream is lost. It is opened again when it is back.",
            [
                .string("reason", "Why."),
                .string("shown", "What is shown meanwhile.", words: WhileLost.allCases.map(\.rawValue)),
            ]),
        EventDeclaration(
            "stream-back", "The stream is there for the first time, or again.",
            [
                .number("awayMs", "How long it was lost (ms).")
            ]),
        EventDeclaration(
            "stream-refused",
            "The stream could not be opened, or cannot be used. Each reason is posted once for each loss."),
        EventDeclaration(
            "stream-damaged",
            "A packet or picture was damaged. Posted at the 1st, 10th, 100th … and at the end where pictures were given that the decoder guessed parts of.",
            [
                .number("damaged", "How many packets and pictures."),
                .number("frame", "While it plays: before which picture the newest one is."),
                .number("concealed", "At the end: how many of them were given."),
            ]),
        EventDeclaration(
            "packets-dropped", "The chain is too slow for the stream; packets are dropped."),
        EventDeclaration(
            "packets-missed",
            "RTP packets have been lost by the network, or left out by the sender. Posted at the 1st, 10th, 100th and so on.",
            [.number("missed", "How many so far.")]),
        EventDeclaration(
            "segments-missed",
            "Segments of an HLS playlist were left out: the server does not have them, or no longer. Posted at the 1st, 10th, 100th and so on.",
            [.number("missed", "How many so far.")]),
        EventDeclaration(
            "pictures-scaled", "The pictures change their size: they are now scaled, or no longer scaled.",
            [
                .string("from", "Size in the stream."),
                .string("to", "Size that is given."),
            ]),
        EventDeclaration(
            "color-changed",
            "The pictures' range or matrix differs from the planned one and is converted, or no longer differs.",
            [
                .string("from", "The colour of the stream."),
                .string("to", "The colour that is given."),
            ]),
        EventDeclaration(
            "keyframe-missing",
            "With \"decode\": false: the stream has had no keyframe (IDR, of H.265 also CRA) for 10 s, so nothing of it is given.",
            [.number("skipped", "How many access units were left out.")]),
        EventDeclaration(
            "parameter-sets-changed", "The parameter sets of the H.264, H.265 or AV1 stream change."),
        EventDeclaration(
            "sound-changed",
            "Of the output 'audio': rate or channels of the stream's sound differ from the planned ones. Decoded sound is converted; sound that is passed on is left out.",
            [
                .string("from", "Rate and channels of the stream."),
                .string("to", "What is given."),
            ]),
        EventDeclaration(
            "sound-damaged", "Of the output 'audio': a packet was damaged. Posted only for the first."),
        EventDeclaration(
            "sound-missing", "Of the output 'audio': the stream is there, but has no sound that can be given."),
        EventDeclaration(
            "units-missing",
            "Of the output 'units': the stream is there, but has no access units of the planned codec and size."),
    ]
}
