// SPDX-License-Identifier: Apache-2.0

import FrameCore
import LiveInput

extension V4L2Source {
    /// The events that it posts.
    static let events = [
        EventDeclaration(
            "camera-lost", "The camera is lost. It is opened again when it is back.",
            [
                .string("reason", "Why."),
                .string("shown", "What is shown meanwhile.", words: WhileLost.allCases.map(\.rawValue) + ["nothing"]),
            ]),
        EventDeclaration(
            "camera-back", "The camera is back.",
            [
                .string("path", "Its device."),
                .number("awayMs", "How long it was lost (ms)."),
            ]),
        EventDeclaration(
            "camera-refused", "The camera is there, but cannot be used. Each reason is posted once."),
        EventDeclaration(
            "rate-differs", "The camera uses another rate than it lists.",
            [
                .number("listed", "Listed frames per second."),
                .number("set", "Actual frames per second."),
            ]),
        EventDeclaration(
            "control-changed", "The camera changed the value that a control was set to.",
            [
                .string("control", "Which."),
                .number("asked", "Requested value."),
                .number("value", "Actual value."),
            ]),
        EventDeclaration(
            "pictures-copied", "The driver does not write into the chain's buffers, although it accepted them."),
        EventDeclaration(
            "picture-damaged", "A picture was dropped. Posted only for the first."),
        EventDeclaration(
            "parameter-sets-changed", "The parameter sets of the camera's H.264 change."),
    ]
}
