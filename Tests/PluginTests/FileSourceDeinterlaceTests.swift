// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Foundation
import Testing

@testable import FileSource

@Suite struct FileSourceDeinterlaceTests {
    /// Every line of pairs of pictures in one, so that what moves has combs.
    static func interlaced(_ name: String, in folder: ScratchFolder, _ codec: String...) throws -> String {
        let program = try #require(Tool.ffmpeg, "ffmpeg is not installed: make test-packages")
        try Tool.run(
            program,
            [
                "-nostdin", "-v", "error", "-y", "-f", "lavfi", "-i", ClipMaker.moving("160x120", rate: 50, count: 40),
                "-vf",
                "format=yuv420p,tinterlace=interleave_top,setfield=tff",
            ] + codec + [folder.file(name)])
        return folder.file(name)
    }

    @Test(.needsFFmpeg) func makesWholePicturesAtTheSameTimes() throws {
        let folder = try ScratchFolder()
        let path = try Self.interlaced(
            "a.mp4", in: folder, "-c:v", "libx264", "-flags", "+ildct+ilme", "-x264-params", "tff=1")
        let combed = try ClipMaker.play(path)
        let whole = try ClipMaker.play(path, options: #", "deinterlace": true"#)
        #expect(combed.pictures.count == 20)
        #expect(whole.pictures.map(\.pts) == combed.pictures.map(\.pts))
        #expect(zip(whole.pictures, combed.pictures).allSatisfy { $0.hash != $1.hash })
        #expect(
            combed.events.filter { $0.level >= .warning }.map(\.text) == [
                "The pictures are interlaced and are passed on unchanged. To deinterlace them, set \"deinterlace\": true."
            ])
        #expect(whole.events.map(\.text) == ["The pictures are interlaced and are deinterlaced."])
        // The same as ffmpeg's own.
        try ClipMaker.ffmpeg(
            "-i", path, "-vf", "bwdif=mode=send_frame:deint=interlaced", "-c:v", "ffv1", folder.file("b.mkv"))
        #expect(try ClipMaker.play(folder.file("b.mkv")).pictures.map(\.hash) == whole.pictures.map(\.hash))
    }

    @Test(.needsFFmpeg) func leavesPicturesAloneThatAreNotInterlaced() throws {
        let folder = try ScratchFolder()
        try ClipMaker.ffmpeg(
            "-f", "lavfi", "-i", ClipMaker.moving(count: 10), "-pix_fmt", "yuv420p", folder.file("a.mkv"))
        let plain = try ClipMaker.play(folder.file("a.mkv"))
        let asked = try ClipMaker.play(folder.file("a.mkv"), options: #", "deinterlace": true"#)
        #expect(asked.pictures == plain.pictures)
        #expect(asked.events.isEmpty)
    }

    @Test(.needsFFmpeg) func goesOnWherePicturesChangeTheirSize() throws {
        let folder = try ScratchFolder()
        let path = try FileSourceChangeTests.joined(
            ClipMaker.moving("160x120", count: 10), [ClipMaker.moving("320x240", count: 10)], in: folder)
        let plain = try ClipMaker.play(path)
        let asked = try ClipMaker.play(path, options: #", "deinterlace": true"#)
        #expect(plain.pictures.count == 20)
        #expect(asked.pictures == plain.pictures)
    }

    @Test(.needsFFmpeg) func playsARangeAndRepeatsIt() throws {
        let folder = try ScratchFolder()
        let path = try Self.interlaced("a.mpg", in: folder, "-c:v", "mpeg2video", "-flags", "+ildct+ilme", "-top", "1")
        let whole = try ClipMaker.play(path, options: #", "deinterlace": true"#).pictures
        let looped = try ClipMaker.play(path, options: #", "deinterlace": true, "loop": true"#, atMost: 50).pictures
        #expect(whole.count == 20)
        #expect(looped.map(\.hash) == (0..<looped.count).map { whole[$0 % 20].hash })
    }
}
