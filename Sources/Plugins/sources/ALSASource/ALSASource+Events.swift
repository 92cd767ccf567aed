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
        EventDeclaration("device-refused", "The device is there, but cannot be used. Each reason is posted once."),
        EventDeclaration(
            "overrun",
            "The card's buffer has overrun, or the system had suspended the card. Missing sound of up to 5 s is replaced by silence; if more is missing, the times jump. Posted at most once a second.",
            [
                .number("missingMs", "How much is missing (ms)."),
                .number("overruns", "How often the card's buffer has overrun. Suspensions are not counted."),
            ]),
        EventDeclaration(
            "sound-jumped",
            "The card's time stamps have jumped. Sound is left out, or missing sound of up to 5 s is replaced by silence; if more is missing, the times jump. Posted at most once a second.",
            [.number("byMs", "By how much; less than 0: sound was left out (ms).")]),
    ]
}
