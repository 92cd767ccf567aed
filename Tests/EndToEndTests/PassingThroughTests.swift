// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import Testing

/// H.264 of a file goes on as it is, to a recording and to RTSP clients, without an encoder.
@Suite(.serialized) struct PassingThroughTests {
    /// From keyframe to keyframe of ``clip(_:in:)``.
    private static let group = 13

    /// 4 s with B-frames, a keyframe every half second, and sound.
    private static func clip(_ name: String, in workspace: Workspace) throws -> String {
        let outcome = try Tool.ffmpeg.run(
            "-nostdin", "-v", "error", "-f", "lavfi", "-i", "testsrc2=size=320x240:rate=25:duration=4", "-f", "lavfi",
            "-i", "sine=duration=4", "-pix_fmt", "yuv420p", "-c:v", "libx264", "-bf", "2", "-g", "\(group)",
            "-sc_threshold", "0", "-c:a", "aac", workspace.path(name))
        guard outcome.status == 0 else { throw TestFault("ffmpeg: \(outcome.error)") }
        return workspace.path(name)
    }

    /// PTS and DTS of each picture of a file in seconds.
    private static func times(_ path: String) throws -> [String] {
        try Tool.ffprobe.run(
            "-v", "error", "-select_streams", "v:0", "-show_entries", "packet=pts_time,dts_time", "-of", "csv=p=0", path
        ).lines
    }

    private static func stream(_ path: String) throws -> Data {
        let outcome = try Tool.ffmpeg.run(
            "-nostdin", "-v", "error", "-y", "-i", path, "-map", "0:v", "-c", "copy", "-f", "h264", path + ".h264")
        guard outcome.status == 0 else { throw TestFault("ffmpeg: \(outcome.error)") }
        return try Data(contentsOf: URL(fileURLWithPath: path + ".h264"))
    }

