// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Foundation
import Testing

@testable import Recorder

/// The WebVTT files that a recorder writes beside its recordings.
@Suite struct RecorderCaptionTests {
    private let folder: ScratchFolder
    init() throws { folder = try ScratchFolder() }

    /// A WebVTT file as its description has it: cues in the order of their begins.
    private struct Track {
        var cues: [(begin: Double, end: Double, text: String)] = []

        init(_ path: String) throws {
            let blocks = try String(contentsOfFile: path, encoding: .utf8).components(separatedBy: "\n\n")
            try #require(blocks[0] == "WEBVTT framehost" || blocks == ["WEBVTT framehost\n"])
            for block in blocks.dropFirst() {
                let lines = block.split(separator: "\n").map(String.init)
                try #require(lines.count == 2)
                let times = lines[0].components(separatedBy: " --> ").map { text in
                    text.split(separator: ":").reduce(0.0) { $0 * 60 + (Double($1) ?? .nan) }
                }
                cues.append((times[0], times[1], lines[1]))
            }
            for (cue, next) in zip(cues, cues.dropFirst()) { #expect(cue.begin <= next.begin) }
            for cue in cues { #expect(cue.end > cue.begin) }
        }
    }

    private func driver(_ options: String, path: String = "a.mp4", isLive: Bool = false) throws
        -> StageDriver<Recorder>
    {
        try StageDriver(
            Recorder.self, options: "{ \"path\": \"\(folder.file(path))\", \"vtt\": true\(options) }",
            inputs: [.encoded(RecorderStreams.format())], isLive: isLive, metadata: [Faces.self])
    }

    /// Hands pictures over, with as many faces as `ids` says of each.
    private func send(
        _ units: [RecorderStreams.Unit], to recorder: StageDriver<Recorder>, faces ids: (Int) -> [UInt32] = { _ in [] },
        then: (Int) throws -> Void = { _ in }
    ) throws {
        let slot = try #require(recorder.context.slot(for: Faces.self))
        for (number, unit) in units.enumerated() {
            let made = try recorder.makeAccessUnit(
                unit.bytes, pts: unit.pts, dts: unit.dts, isKeyframe: unit.isKeyframe)
            made.duration = unit.duration
            made.capturedAt = unit.pts.nanoseconds + 7_000_000_000
            var faces = Faces(pictureWidth: 160, pictureHeight: 120)
            for id in ids(number) {
                var face = Faces.Face()
                face.id = id
                faces.append(face)
            }
            made[slot] = faces
            try recorder.send(made, from: 0)
            try then(number)
        }
    }

    private func event(_ text: String, level: Event.Level = .info, at time: Double = 0, pts: Double? = nil) -> Event {
        Event(
            name: "seen", stage: "door", level: level, text: text, time: MediaTime(seconds: time).nanoseconds,
            pts: pts.map { MediaTime(seconds: $0) })
    }

    private func expect(_ name: String, _ wanted: [(Double, Double, String)]) throws {
        let found = try Track(folder.file(name)).cues
        let isEqual =
            found.count == wanted.count
            && zip(found, wanted).allSatisfy {
                abs($0.begin - $1.0) < 0.0015 && abs($0.end - $1.1) < 0.0015 && $0.text == $1.2
            }
        #expect(isEqual, "\(found)")
    }

    @Test(arguments: ["mp4", "mov", "mkv"]) func saysWhichFacesAreInSight(ending: String) throws {
        let recorder = try driver("", path: "a.\(ending)")
        func ids(_ number: Int) -> [UInt32] {
            switch number {
            case 10..<30: [4]
            case 30..<40: [4, 7]
            case 60..<70: Array(1...10)
            default: []
            }
        }
        try send(RecorderStreams.steady(100, from: 5) { $0 % 25 == 0 }, to: recorder, faces: ids)
        try recorder.finish()
        #expect(recorder.takeEvents().allSatisfy { $0.level < .warning })
        #expect(RecorderStreams.names(in: folder) == ["a.\(ending)", "a.vtt"].sorted())
        try expect(
            "a.vtt",
            [
                (5.4, 6.2, "1 face: 4"), (6.2, 6.6, "2 faces: 4, 7"),
                (7.4, 7.8, "10 faces: 1, 2, 3, 4, 5, 6, 7, 8, …"),
            ])
    }

    /// Times of 30 pictures a second are no whole nanoseconds.
    @Test func bridgesWhatRoundingLeaves() throws {
        let recorder = try driver("")
        let units = (0..<90).map { number in
            RecorderStreams.Unit(
                pts: TimeBase(1, 30).time(ofTicks: Int64(number)), dts: TimeBase(1, 30).time(ofTicks: Int64(number)),
                duration: MediaTime(nanoseconds: 33_333_333), isKeyframe: number == 0,
                bytes: RecorderStreams.payload(number, bytes: 100, isKeyframe: number == 0))
        }
        try send(units, to: recorder, faces: { $0 < 60 ? [1] : [] })
        try recorder.finish()
        try expect("a.vtt", [(0, 2, "1 face: 1")])
    }

    /// A camera in the dark gives half as many pictures as it says, and not evenly.
    @Test func bridgesPicturesThatComeLate() throws {
        let recorder = try driver("")
        let units = (0..<60).map { number in
            let pts = MediaTime(seconds: Double(number) / 15 + Double(number * 7 % 5) * 0.003)
            return RecorderStreams.Unit(
                pts: pts, dts: pts, duration: MediaTime(nanoseconds: 33_333_333), isKeyframe: number == 0,
                bytes: RecorderStreams.payload(number, bytes: 100, isKeyframe: number == 0))
        }
        try send(units, to: recorder, faces: { (15..<30).contains($0) || (31..<45).contains($0) ? [1] : [] })
        try recorder.finish()
        let cues = try Track(folder.file("a.vtt")).cues
        // One picture without a face lies between.
        #expect(cues.count == 2, "\(cues)")
        #expect(cues.allSatisfy { $0.end - $0.begin > 0.85 }, "\(cues)")
    }

    /// A file that begins later than 0 keeps its times, and so do its captions.
    @Test func goesByTheTimesOfTheFile() throws {
        let recorder = try driver("", path: "a.mkv")
        try send(
            RecorderStreams.steady(100, from: 5) { $0 == 0 }, to: recorder, faces: { (25..<50).contains($0) ? [1] : [] }
        )
        try recorder.finish()
        let first = try RecorderStreams.packets(of: folder.file("a.mkv")).packets[0].pts
        try expect("a.vtt", [(Double(first) / 1000 + 1, Double(first) / 1000 + 2, "1 face: 1")])
    }

    @Test func escapesWhatIsPutTogetherWithMarks() {
        var bytes: [UInt8] = []
        CaptionText.add(
            Caption(begin: .zero, end: .zero, text: "a -->\u{301} <\u{338}b &\u{301}\u{2028}c"), origin: .zero,
            to: &bytes)
        #expect(
            String(decoding: bytes, as: UTF8.self)
                == "\n00:00:00.000 --> 00:00:00.001\na --&gt;\u{301} &lt;\u{338}b &amp;\u{301} c\n")
    }

