// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Testing

@testable import Recorder

@Suite struct RecorderStateTests {
    static func ms(_ value: Int64) -> MediaTime { MediaTime(nanoseconds: value * 1_000_000) }

    @Test func beginsAtTheFirstKeyframe() {
        var state = RecordingState(startsAtOnce: true)
        #expect(state.phase == .starting)
        #expect(state.take(pts: Self.ms(0), isKeyframe: false, past: nil) == .awaitKeyframe)
        #expect(state.take(pts: Self.ms(40), isKeyframe: true, past: nil) == .begin)
        #expect(state.take(pts: Self.ms(80), isKeyframe: false, past: nil) == .record)
        #expect(state.end() == .recording)
        #expect(state.phase == .idle)
    }

    @Test func waitsForACommand() throws {
        var state = RecordingState(startsAtOnce: false)
        #expect(state.take(pts: .zero, isKeyframe: true, past: nil) == .idle)
        try state.start()
        #expect(state.take(pts: Self.ms(40), isKeyframe: false, past: nil) == .awaitKeyframe)
        #expect(state.take(pts: Self.ms(80), isKeyframe: true, past: nil) == .begin)
        #expect(try state.stop(reorders: false) == .finish)
        #expect(state.phase == .idle)
        #expect(state.take(pts: Self.ms(120), isKeyframe: true, past: nil) == .idle)
    }

    @Test func needsNoKeyframeWithAPast() throws {
        var state = RecordingState(startsAtOnce: false)
        try state.start()
        #expect(state.take(pts: Self.ms(40), isKeyframe: false, past: Self.ms(20)) == .begin)
    }

    /// I0 P3 | stop | b1 b2 P6: b1 and b2 are shown before P3 and belong to the recording, P6 does not.
    @Test func endsInTheOrderOfShowing() throws {
        var state = RecordingState(startsAtOnce: true)
        #expect(state.take(pts: Self.ms(0), isKeyframe: true, past: nil) == .begin)
        #expect(state.take(pts: Self.ms(3), isKeyframe: false, past: nil) == .record)
        #expect(try state.stop(reorders: true) == .wait)
        #expect(state.phase == .stopping)
        #expect(state.take(pts: Self.ms(1), isKeyframe: false, past: nil) == .record)
        #expect(state.take(pts: Self.ms(2), isKeyframe: false, past: nil) == .record)
        #expect(state.take(pts: Self.ms(6), isKeyframe: false, past: nil) == .finish)
        #expect(state.phase == .idle)
    }

    /// The past holds P4; b1 and b3 come after `start`, and a stop at once awaits b3.
    @Test func countsThePastWhenItEnds() throws {
        var state = RecordingState(startsAtOnce: false)
        try state.start()
        #expect(state.take(pts: Self.ms(1), isKeyframe: false, past: Self.ms(4)) == .begin)
        #expect(try state.stop(reorders: true) == .wait)
        #expect(state.take(pts: Self.ms(3), isKeyframe: false, past: Self.ms(4)) == .record)
        #expect(state.take(pts: Self.ms(8), isKeyframe: false, past: Self.ms(4)) == .finish)
    }

    @Test func refusesWhatMakesNoSense() throws {
        var state = RecordingState(startsAtOnce: false)
        #expect(throws: RecordingRefusal.notRecording) { try state.stop(reorders: true) }
        try state.start()
        #expect(throws: RecordingRefusal.alreadyStarting) { try state.start() }
        #expect(try state.stop(reorders: true) == .nothing)
        #expect(state.phase == .idle)
        try state.start()
        _ = state.take(pts: .zero, isKeyframe: true, past: nil)
        #expect(throws: RecordingRefusal.alreadyRecording) { try state.start() }
        _ = try state.stop(reorders: true)
        #expect(throws: RecordingRefusal.stillStopping) { try state.stop(reorders: true) }
        #expect(state.end() == .stopping)
    }

    @Test func beginsAgainRightAfterAStopThatWaits() throws {
        var state = RecordingState(startsAtOnce: true)
        #expect(state.take(pts: Self.ms(0), isKeyframe: true, past: nil) == .begin)
        #expect(state.take(pts: Self.ms(40), isKeyframe: false, past: nil) == .record)
        #expect(try state.stop(reorders: true) == .wait)
        try state.start()
        #expect(throws: RecordingRefusal.alreadyStarting) { try state.start() }
        #expect(state.take(pts: Self.ms(20), isKeyframe: false, past: nil) == .record)
        #expect(state.take(pts: Self.ms(60), isKeyframe: true, past: nil) == .finish)
        #expect(state.take(pts: Self.ms(60), isKeyframe: true, past: nil) == .begin)
        // Taken back before it began.
        _ = try state.stop(reorders: true)
        try state.start()
        #expect(try state.stop(reorders: true) == .nothing)
        #expect(state.take(pts: Self.ms(80), isKeyframe: true, past: nil) == .finish)
        #expect(state.take(pts: Self.ms(80), isKeyframe: true, past: nil) == .idle)
    }