    @Test(.needs(.ffmpeg)) func wrapsAFileAnewWithItsSound() throws {
        let workspace = try Workspace()
        let clip = try Self.clip("clip.mkv", in: workspace)
        try workspace.write(
            "chain.json",
            """
            {
              "stages": [
                { "id": "clip", "use": "file-source", "path": "clip.mkv", "decode": false },
                { "id": "file", "use": "recorder", "path": "out.mp4", "audio": "copy" }
              ]
            }
            """)
        let outcome = try Program.framehost.run(["chain.json"], folder: workspace.folder.path)
        #expect(outcome.status == 0, "\(outcome.error)")
        #expect(try Self.stream(workspace.path("out.mp4")) == Self.stream(clip))
        #expect(
            try RTSPStream.pictures(["-i", workspace.path("out.mp4")]) == RTSPStream.pictures(["-i", clip]))
        let kinds = try Tool.ffprobe.run(
            "-v", "error", "-show_entries", "stream=codec_name", "-of", "csv=p=0", workspace.path("out.mp4")
        ).lines
        #expect(kinds == ["h264", "aac"])
    }

    /// Trimmed without encoding: the pictures before the cut are there for the decoder, and hidden again where the
    /// container can.
    @Test(.needs(.ffmpeg), .needs(.ffprobe), arguments: ["out.mp4", "out.mov", "out.mkv"])
    func hidesAgainWhatAnEditListHides(recording: String) throws {
        let workspace = try Workspace()
        let clip = try Self.clip("clip.mp4", in: workspace)
        let trimmed = try Tool.ffmpeg.run(
            "-nostdin", "-v", "error", "-ss", "1.3", "-i", clip, "-c", "copy", workspace.path("trimmed.mp4"))
        #expect(trimmed.status == 0, "\(trimmed.error)")
        try workspace.write(
            "chain.json",
            """
            {
              "stages": [
                { "id": "clip", "use": "file-source", "path": "trimmed.mp4", "decode": false },
                { "id": "file", "use": "recorder", "path": "\(recording)", "audio": "copy" }
              ]
            }
            """)
        let outcome = try Program.framehost.run(["chain.json"], folder: workspace.folder.path)
        #expect(outcome.status == 0, "\(outcome.error)")
        func frames(_ path: String) throws -> Int {
            try Tool.ffprobe.run(
                "-v", "error", "-select_streams", "v:0", "-show_entries", "frame=pts", "-of", "csv=p=0", path
            ).lines.filter { !$0.isEmpty }.count
        }
        let (input, output) = (workspace.path("trimmed.mp4"), workspace.path(recording))
        let (shown, packets) = (try frames(input), try Self.times(input).count)
        try #require(shown < packets)
        #expect(try Self.times(output).count == packets)
        #expect(try frames(output) == (recording == "out.mkv" ? packets : shown))
        #expect(outcome.error.contains("hides \(packets - shown) of its \(packets) pictures"), "\(outcome.error)")
        if recording != "out.mkv" {
            #expect(try RTSPStream.pictures(["-i", output]) == RTSPStream.pictures(["-i", input]))
        }
    }

    @Test(.needs(.ffmpeg)) func wrapsAnMP4AnewWithEveryTime() throws {
        let workspace = try Workspace()
        let clip = try Self.clip("clip.mp4", in: workspace)
        try workspace.write(
            "chain.json",
            """
            {
              "stages": [
                { "id": "clip", "use": "file-source", "path": "clip.mp4", "decode": false },
                { "id": "file", "use": "recorder", "path": "out.mp4" }
              ]
            }
            """)
        let outcome = try Program.framehost.run(["chain.json"], folder: workspace.folder.path)
        #expect(outcome.status == 0, "\(outcome.error)")
        #expect(try Self.stream(workspace.path("out.mp4")) == Self.stream(clip))
        #expect(try Self.times(workspace.path("out.mp4")) == Self.times(clip))
    }

    /// The pictures that a client decodes are the file's, over the end of a pass too.
    @Test(.needs(.ffmpeg), arguments: ["tcp", "udp"]) func servesAFileToAnRTSPClient(transport: String) throws {
        let workspace = try Workspace()
        let clip = try Self.clip("clip.mp4", in: workspace)
        let port = try RTSPStream.freePort()
        try workspace.write(
            "chain.json",
            """
            {
              "stages": [
                { "id": "clip", "use": "file-source", "path": "clip.mp4", "decode": false, "pace": "realtime", "loop": true },
                { "id": "live", "use": "rtsp-sink", "port": \(port), "path": "/clip" }
              ]
            }
            """)
        let program = try Program.framehost.start(["chain.json", "--events"], folder: workspace.folder.path)
        program.closeInput()
        try program.waitForOutput(#""state":"streaming""#)
        let whole = try RTSPStream.pictures(["-i", clip])
        #expect(whole.count == 100)
        func isRight(_ seen: [String]) -> Bool {
            seen.count == 130
                && RTSPStream.isJoin(seen, of: whole + whole + whole, count: whole.count, group: Self.group)
        }
        let play = {
            try RTSPStream.pictures(
                ["-rtsp_transport", transport, "-i", "rtsp://127.0.0.1:\(port)/clip", "-frames:v", "130"])
        }
        let seen = try DatagramLosses.retrying(play, until: isRight).value
        program.send(SIGINT)
        #expect(try program.finish().status == 0)
        #expect(
            isRight(seen),
            "\(seen.count) pictures, those of the clip: \(seen.map { picture in whole.firstIndex(of: picture) ?? -1 })")
    }

    @Test(.needs(.ffmpeg)) func refusesAtCheckWhatDoesNotFit() throws {
        let workspace = try Workspace()
        _ = try Self.clip("clip.mp4", in: workspace)
        let made = try Tool.ffmpeg.run(
            "-nostdin", "-v", "error", "-f", "lavfi", "-i", "testsrc2=size=64x64:duration=1", "-c:v", "mpeg4",
            workspace.path("old.mp4"))
        #expect(made.status == 0, "\(made.error)")
        func fault(_ path: String, then stage: String) throws -> String {
            try workspace.write(
                "chain.json",
                """
                { "stages": [
                  { "id": "clip", "use": "file-source", "path": "\(path)", "decode": false },
                  \(stage)
                ] }
                """)
            let outcome = try Program.framehost.run(["check", "chain.json"], folder: workspace.folder.path)
            #expect(outcome.status != 0)
            return outcome.error
        }
        let encoder = try fault(
            "clip.mp4", then: #"{ "id": "h264", "use": "x264-encoder", "unread": true }"#)
        #expect(
            encoder.contains(
                "stages[1]: 'h264' takes raw video (i420, nv12), but 'clip', the stage before it, gives H.264 or H.265 or MJPEG or AV1. Leave 'decode' out at 'clip'."
            ),
            "\(encoder)")
        let codec = try fault("old.mp4", then: #"{ "use": "recorder", "path": "out.mp4" }"#)
        #expect(
            codec.contains(
                "stages[0].decode: 'decode' is false, which needs H.264, H.265, MJPEG or AV1, but the video of 'old.mp4' is mpeg4."
                    + " Leave 'decode' out and put an encoder after this stage."), "\(codec)")
    }

    /// The source thread allocates for an access unit what libavformat and the bitstream filter do by themselves.
    @Test(.needs(.ffmpeg), .needs(.clang), arguments: ["mp4", "ts"])
    func allocatesNothingForAnAccessUnitBesideLibav(ending: String) throws {
        let workspace = try Workspace()
        let counts = try MallocCounts(workspace)
        let reader = workspace.path("read-units")
        let source = Repository.root.appending(path: "Tests/Tools/read-units.c").path
        let built = try Tool.clang.run("-O1", "-o", reader, source, "-lavformat", "-lavcodec", "-lavutil")
        guard built.status == 0 else { throw TestFault("clang: \(built.error)") }
        for seconds in [20, 60] {
            let made = try Tool.ffmpeg.run(
                "-nostdin", "-v", "error", "-f", "lavfi", "-i", "testsrc2=size=64x64:rate=50:duration=\(seconds)",
                "-pix_fmt", "yuv420p", "-c:v", "libx264", "-preset", "ultrafast", "-bf", "0", "-g", "50",
                workspace.path("\(seconds).\(ending)"))
            guard made.status == 0 else { throw TestFault("ffmpeg: \(made.error)") }
        }
        /// Allocations of a thread in the run of a program that reads so many seconds.
        func allocations(_ thread: String, _ run: () throws -> Outcome) throws -> Int {
            let before = try counts.read()[thread, default: 0]
            let outcome = try run()
            #expect(outcome.status == 0, "\(outcome.error)")
            return try counts.read()[thread, default: 0] - before
        }
        func byLibav(_ seconds: Int) throws -> Int {
            try allocations("read-units") {
                try Program(URL(fileURLWithPath: reader)).run(
                    [workspace.path("\(seconds).\(ending)")], environment: counts.environment)
            }
        }
        func bySource(_ seconds: Int) throws -> Int {
            try workspace.write(
                "chain.json",
                """
                { "stages": [
                  { "id": "clip", "use": "file-source", "path": "\(seconds).\(ending)", "decode": false },
                  { "use": "null-sink" }
                ] }
                """)
            return try allocations("src:clip") {
                try Program.framehost.run(
                    ["chain.json"], environment: counts.environment, folder: workspace.folder.path)
            }
        }
        let units = 40.0 * 50
        let libav = Double(try byLibav(60) - byLibav(20)) / units
        let passed = Double(try bySource(60) - bySource(20)) / units
        #expect(libav > 1 && passed > 1, "\(libav), \(passed)")
        #expect(passed < libav + 0.1, "\(passed) for a unit, of which libav makes \(libav)")
    }

    /// Readers of MOV cut the packets of PCM and G.711 anew: the copy with its index in front is the same all the same.
    @Test(.needs(.ffmpeg), arguments: ["pcm_alaw", "pcm_mulaw", "pcm_s16le"])
    func finalisesSoundOfSamples(codec: String) throws {
        let workspace = try Workspace()
        let made = try Tool.ffmpeg.run(
            "-nostdin", "-v", "error", "-f", "lavfi", "-i", "testsrc2=size=320x240:rate=25:duration=3", "-f", "lavfi",
            "-i", "sine=frequency=440:sample_rate=8000:duration=3", "-c:v", "libx264", "-preset", "ultrafast", "-c:a",
            codec, workspace.path("clip.mkv"))
        try #require(made.status == 0, "\(made.error)")
        try workspace.write(
            "chain.json",
            """
            { "stages": [ { "use": "file-source", "path": "clip.mkv", "decode": false },
                          { "use": "recorder", "path": "out.mov", "audio": "copy" } ] }
            """)
        let outcome = try Program.framehost.run(["chain.json"], folder: workspace.folder.path)
        #expect(
            outcome.status == 0 && outcome.error.contains("'out.mov' now has its index in front"), "\(outcome.error)")
    }
}
