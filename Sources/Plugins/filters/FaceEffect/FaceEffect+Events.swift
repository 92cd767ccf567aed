// SPDX-License-Identifier: Apache-2.0

import FrameCore

extension FaceEffect {
    /// The events that it posts.
    static let events = [
        EventDeclaration(
            "faces", "The number of faces in the picture has changed.",
            [
                .number("count", "Number of faces that are tracked.")
            ]),
        EventDeclaration(
            "detector-failed", "The detector failed for the first time."),
        EventDeclaration(
            "detector-stuck", "The detector has not answered for 5 s."),
        EventDeclaration(
            "face-searches", "At the end: how many searches for faces there were.",
            [
                .number("searches", "Searches."),
                .number("frames", "Frames that arrived."),
                .number("failed", "Searches that failed."),
            ]),
        EventDeclaration(
            "privacy",
            "With privacy, every 10 s and at the end: how many of the frames that went out were covered, and why.",
            [
                .number("searched", "Frames that were searched in time."),
                .number("held", "Frames with a known face covered that their search did not find."),
                .number(
                    "starting", "Frames covered completely because no search had finished since the start or a cut."),
                .number("late", "Frames covered completely because the search finished too late."),
                .number("failed", "Frames covered completely because the detector failed."),
                .number("crowded", "Frames covered completely because there were more faces than can be followed."),
                .number("uncovered", "Frames passed on unchanged because no face was found."),
                .string(
                    "missed", "How many faces no search saw and no cover hid. Nobody can know.",
                    words: ["unknown"]),
            ]),
        EventDeclaration(
            "search-size",
            "With privacy in a live chain: the search was made coarser because it was late too often, or finer because there is time.",
            [
                .number("side", "Long side of the picture that is searched, in pixels."),
                .number("smallestFace", "Width from which 95 % of the faces are found, in pixels of the full picture."),
            ]),
        EventDeclaration(
            "search-late",
            "With privacy: a fifth of the frames of ten seconds, or at the end of the run, were covered completely because their search was late.",
            [
                .number("frames", "Frames that went out."),
                .number("late", "Frames covered completely because their search was late."),
            ]),
        EventDeclaration(
            "search-in-time", "With privacy: after 'search-late', most searches are in time again."),
        EventDeclaration(
            "crowd",
            "With privacy: there are more faces than can be followed, so that frames are covered completely. At most every 10 s.",
            [
                .number("most", "How many faces can be followed.")
            ]),
        EventDeclaration(
            "look-ahead", "At the end, with lookAheadSeconds: in how many frames faces were covered, and why.",
            [
                .number("found", "The frame's own search saw the face."),
                .number("bridged", "Earlier and later searches saw the face."),
                .number("before", "A later search was the first to see the face."),
                .number("held", "An earlier search saw the face."),
            ]),
    ]
}
