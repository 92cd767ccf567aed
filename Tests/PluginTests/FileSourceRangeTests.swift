// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Foundation
import Testing

@testable import FileSource

/// Beginning, ending and beginning again: exact in every container, whatever it can do to be entered in the middle.
@Suite struct FileSourceRangeTests {
    /// File names and what ffmpeg makes them of; B-frames and long GOPs, so that a keyframe is rarely where one is
    /// wanted.
    static let clips: [(name: String, codec: [String])] = [
        ("a.mp4", ["-c:v", "libx264", "-bf", "3", "-g", "20"]), ("a.mkv", ["-c:v", "libx264", "-bf", "3", "-g", "20"]),
        ("a.ts", ["-c:v", "libx264", "-bf", "3", "-g", "20"]),
        ("late.ts", ["-c:v", "libx264", "-g", "20", "-output_ts_offset", "5"]),
        ("late.mp4", ["-c:v", "libx264", "-g", "20", "-output_ts_offset", "5"]),
        ("a.avi", ["-c:v", "mpeg4", "-g", "20"]),
        ("a.mpg", ["-c:v", "mpeg2video", "-bf", "2", "-g", "15"]),
        ("open.mkv", ["-c:v", "libx264", "-bf", "3", "-x264-params", "open-gop=1:keyint=12"]),
        ("a.h264", ["-c:v", "libx264", "-bf", "3", "-g", "20"]), ("a.gif", []),
        ("a.webm", ["-c:v", "libvpx", "-g", "20", "-deadline", "realtime", "-cpu-used", "8"]),
    ]

    static func make(_ clip: (name: String, codec: [String]), in folder: ScratchFolder) throws -> String {
        let program = try #require(Tool.ffmpeg, "ffmpeg is not installed: make test-packages")
        try Tool.run(
            program,
            ["-nostdin", "-v", "error", "-y", "-f", "lavfi", "-i", ClipMaker.moving()]
                + ["-pix_fmt", clip.name == "a.gif" ? "bgr8" : "yuv420p"] + clip.codec + [folder.file(clip.name)])
        return folder.file(clip.name)
    }

    @Test(.needsFFmpeg, arguments: clips) func playsExactlyTheRangeThatIsAskedFor(clip: (name: String, codec: [String]))
        throws
    {
        let folder = try ScratchFolder()
        let path = try Self.make(clip, in: folder)
        let whole = try ClipMaker.play(path).pictures
        #expect(whole.count == 50)
        let begin = whole[0].pts
        // Starts shortly before a keyframe, in the middle of a GOP, near the end.
        for start in [0.04, 0.5, 0.77, 1.19, 1.96] {
            let (first, last) = (begin + MediaTime(seconds: start), begin + MediaTime(seconds: start + 0.32))
            let expected = whole.filter { $0.pts >= first && $0.pts < last }
            let part = try ClipMaker.play(path, options: #", "start": \#(start), "duration": 0.32"#)
            #expect(part.pictures.map(\.hash) == expected.map(\.hash), "\(clip.name) from \(start) s")
            let shift = MediaTime(seconds: start)
            // The begin of the time line falls on a tick.
            let tolerance = part.format.timeBase.time(ofTicks: 1).nanoseconds / 2 + 1
            #expect(
                zip(part.pictures, expected).allSatisfy {
                    abs($0.pts.nanoseconds - ($1.pts - shift).nanoseconds) <= tolerance
                },
                "\(clip.name) from \(start) s: \(part.pictures.map(\.pts.seconds))")
            #expect(part.events.filter { $0.level >= .warning }.isEmpty, "\(part.events.map(\.text))")
        }
    }

