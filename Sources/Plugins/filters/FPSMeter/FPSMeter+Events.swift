// SPDX-License-Identifier: Apache-2.0

import FrameCore

extension FPSMeter {
    /// The events that it posts.
    static let events = [
        EventDeclaration(
            "fps", "The measurements of the last second, once a second.",
            [
                .number("fpsByPTS", "Frames per second, by their PTS."),
                .number("fpsByArrival", "Frames per second, by their arrival."),
                .number("jitterMs", "Jitter (ms)."),
                .number("latencyMs", "Time since capture (ms)."),
            ])
    ]
}
