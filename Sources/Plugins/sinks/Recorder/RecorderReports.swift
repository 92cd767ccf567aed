// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Recordings
import Reports

/// What the recorder reports beside its files' events, most of it once.
struct RecorderReports {
    private let context: StageContext
    private var reported = Reported()

    init(_ context: StageContext) { self.context = context }

    /// `'out.mp4'`
    private static func name(_ path: String?) -> String { path.map { "'\($0)'" } ?? "the recording" }

    mutating func motionIsIncomplete(_ path: String?) {
        context.post(
            "motion-incomplete", once: &reported, level: .warning,
            text:
                "Samples of motion are missing in \(Self.name(path)): the memory for motion was full before the matching pictures arrived. Find the stage that delays the pictures."
        )
    }

    mutating func soundIsIncomplete(_ path: String?) {
        context.post(
            "sound-incomplete", once: &reported, level: .warning,
            text:
                "Sound is missing in \(Self.name(path)): the memory for sound was full before the matching pictures arrived. Find the stage that delays the pictures."
        )
    }

    /// Reports sound whose file is already complete, or whose time is before the recording.
    mutating func soundIsLate(_ late: MediaTime, _ path: String) {
        context.post(
            "sound-late", once: &reported, level: .warning,
            text:
                "Sound is left out of '\(path)': its times lie \(RecordingFault.shortSeconds(late.seconds)) s before the start of the file. Make sure that the times of sound and pictures come from the same clock, or find the stage that delays the sound.",
            details: ["path": .string(path), "lateSeconds": .number(late.seconds)])
    }

    mutating func pastIsTooSmall(_ text: @autoclosure () -> String) {
        context.post("pre-event-too-small", once: &reported, level: .warning, text: text())
    }

    /// A recording waits for room. What it loses meanwhile is reported once.
    mutating func recordingWaits() { reported.forget("recording-loses") }

    mutating func recordingLoses(_ text: @autoclosure () -> String) {
        context.post("recording-loses", once: &reported, level: .warning, text: text())
    }

    func recordingWillStop(_ path: String?) {
        context.post(
            "recording-will-stop", text: "The recording to '\(path ?? "")' is being finished.",
            details: ["path": .string(path ?? "")])
    }

    func recordingFailed(
        _ text: String, level: Event.Level, _ path: String, _ saved: Recording.Total, triesAgain: Bool
    ) {
        context.post(
            "recording-did-fail", level: level, text: text,
            details: [
                "path": .string(path), "savedFrames": .number(saved.frames), "savedBytes": .number(saved.bytes),
                "savedFiles": .number(saved.files), "triesAgain": .bool(triesAgain),
            ])
    }
}
