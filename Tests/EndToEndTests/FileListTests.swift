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

    /// Undecoded sound by a link has the packets that a recorder has which carries the sound along, at times that rise by
    /// about a packet at the joints.
    @Test(
        .needs(.ffmpeg), .needs(.ffprobe), arguments: ["libopus", "aac", "libmp3lame"], ["mkv", "mp4"])
    func joinsSoundByALinkAsACopy(codec: String, ending: String) throws {
        // A length that is no whole number of packets.
        try workshop.ffmpeg(
            [
                "-f", "lavfi", "-i", "color=black:size=160x120:rate=15:duration=3.2", "-itsoffset", "-0.013", "-f",
                "lavfi",
                "-i", "sine=duration=3.3", "-c:v", "libx264", "-preset", "veryfast", "-c:a", codec, "a.\(ending)",
            ])
        func packets(_ sound: String) throws -> [(time: Double, size: String)] {
            try workshop.workspace.write(
                "chain.json",
                """
                { "stages": [
                  { "id": "clip", "use": "file-source", "path": ["a.\(ending)", "a.\(ending)", "a.\(ending)"], "decode": false },
                  { "use": "recorder", "path": "out.mkv", "overwrite": true, \(sound) } ] }
                """)
            let outcome = try Program.framehost.run(["chain.json"], folder: workshop.workspace.folder.path)
            #expect(outcome.status == 0 && !outcome.error.contains("later than"), "\(outcome.error)")
            // Each item is accounted for.
            let numbers = outcome.error.split(separator: "\n").last.map { line in
                line.split { !$0.isNumber && $0 != "." && $0 != ":" }.compactMap { Int($0) }
            }
            if sound.contains("from"), let numbers, numbers.count >= 4 {
                #expect(numbers[0] + numbers[1] == numbers[numbers.count - 2], "\(outcome.error)")
            }
            let probed = try Tool.ffprobe.run(
                "-v", "error", "-select_streams", "a", "-show_entries", "packet=pts_time,size", "-of", "csv=p=0",
                workshop.workspace.path("out.mkv"))
            return probed.lines.compactMap { line in
                let parts = line.split(separator: ",")
                return Double(parts[0]).map { ($0, String(parts[1])) }
            }
        }
        let (copied, linked) = (try packets(#""audio": "copy""#), try packets(#""from": ["clip", "clip.audio"]"#))
        #expect(copied.count > 300 && copied.map(\.size) == linked.map(\.size), "\(copied.count) \(linked.count)")
        #expect(zip(copied, linked).allSatisfy { abs($0.time - $1.time) < 0.0021 })
        let steps = zip(linked, linked.dropFirst()).map { $1.time - $0.time }
        let usual = steps.sorted()[steps.count / 2]
        #expect(steps.allSatisfy { $0 > usual * 0.45 && $0 < usual * 1.6 }, "\(steps.min() ?? 0) \(steps.max() ?? 0)")
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
