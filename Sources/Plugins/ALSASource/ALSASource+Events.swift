// SPDX-License-Identifier: Apache-2.0

import FrameCore

extension ALSASource {
    /// The events that it posts.
    static let events = [
        EventDeclaration(
            "device-lost", "The device is lost. It is opened again when it is back.", [.string("reason", "Why.")]),
        EventDeclaration(
            "device-back", "The device is back.",
            [
                .string("device", "Its name."),
                .number("awayMs", "How long it was lost (ms)."),
            ]),
        EventDeclaration("device-refused", "The device is back, but cannot be used."),
        EventDeclaration(
            "overrun",
            "The card's buffer has overrun, and the missing sound is replaced by silence. Posted at most once a second.",
            [
                .number("missingMs", "How much is missing, and was replaced by silence (ms)."),
                .number("overruns", "How often it has happened."),
            ]),
        EventDeclaration(
            "sound-jumped",
            "The card's time stamps have jumped. Sound was left out, or silence put in. Posted at most once a second.",
            [.number("byMs", "By how much; less than 0: sound was left out (ms).")]),
    ]
}