    /// A recording that cannot be written begins anew, unless it was to end.
    @Test(arguments: [false, true]) func beginsAnewWhereWritingFails(startsAgain: Bool) throws {
        var state = RecordingState(startsAtOnce: true)
        #expect(state.take(pts: Self.ms(0), isKeyframe: true, past: nil) == .begin)
        let begins = state.writingFailed()
        #expect(begins && state.phase == .starting)
        #expect(state.take(pts: Self.ms(20), isKeyframe: true, past: nil) == .begin)
        #expect(try state.stop(reorders: true) == .wait)
        if startsAgain { try state.start() }
        let ends = state.writingFailed()
        #expect(!ends && state.phase == (startsAgain ? .starting : .idle))
        // Pictures that the recording would have waited for are not recorded any more.
        #expect(state.take(pts: Self.ms(10), isKeyframe: false, past: nil) == (startsAgain ? .awaitKeyframe : .idle))
    }

    @Test func saysSoInSentences() {
        let texts = [RecordingRefusal.alreadyStarting, .alreadyRecording, .stillStopping, .notRecording].map {
            $0.fault(of: "rec").description
        }
        #expect(
            texts == [
                "the recorder 'rec' is already starting a recording. Wait for the event 'recording-did-start'.",
                "the recorder 'rec' is already recording. To start another file, send 'stop', then 'start'.",
                "the recorder 'rec' is still finishing the last recording. Wait for the event 'recording-did-stop'.",
                "the recorder 'rec' is not recording, so there is nothing to stop.",
            ])
    }
}

@Suite struct RecorderSegmentPolicyTests {
    /// Keyframes every `interval` ms, pictures of `bytes` every 20 ms: where the files begin.
    private func cuts(_ policy: SegmentPolicy, interval: Int64, count: Int64, bytes: Int, jitter: [Int64] = [0])
        -> [Int64]
    {
        var policy = policy
        var begins: [Int64] = []
        for time in stride(from: 0, to: interval * count, by: 20) {
            let pts = RecorderStateTests.ms(time + jitter[Int(time / 20) % jitter.count])
            if time % interval == 0, begins.isEmpty || policy.cuts(beforeKeyframeAt: pts) {
                policy.beginFile(at: pts)
                begins.append(time)
            }
            policy.add(bytes: bytes)
        }
        return begins
    }

    @Test func cutsByTimeAtTheNextKeyframe() {
        #expect(
            cuts(SegmentPolicy(seconds: 5, megabytes: nil), interval: 2000, count: 10, bytes: 1) == [
                0, 6000, 12_000, 18_000,
            ])
        #expect(cuts(SegmentPolicy(seconds: 4, megabytes: nil), interval: 2000, count: 6, bytes: 1) == [0, 4000, 8000])
    }

    /// A camera's pictures come a few milliseconds early or late; a file is not a whole group longer for that.
    @Test func isPatientWithJitter() {
        let begins = cuts(
            SegmentPolicy(seconds: 4, megabytes: nil), interval: 2000, count: 6, bytes: 1,
            jitter: [3, -4, 0, 2, -5, 1, 0])
        #expect(begins == [0, 4000, 8000])
    }

    /// Each picture of MJPEG is a keyframe: a file is as long as asked to the picture, with jitter too.
    @Test(arguments: [[0], [3, -4, 0, 2, -5, 1, 0]]) func cutsAtAnyPictureOfMJPEG(jitter: [Int64]) {
        let begins = cuts(
            SegmentPolicy(seconds: 1.2, megabytes: nil), interval: 40, count: 100, bytes: 1, jitter: jitter)
        #expect(begins == [0, 1200, 2400, 3600])
    }

    /// 100 pictures a group, 1 kB each: two groups of 100 kB fit into 250 kB.
    @Test func staysBelowTheSize() {
        #expect(
            cuts(SegmentPolicy(seconds: nil, megabytes: 0.25), interval: 2000, count: 6, bytes: 1000) == [
                0, 4000, 8000,
            ])
        // A group that is larger by itself is a file.
        #expect(
            cuts(SegmentPolicy(seconds: nil, megabytes: 0.05), interval: 2000, count: 3, bytes: 1000) == [
                0, 2000, 4000,
            ])
    }

    @Test func isOneFileWithoutBounds() {
        let policy = SegmentPolicy(seconds: nil, megabytes: nil)
        #expect(!policy.isOn)
        #expect(cuts(policy, interval: 1000, count: 30, bytes: 1_000_000) == [0])
    }
}