    @Test(.needsFFmpeg, arguments: clips) func repeatsTheSamePicturesWithoutAGap(clip: (name: String, codec: [String]))
        throws
    {
        let folder = try ScratchFolder()
        let path = try Self.make(clip, in: folder)
        let whole = try ClipMaker.play(path).pictures
        try #require(whole.count == 50)
        let looped = try ClipMaker.play(path, options: #", "loop": true"#, atMost: 120).pictures
        #expect(looped.map(\.hash) == (0..<looped.count).map { whole[$0 % 50].hash })
        let steps = zip(looped.dropFirst(), looped).map { ($0.pts - $1.pts).seconds }
        #expect(steps.allSatisfy { abs($0 - 0.04) < 0.002 }, "\(steps)")
    }

    @Test(.needsFFmpeg) func repeatsARangeOfAFileThatStartsInMidGOP() throws {
        let folder = try ScratchFolder()
        let path = try Self.make(("a.ts", ["-c:v", "libx264", "-bf", "3", "-g", "20"]), in: folder)
        let bytes = try Data(contentsOf: URL(fileURLWithPath: path))
        try bytes.dropFirst(bytes.count / 3 / 188 * 188).write(to: URL(fileURLWithPath: folder.file("cut.ts")))
        let whole = try ClipMaker.play(folder.file("cut.ts"))
        try #require(whole.pictures.count == 30)
        let looped = try ClipMaker.play(folder.file("cut.ts"), options: #", "loop": true"#, atMost: 70).pictures
        #expect(looped.map(\.hash) == (0..<looped.count).map { whole.pictures[$0 % 30].hash })
        #expect(whole.events.map(\.name).first == "keyframe-missing")
        let missing = whole.events[0].text
        #expect(missing.hasPrefix("'\(folder.file("cut.ts"))' does not start with a keyframe: "), "\(missing)")
        #expect(missing.hasSuffix(" before the first keyframe cannot be shown."), "\(missing)")
    }

    @Test func refusesToStartBehindTheEnd() throws {
        let clip = try FileSourceTests.clip(10)
        let error = #expect(throws: FrameHostError.self) { try ClipMaker.play(clip.path, options: #", "start": 3"#) }
        #expect(error?.code == .invalidConfiguration)
        #expect(
            error?.description
                == "'start' must be less than the length of '\(clip.path)', 0.4 s, but is 3.0 s. Use a smaller 'start'."
        )
    }

    @Test func failsWhereThePartHasNoPicture() throws {
        let folder = try ScratchFolder()
        let format = FileSourceTests.format
        let times = [0, 1, 50].map {
            ClipPicture(pts: MediaTime(seconds: Double($0) * 0.04), duration: MediaTime(seconds: 0.04))
        }
        try ClipMaker.record(to: folder.file("gap.mp4"), format, times)
        let error = #expect(throws: FrameHostError.self) {
            try ClipMaker.play(folder.file("gap.mp4"), options: #", "start": 0.5, "duration": 0.5"#)
        }
        #expect(error?.description.contains("gave no picture for the part ") == true, "\(error?.description ?? "")")
    }
}

@Suite struct SeekAttemptTests {
    static let base = TimeBase(1, 1000)

    @Test func goesFurtherBackEachTimeAndAtLastToTheBegin() {
        var attempt = SeekAttempt(20_000, isFirst: false, origin: 500, timeBase: Self.base)
        var places: [Int64?] = [attempt.place]
        for _ in 0..<4 {
            #expect(attempt.isTooLate(19_001))
            attempt.goBack()
            places.append(attempt.place)
        }
        #expect(places == [19_000, 18_000, 15_000, 3000, 500])
        attempt.goBack()
        #expect(attempt.place == nil)
        #expect(!attempt.isTooLate(19_001))
    }

    @Test func isContentWithAPictureWellBeforeTheOneThatIsWanted() {
        let attempt = SeekAttempt(20_000, isFirst: false, origin: 0, timeBase: Self.base)
        #expect(!attempt.isTooLate(19_000))
        #expect(!attempt.isTooLate(3))
        #expect(attempt.isTooLate(nil))
    }

    @Test func isContentWithTheFirstPictureOfAll() {
        let attempt = SeekAttempt(700, isFirst: true, origin: 500, timeBase: Self.base)
        #expect(attempt.place == 700)
        #expect(!attempt.isTooLate(700))
        #expect(attempt.isTooLate(701))
    }

    @Test func readsFromTheBeginWhereTheFileHasNoTimes() {
        let attempt = SeekAttempt(nil, isFirst: false, origin: 0, timeBase: Self.base)
        #expect(attempt.place == nil)
        #expect(!attempt.isTooLate(nil))
    }
}
