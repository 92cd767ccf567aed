// SPDX-License-Identifier: Apache-2.0

import FrameCore

extension AudioMeter {
    /// The events that it posts.
    static let events = [
        EventDeclaration(
            "silence-began", "The sound has been below silenceLufs for silenceSeconds.",
            [
                .number("seconds", "How long it has been below (s)."),
                .bool("isDigital", "Whether every sample since was exactly 0: muted or disconnected, not just quiet."),
            ]),
        EventDeclaration(
            "silence-ended", "Sound is heard again.",
            [.number("seconds", "How long it was silent (s).")]),
    ]
}

extension Loudness {
    /// For programs, with two decimal places; null for digital silence.
    func figures(isSilent: Bool) -> JSONNode {
        func number(_ value: Double) -> JSONNode {
            value.isFinite ? .number((value * 100).rounded() / 100) : JSONNode(.null)
        }
        return [
            "momentaryLufs": number(momentary), "shortTermLufs": number(shortTerm),
            "integratedLufs": number(integrated), "truePeakDb": number(truePeak), "isSilent": .bool(isSilent),
        ]
    }
}
