// SPDX-License-Identifier: Apache-2.0

import FrameCore

extension ImageSink {
    /// The events that it posts.
    static let events = [
        EventDeclaration(
            "image-written", "A file is complete. Posted for the first of each second only.",
            [.string("path", "The file."), .number("bytes", "Its bytes.")]),
        EventDeclaration(
            "images-failing", "Pictures cannot be written, and are lost until they can. Posted once.",
            [.string("reason", "Why.")]),
        EventDeclaration(
            "images-resumed", "Pictures are written again.",
            [.number("lost", "How many pictures were lost meanwhile."), .string("path", "The first file.")]),
        EventDeclaration("no-keyframes", "With 'keyframesOnly', no picture so far was a keyframe. Posted once."),
        EventDeclaration(
            "images-removed", "The oldest files were removed because of 'keepSeconds' or 'keepMegabytes'.",
            [
                .string("path", "The oldest of them."), .number("files", "How many."),
                .number("bytes", "Their bytes."),
            ]),
        EventDeclaration(
            "images-not-removed",
            "Own files may not be removed (write-protected, no permission, no file locks), or files of the pattern have no mark of this stage. They are kept. Posted once for each.",
            [
                .string("path", "One of them."), .number("files", "How many there are."),
                .number("bytes", "Their bytes."),
            ]),
    ]
}