    @Test func saysThatEventsAreMissing() throws {
        let recorder = try driver("")
        try send(
            RecorderStreams.steady(50) { $0 == 0 }, to: recorder,
            then: { number in
                if number == 10 { for index in 0..<3000 { recorder.post(event("many \(index)", pts: 1)) } }
            })
        try recorder.finish()
        let cues = try Track(folder.file("a.vtt")).cues
        let missing = cues.compactMap { cue in
            cue.text.hasSuffix(" events are missing here") ? Int(cue.text.prefix { $0.isNumber }) : nil
        }
        #expect(
            !missing.isEmpty && missing.reduce(0, +) + cues.count - missing.count >= 3000, "\(missing), \(cues.count)")
    }

    /// The faces up to there were seen, though the file ends.
    @Test func isWholeWhereTheRecordingFails() throws {
        let recorder = try driver("")
        let units = RecorderStreams.steady(100) { $0 == 0 }
        try send(Array(units.prefix(50)), to: recorder, faces: { _ in [1] })
        // A picture that no MP4 can have at this place ends the recording.
        let late = RecorderStreams.Unit(
            pts: MediaTime(seconds: 400_000), dts: MediaTime(seconds: 400_000), duration: units[0].duration,
            isKeyframe: false, bytes: units[1].bytes)
        #expect(throws: (any Error).self) { try send([late], to: recorder) }
        try expect("a.vtt", [(0, 2, "1 face: 1")])
    }

