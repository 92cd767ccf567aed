// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Testing

@testable import FileSource

/// What a decoder hides, and which track is the film.
@Suite struct FileSourceDamageTests {
    /// Of damage that libavcodec hides in its pictures the run says how much, and where it begins.
    @Test(
        .needsFFmpeg,
        arguments: [["libx264", "-g", "30"], ["mpeg2video"], ["mpeg4"], ["ffv1", "-level", "3"], ["mjpeg"]])
    func saysWhatTheDecoderHides(codec: [String]) throws {
        let folder = try ScratchFolder()
        try ClipMaker.ffmpeg(
            arguments: [
                "-f", "lavfi", "-i", ClipMaker.moving("320x180", count: 75), "-an", "-pix_fmt",
                codec[0] == "mjpeg" ? "yuvj420p" : "yuv420p", "-c:v",
            ] + codec
                + [folder.file("whole.mkv")])
        try ClipMaker.ffmpeg(
            "-i", folder.file("whole.mkv"), "-c", "copy", "-bsf:v", "noise=amount='if(between(n,40,44),100,0)'",
            folder.file("bad.mkv"))
        let whole = try ClipMaker.play(folder.file("whole.mkv"))
        #expect(!whole.events.contains { $0.name == "file-damaged" })
        let bad = try ClipMaker.play(folder.file("bad.mkv"))
        let said = bad.events.filter { $0.name == "file-damaged" }
        #expect(said.count >= 2, "\(bad.events.map(\.text))")
        #expect(said.first?.text.contains("is damaged ") == true)
        #expect(said.last?.details["damaged"]?.asInt ?? 0 > 0)
        #expect(
            said.last?.text.contains(" were damaged; the rest was played.") == true
                || said.last?.text.contains(" was damaged; the rest was played.") == true)
    }

    /// Also where the run is ended before the file is.
    @Test(.needsFFmpeg) func saysHowMuchAtTheEndOfTheRun() throws {
        let folder = try ScratchFolder()
        try ClipMaker.ffmpeg(
            "-f", "lavfi", "-i", ClipMaker.moving("320x180", count: 75), "-c:v", "mpeg2video", folder.file("whole.mkv"))
        try ClipMaker.ffmpeg(
            "-i", folder.file("whole.mkv"), "-c", "copy", "-bsf:v", "noise=amount='if(between(n,20,24),100,0)'",
            folder.file("bad.mkv"))
        let source = try StageDriver(FileSource.self, options: #"{ "path": "\#(folder.file("bad.mkv"))" }"#)
        var count = 0
        while count < 50 {
            _ = try source.produce()
            while source.takeFrame() != nil { count += 1 }
        }
        let seen = source.stage.context.inputAccount?.damaged ?? 0
        #expect(seen > 0, "the figures have it meanwhile")
        try source.stop()
        let said = source.takeEvents().filter { $0.name == "file-damaged" }.map(\.text)
        #expect(said.count == 2 && said[1].contains("the decoder had to guess parts"), "\(said)")
    }

    /// A still of any codec before the film loses against it, in files that count no pictures.
    @Test(.needsFFmpeg, arguments: ["a.ts", "a.mkv", "a.mp4"]) func playsTheFilmBehindAStill(name: String) throws {
        let folder = try ScratchFolder()
        try ClipMaker.ffmpeg(
            "-f", "lavfi", "-i", ClipMaker.moving("160x120", count: 1), "-f", "lavfi", "-i",
            ClipMaker.moving("160x120", count: 50), "-map", "0:v", "-map", "1:v", "-c:v", "libx264", "-pix_fmt",
            "yuv420p",
            "-muxpreload", "0", "-muxdelay", "0", folder.file(name))
        let played = try ClipMaker.play(folder.file(name))
        #expect(played.pictures.count == 50)
        #expect(
            played.events.contains { $0.name == "note" && $0.text.contains("not track 1, which has a single picture") },
            "\(played.events.map(\.text))")
    }
}
