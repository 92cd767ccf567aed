// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// What a recorder is doing, and what it does at each event. Pure: no files, no threads, no clock.
///
/// ```
///                     ┌──writing fails───────┐
///                     ▼                      │
/// idle ──start──► starting ──keyframe──► recording ──stop──► stopping ──last picture in the order of showing──► idle
///   ▲                │ stop                  │ end of input                 │ end of input
///   └────────────────┴───────────────────────┴──────────────────────────────┘
/// ```
struct RecordingState: Equatable {
    enum Phase: String {
        /// Not recording. Units are not used.
        case idle
        /// Asked to record; waits for an access unit that can be decoded alone.
        case starting
        case recording
        /// Asked to end. It still waits for pictures that are shown before the latest recorded one (B-frames come after
        /// the picture that they are shown before).
        case stopping
    }

    /// What to do with the access unit in hand.
    enum Step: Equatable {
        /// Not recording.
        case idle
        /// The unit cannot be decoded without those before it.
        case awaitKeyframe
        /// A recording begins: with what the ring holds, or with this unit where there is no ring.
        case begin
        case record
        /// The recording was complete before this unit, which is not part of it. `take` must then be called again,
        /// since a `start` may have come.
        case finish
    }

    /// What to do at once when a recording is asked to end.
    enum StopStep: Equatable {
        /// The recording had not begun: there is no file.
        case nothing
        /// All pictures up to the latest are there.
        case finish
        /// ``take(pts:isKeyframe:past:)`` says when.
        case wait
    }

    private(set) var phase: Phase
    /// Whether a `start` has come while the last recording waits for its end.
    private var startsAgain = false
    /// The latest PTS of the recording so far.
    private var latest = MediaTime(nanoseconds: .min)

    init(startsAtOnce: Bool) { phase = startsAtOnce ? .starting : .idle }

    /// The command `start`.
    mutating func start() throws(RecordingRefusal) {
        switch phase {
        case .idle: phase = .starting
        case .starting: throw .alreadyStarting
        case .recording: throw .alreadyRecording
        case .stopping:
            guard !startsAgain else { throw .alreadyStarting }
            startsAgain = true
        }
    }

    /// The command `stop`.
    ///
    /// - Parameter reorders: Whether a picture can come after one that is shown later.
    mutating func stop(reorders: Bool) throws(RecordingRefusal) -> StopStep {
        switch phase {
        case .idle: throw .notRecording
        case .stopping:
            guard startsAgain else { throw .stillStopping }
            startsAgain = false
            return .nothing
        case .starting:
            phase = .idle
            return .nothing
        case .recording:
            phase = reorders ? .stopping : .idle
            return reorders ? .wait : .finish
        }
    }

    /// Decides about one access unit.
    ///
    /// - Parameter past: The latest PTS in the ring, nil where it is empty. With units in the ring this one can always
    ///   be decoded.
    mutating func take(pts: MediaTime, isKeyframe: Bool, past: MediaTime?) -> Step {
        switch phase {
        case .idle: return .idle
        case .starting:
            guard isKeyframe || past != nil else { return .awaitKeyframe }
            phase = .recording
            latest = max(pts, past ?? pts)
            return .begin
        case .recording:
            latest = max(latest, pts)
            return .record
        case .stopping:
            if pts < latest { return .record }
            phase = startsAgain ? .starting : .idle
            startsAgain = false
            return .finish
        }
    }

    /// The recording cannot be written.
    ///
    /// - Returns: Whether it begins anew; otherwise it was to end anyway, and has ended.
    mutating func writingFailed() -> Bool {
        guard phase == .recording || phase == .starting else {
            if phase == .stopping { phase = startsAgain ? .starting : .idle }
            startsAgain = false
            return false
        }
        phase = .starting
        return true
    }

    /// The input has ended, the run was stopped, or writing has failed. Nothing is recorded from here on.
    ///
    /// - Returns: The phase that has ended.
    @discardableResult
    mutating func end() -> Phase {
        defer {
            phase = .idle
            startsAgain = false
        }
        return phase
    }
}

/// Why a command changes nothing.
enum RecordingRefusal: Error {
    case alreadyStarting, alreadyRecording, stillStopping, notRecording

    /// The fault for the sender of the command.
    ///
    /// - Parameter id: The recorder's id.
    func fault(of id: String) -> FrameHostError {
        switch self {
        case .alreadyStarting:
            FrameHostError(
                .invalidConfiguration, what: "the recorder '\(id)' is already starting a recording",
                remedy: "Wait for the event 'recording-did-start'.")
        case .alreadyRecording:
            FrameHostError(
                .invalidConfiguration, what: "the recorder '\(id)' is already recording",
                remedy: "To start another file, send 'stop', then 'start'.")
        case .stillStopping:
            FrameHostError(
                .invalidConfiguration, what: "the recorder '\(id)' is still finishing the last recording",
                remedy: "Wait for the event 'recording-did-stop'.")
        case .notRecording:
            FrameHostError(
                .invalidConfiguration, what: "the recorder '\(id)' is not recording, so there is nothing to stop")
        }
    }
}
