// SPDX-License-Identifier: Apache-2.0

import FrameCore

struct MotionSyncOptions: StageOptions {
    @Option(
        help: "Added to the times of the motion: above 0 where the motion's times are too early.",
        range: -10_000...10_000, unit: "ms", live: true) var offsetMs = 0.0
    @Option(
        help: "How long a picture is exposed: it is matched to the middle of its exposure, and not to its PTS.",
        range: 0...1000, unit: "ms", live: true) var exposureMs = 0.0
    @Option(
        help:
            "How long a live picture waits for motion. Then the picture gets the motion of the last sample before its time.",
        range: 0...10_000, unit: "ms") var waitMs = 100
    @Option(
        help:
            "Samples further apart than this are not interpolated, and pictures between them get no motion. Default: five times the usual distance, at least 50 ms.",
        range: 1...60_000, unit: "ms", live: true) var gapMs: Double? = nil
    @Option(
        help: "How often the event 'motion' says how the camera moves. 0: never.",
        range: 0...3600, unit: "s", live: true) var reportSeconds = 0.0
}
