// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Foundation
import Testing

@testable import FileSource

/// Decoding into the chain's own buffers.
@Suite struct FileSourceLoansTests {
    static func count(_ events: [Event], _ key: String) -> Int? {
        events.first { $0.name == "decoded-in-place" }?.details[key]?.asInt
    }

    @Test(
        .needsFFmpeg,
        arguments: [
            ["-c:v", "libx264", "-bf", "3"], ["-c:v", "libx264", "-flags", "+ildct+ilme"],
            ["-c:v", "libx265", "-x265-params", "log-level=none"],
            ["-c:v", "libvpx-vp9", "-deadline", "realtime", "-cpu-used", "8"],
            ["-c:v", "libvpx", "-deadline", "realtime", "-cpu-used", "8"],
            ["-c:v", "mjpeg"], ["-c:v", "libx264", "-pix_fmt", "yuv420p10le"],
        ])
    func decodesIntoTheChainsBuffersWithoutACopy(codec: [String]) throws {
        let folder = try ScratchFolder()
        let program = try #require(Tool.ffmpeg, "ffmpeg is not installed: make test-packages")
        // Sides that are no multiples of a block.
        try Tool.run(
            program,
            [
                "-nostdin", "-v", "error", "-y", "-f", "lavfi", "-i", ClipMaker.moving("198x108", count: 30),
                "-pix_fmt", "yuv420p",
            ] + codec
                + [folder.file("a.mkv")])
        let read = try ClipMaker.play(folder.file("a.mkv"))
        #expect(Self.count(read.events, "inPlace") == 30)
        #expect(Self.count(read.events, "copied") == 0)
        // The pixels are those that ffmpeg decodes; libjpeg-turbo rounds otherwise (FileSourceJPEGTests).
        guard codec != ["-c:v", "mjpeg"] else { return }
        try ClipMaker.ffmpeg("-i", folder.file("a.mkv"), "-c:v", "rawvideo", folder.file("raw.nut"))
        #expect(try ClipMaker.play(folder.file("raw.nut")).pictures.map(\.hash) == read.pictures.map(\.hash))
    }

    /// A decoder that keeps more pictures than the plan foresees is given others, and nothing is lost.
    @Test(.needsFFmpeg) func copiesWhatTheDecoderKeepsBeyondThePlan() throws {
        let folder = try ScratchFolder()
        try ClipMaker.ffmpeg(
            "-f", "lavfi", "-i", ClipMaker.moving("160x120", count: 60), "-pix_fmt", "yuv420p", "-c:v", "libx264",
            "-x264-params",
            "ref=16:bframes=8:b-pyramid=normal", folder.file("a.mkv"))
        let read = try ClipMaker.play(folder.file("a.mkv"))
        let (inPlace, copied) = (Self.count(read.events, "inPlace") ?? 0, Self.count(read.events, "copied") ?? 0)
        #expect(inPlace + copied == 60)
        #expect(copied > 0)
        try ClipMaker.ffmpeg("-i", folder.file("a.mkv"), "-c:v", "rawvideo", folder.file("raw.nut"))
        #expect(try ClipMaker.play(folder.file("raw.nut")).pictures.map(\.hash) == read.pictures.map(\.hash))
    }

    /// Pictures that are cut at the left and the top do not begin where their buffer does.
    @Test(.needsFFmpeg) func copiesPicturesThatAreCutAtTheLeft() throws {
        let folder = try ScratchFolder()
        try ClipMaker.ffmpeg(
            "-f", "lavfi", "-i", ClipMaker.moving("160x120", count: 5), "-pix_fmt", "yuv420p", "-c:v", "libx264",
            "-crf", "0", "-bsf:v",
            "h264_metadata=crop_left=6:crop_top=10", folder.file("a.mp4"))
        let read = try ClipMaker.play(folder.file("a.mp4"))
        #expect(read.format.width == 154 && read.format.height == 110)
        #expect(read.pictures.count == 5)
        #expect(read.events.map(\.name) == ["decoded-in-place"])
        #expect(Self.count(read.events, "inPlace") == 0)
        try ClipMaker.ffmpeg(
            "-f", "lavfi", "-i", ClipMaker.moving("160x120", count: 5), "-vf", "format=yuv420p,crop=154:110:6:10",
            "-c:v", "rawvideo",
            folder.file("raw.nut"))
        #expect(try ClipMaker.play(folder.file("raw.nut")).pictures.map(\.hash) == read.pictures.map(\.hash))
    }

    /// The chain may go on holding pictures after the decoder is gone.
    @Test func picturesOutliveTheDecoder() throws {
        let clip = try FileSourceTests.clip(12)
        let source = try StageDriver(FileSource.self, options: #"{ "path": "\#(clip.path)" }"#)
        while try source.produce() == .more {}
        try source.stop()
        let expected = try ClipMaker.play(clip.path).pictures.map(\.hash)
        var found: [UInt64] = []
        while let frame = source.takeFrame() { found.append(ClipMaker.hash(frame)) }
        #expect(found == expected)
    }
}
