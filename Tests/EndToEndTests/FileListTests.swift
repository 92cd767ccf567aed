// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

/// Several files as one input, from the files to a recording.
@Suite struct FileListTests {
    private let workshop: ClipWorkshop

    init() throws { workshop = try ClipWorkshop() }

    /// A flash and a beep at each whole second.
    private func clip(_ name: String, seconds: Int, size: String = "160x120", rate: Int = 25, _ sound: String...) throws
    {
        try workshop.ffmpeg(
            [
                "-f", "lavfi", "-i", "color=black:size=\(size):rate=\(rate):duration=\(seconds)", "-f", "lavfi", "-i",
                "aevalsrc='if(lt(mod(t\\,1)\\,0.1)\\,sin(2*PI*1000*t)\\,0)':s=48000:d=\(seconds)", "-vf",
                "drawbox=color=white:t=fill:enable='lt(mod(t,1),0.1)'", "-c:v", "libx264", "-preset", "veryfast",
                "-pix_fmt",
                "yuv420p",
            ] + (sound.isEmpty ? ["-c:a", "aac"] : sound) + [name])
    }

    private func run(_ list: [String], sound: String, encoder: String = "") throws -> Outcome {
        let paths = list.map { "\"\($0)\"" }.joined(separator: ", ")
        try workshop.workspace.write(
            "chain.json",
            """
            { "stages": [
              { "id": "clip", "use": "file-source", "path": [\(paths)] },
              { "id": "h264", "use": "x264-encoder", "preset": "ultrafast" }, \(encoder)
              { "id": "file", "use": "recorder", "path": "out.mp4", "overwrite": true, \(sound) } ] }
            """)
        return try Program.framehost.run(["chain.json", "--events"], folder: workshop.workspace.folder.path)
    }

    /// Sound and pictures stay together over every joint, copied and encoded.
    @Test(.needs(.ffmpeg), .needs(.ffprobe), arguments: [true, false]) func recordsFilesAsOne(isCopied: Bool) throws {
        try clip("a.mp4", seconds: 3)
        try clip("b.mp4", seconds: 2)
        if isCopied {
            try clip("c.mp4", seconds: 3)
        } else {
            try clip("c.mov", seconds: 3, size: "320x180", rate: 50, "-c:a", "pcm_s16le", "-ar", "32000", "-ac", "2")
        }
        let outcome =
            isCopied
            ? try run(["a.mp4", "b.mp4", "c.mp4"], sound: #""audio": "copy", "from": "h264""#)
            : try run(
                ["a.mp4", "b.mp4", "c.mov"], sound: #""from": ["h264", "aac"]"#,
                encoder: #"{ "id": "aac", "use": "audio-encoder", "from": "clip.audio" },"#)
        #expect(outcome.status == 0, "\(outcome.error)")
        #expect(outcome.output.contains("are converted to those of") == !isCopied, "\(outcome.output)")
        let measured = try LipSync("-i", workshop.workspace.path("out.mp4"))
        #expect(measured.flashes.count == 8 && measured.beeps.count == 8, "\(measured)")
        #expect(zip(measured.flashes, 0...).allSatisfy { abs($0 - Double($1)) < 0.001 }, "\(measured.flashes)")
        #expect(measured.offsets.allSatisfy { abs($0) < 10 }, "\(measured.offsets)")
        let probe = try ClipProbe(workshop.workspace.path("out.mp4"))
        #expect(probe.times.count == (isCopied ? 200 : 125 + 150))
    }

    @Test(.needs(.ffmpeg)) func checkNamesTheMissingFile() throws {
        try clip("a.mp4", seconds: 1)
        let outcome = try run(["a.mp4", "gone.mp4"], sound: #""from": "h264""#)
        #expect(outcome.status == 2)
        #expect(
            outcome.error.contains("stages[0].path[1]") && outcome.error.contains("gone.mp4' does not exist"),
            "\(outcome.error)")
    }
}
