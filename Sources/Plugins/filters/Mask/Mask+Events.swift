// SPDX-License-Identifier: Apache-2.0

import FrameCore

extension Mask {
    /// The events that it posts.
    static let events = [
        EventDeclaration(
            "areas-saved", "The areas have been written to 'areasFile'.",
            [.string("path", "The file."), .number("areas", "How many areas there are.")]),
        EventDeclaration(
            "areas-not-saved", "The areas hold for this run, but could not be written to 'areasFile'.",
            [.string("path", "The file."), .string("reason", "Why not.")]),
    ]
}