    /// `overwrite` is for recordings and what lies beside them, not for anybody's subtitles.
    @Test func replacesNoCaptionsOfOthers() throws {
        try "WEBVTT\n\n00:00.000 --> 00:01.000\nmine\n".write(
            toFile: folder.file("a.vtt"), atomically: false, encoding: .utf8)
        let sentence =
            "\(folder.file("a.vtt"))' was not made by a recorder, so it is not replaced. Move it away, or record under another name."
        #expect { _ = try driver(#", "overwrite": true"#) } throws: { "\($0)".contains(sentence) }
        #expect(RecorderStreams.names(in: folder) == ["a.vtt"])
        #expect(try String(contentsOfFile: folder.file("a.vtt"), encoding: .utf8).contains("mine"))
        // A link is not followed.
        symlink("a.vtt", folder.file("b.vtt"))
        #expect { _ = try driver(#", "overwrite": true"#, path: "b.mp4") } throws: { "\($0)".contains("b.vtt' ") }
        // Our own from before is.
        for _ in 0..<2 {
            let recorder = try driver(#", "overwrite": true"#, path: "c.mp4")
            try send(RecorderStreams.steady(10) { $0 == 0 }, to: recorder)
            try recorder.finish()
        }
        #expect(RecorderStreams.names(in: folder) == ["a.vtt", "b.vtt", "c.mp4", "c.vtt"])
    }

    /// Two recorders with one stem: the retention of one leaves what lies beside the other's recordings.
    @Test func leavesTheCaptionsOfAnotherRecording() throws {
        let other = try driver(#", "segmentSeconds": 1, "finalize": "never""#, path: "a-{nn}.mkv")
        try send(RecorderStreams.steady(100) { $0 % 25 == 0 }, to: other, faces: { _ in [1] })
        try other.finish()
        let recorder = try StageDriver(
            Recorder.self,
            options:
                #"{ "path": "\#(folder.file("a-{nn}.mp4"))", "segmentSeconds": 1, "keepMegabytes": 0.001, "finalize": "never" }"#,
            inputs: [.encoded(RecorderStreams.format())])
        for unit in RecorderStreams.steady(125, isKey: { $0 % 25 == 0 }) {
            let made = try recorder.makeAccessUnit(unit.bytes, pts: unit.pts, isKeyframe: unit.isKeyframe)
            made.duration = unit.duration
            try recorder.send(made, from: 0)
        }
        try recorder.finish()
        let theirs = (1...4).flatMap { ["a-0\($0).mkv", "a-0\($0).vtt"] }
        let names = RecorderStreams.names(in: folder)
        #expect(names.filter { !$0.hasSuffix(".mp4") } == theirs)
        #expect(recorder.takeEvents().count { $0.name == "recording-removed" } >= 4)
    }

    /// By the picture that the stage had in hand.
    @Test func saysWhatStagesSay() throws {
        let recorder = try driver("")
        try send(
            RecorderStreams.steady(100, from: 5) { $0 == 0 }, to: recorder, faces: { (25..<75).contains($0) ? [1] : [] }
        ) {
            number in
            if number == 10 {
                // Of a picture that the recorder has yet to see, of one that it has seen, and of none.
                recorder.post(event("later: a < b & c\nd", pts: 6.5))
                recorder.post(event("now", pts: 5.2))
                recorder.post(event("without a picture"))
                recorder.post(event("unheard", level: .debug, pts: 5.3))
            }
        }
        try recorder.finish()
        try expect(
            "a.vtt",
            [
                (5.2, 7.2, "door (seen): now"), (5.44, 7.44, "door (seen): without a picture"), (6, 8, "1 face: 1"),
                (6.5, 8.5, "door (seen): later: a &lt; b &amp; c\\nd"),
            ])
    }

    /// In a live chain by the clock: a picture's capture tells which time of the clock is which PTS.
    @Test func placesEventsOfALiveChainByTheClock() throws {
        let recorder = try driver("", isLive: true)
        try send(
            RecorderStreams.steady(100, from: 5) { $0 == 0 }, to: recorder,
            then: { number in
                if number == 20 { recorder.post(event("rang", at: 7 + 5 + 0.5)) }
            })
        try recorder.finish()
        try expect("a.vtt", [(0.5, 2.5, "door (seen): rang")])
    }

    @Test func givesEachSegmentItsOwn() throws {
        let recorder = try driver(#", "segmentSeconds": 2"#)
        try send(RecorderStreams.steady(150) { $0 % 25 == 0 }, to: recorder, faces: { $0 < 75 ? [9] : [] }) { number in
            if number == 60 { recorder.post(event("rang", pts: 2.25)) }
        }
        try recorder.finish()
        #expect(RecorderStreams.names(in: folder) == (1...3).flatMap { ["a-000\($0).mp4", "a-000\($0).vtt"] })
        try expect("a-0001.vtt", [(0, 2, "1 face: 9")])
        try expect("a-0002.vtt", [(0, 1, "1 face: 9"), (0.25, 2.25, "door (seen): rang")])
        try expect("a-0003.vtt", [])
    }

    /// What was seen before the recording was asked for is in the memory of the past.
    @Test func reachesAsFarBackAsTheRecording() throws {
        let recorder = try driver(#", "record": "onCommand", "preEventSeconds": 2"#, isLive: true)
        try send(RecorderStreams.steady(150) { $0 % 25 == 0 }, to: recorder, faces: { $0 == 80 ? [3] : [] }) { number in
            if number == 10 { recorder.post(event("too early", pts: 0.4)) }
            if number == 90 { recorder.post(event("before", pts: 3.6)) }
            if number == 100 { try recorder.command("start") }
        }
        try recorder.finish()
        let cues = try Track(folder.file("a-0001.vtt")).cues
        #expect(cues.map(\.text) == ["1 face: 3", "door (seen): before"])
        #expect(cues.count == 2 && abs(cues[1].begin - cues[0].begin - 0.4) < 0.002, "\(cues)")
    }

    /// Hours of one face are cut, so that what happens meanwhile is in the file soon.
    @Test func cutsALongSight() throws {
        let recorder = try driver("")
        try send(RecorderStreams.steady(625) { $0 % 25 == 0 }, to: recorder, faces: { _ in [1] })
        #expect(try Track(folder.file("a.vtt")).cues.count == 2)
        try recorder.finish()
        try expect("a.vtt", [(0, 10, "1 face: 1"), (10, 20, "1 face: 1"), (20, 25, "1 face: 1")])
    }

    @Test func keepsTheRulesOfNames() throws {
        try "mine".write(toFile: folder.file("a.vtt"), atomically: false, encoding: .utf8)
        #expect {
            let recorder = try driver("")
            try send(RecorderStreams.steady(10) { $0 == 0 }, to: recorder)
            try recorder.finish()
        } throws: {
            "\($0)".contains("a.vtt' exists already. Move it away, or record under another name.")
        }
        #expect(RecorderStreams.names(in: folder) == ["a.vtt"])
        let recorder = try driver("", path: "b-{nn}.mp4")
        try "mine".write(toFile: folder.file("b-01.vtt"), atomically: false, encoding: .utf8)
        try send(RecorderStreams.steady(10) { $0 == 0 }, to: recorder)
        try recorder.finish()
        #expect(RecorderStreams.names(in: folder) == ["a.vtt", "b-01.vtt", "b-02.mp4", "b-02.vtt"])
    }

    @Test func goesWithItsRecording() throws {
        let recorder = try driver(
            #", "segmentSeconds": 1, "keepMegabytes": 0.02, "finalize": "never""#, path: "a-{nn}.mp4")
        try send(RecorderStreams.steady(250, bytes: 300) { $0 % 25 == 0 }, to: recorder, faces: { _ in [1] })
        try recorder.finish()
        let names = RecorderStreams.names(in: folder)
        let recordings = names.filter { $0.hasSuffix(".mp4") }
        #expect(recordings.count < 5 && recordings.last == "a-10.mp4", "\(names)")
        #expect(names == recordings.flatMap { [$0, $0.replacingOccurrences(of: "mp4", with: "vtt")] })
    }

    @Test func writesTimesAsWebVTTHasThem() {
        #expect(CaptionText.time(.zero) == "00:00:00.000")
        #expect(CaptionText.time(MediaTime(nanoseconds: 3_723_004_999_999)) == "01:02:03.004")
        #expect(CaptionText.time(MediaTime(seconds: 360_000)) == "100:00:00.000")
    }
}
