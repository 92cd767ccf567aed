// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

/// What joiners get, and what they cost those who watch. Counts, sizes and pictures are judged;
/// Benchmarks/rtsp-joins.py measures times.
@Suite(.serialized) struct RTSPJoinTests {
    private static let script = Repository.root.appending(path: "Tests/Conformance/joins.py").path

    private struct Join: Decodable {
        var isKeyframe: Bool?
        var fault: String?
    }

    private static func joins(_ lines: [String]) throws -> [Join] {
        try lines.map { try JSONDecoder().decode(Join.self, from: Data($0.utf8)) }
    }

    /// At a keyframe interval of ten minutes, which no join waits for.
    @Test(.needs(.python), arguments: ["tcp", "udp"]) func everyJoinerStartsWithAKeyframe(transport: String) throws {
        let stream = try RTSPStream(keyframeSeconds: 600)
        let outcome = try Tool.python.run(
            [Self.script, stream.url, "--count", "12", "--transport", transport], timeout: 200)
        #expect(outcome.status == 0, "\(outcome.output)\(outcome.error)")
        let joins = try Self.joins(outcome.lines)
        #expect(joins.count == 12)
        #expect(joins.allSatisfy { $0.isKeyframe == true }, "\(joins)")
        _ = try stream.finish()
    }

    /// Frame of the clip at which joins begin.
    private static let firstJoin = 60
    private static let clipFrames = 450

    /// A run of the clip, as it was recorded.
    private struct Run {
        var record: String
        /// Of each picture.
        var bytes: [Int]
        var keyframeCount: Int
        var joins: [Join] = []
        /// From the first join to the end.
        var seconds = 0.0
    }

    private static func encoder(_ clip: String, _ pace: String) -> String {
        """
        { "id": "clip", "use": "file-source", "path": "\(clip)", "pace": "\(pace)" },
        { "id": "h264", "use": "x264-encoder", "tune": "zerolatency", "bitrateKbps": 1000, "vbvMaxKbps": 1000, "keyframeSeconds": 600, "sceneCut": 0 }
        """
    }

    private static func recorded(_ path: String) throws -> Run {
        let packets = try Tool.ffprobe.run(
            "-v", "error", "-show_entries", "packet=size,flags", "-of", "csv=p=0", path
        ).lines
        return Run(
            record: path, bytes: packets.map { Int($0.prefix { $0 != "," }) ?? 0 },
            keyframeCount: packets.count { $0.contains("K") })
    }

    /// Without joins, and so at any pace the same.
    private static func calm(_ clip: String, _ workspace: Workspace) throws -> Run {
        try workspace.write(
            "calm.json", #"{ "stages": [ \#(encoder(clip, "fast")), { "use": "recorder", "path": "calm.mp4" } ] }"#)
        let outcome = try Program.framehost.run(["calm.json"], folder: workspace.folder.path)
        guard outcome.status == 0 else { throw TestFault("framehost ended with \(outcome.status): \(outcome.error)") }
        return try recorded(workspace.path("calm.mp4"))
    }

    /// Every picture is encoded, however busy the machine is. Ends when the last joiner has left.
    private static func crowd(_ clip: String, joins count: Int, _ workspace: Workspace) throws -> Run {
        let port = try RTSPStream.freePort()
        try workspace.write(
            "chain.json",
            """
            { "stages": [
              \(encoder(clip, "realtime")),
              { "id": "live", "use": "rtsp-sink", "port": \(port) },
              { "id": "file", "use": "recorder", "from": "h264", "path": "out-\(count).mp4", "overwrite": true } ] }
            """)
        let program = try Program.framehost.start(
            ["chain.json", "--events", "--commands"], folder: workspace.folder.path)
        try program.waitForFrames(firstJoin)
        let url = "rtsp://127.0.0.1:\(port)/live"
        let begin = Date()
        let seen = try joins(
            Tool.python.run(script, url, "--count", "\(count)", "--per-second", "50", "--stay", "0.2").lines)
        program.send(SIGINT)
        let outcome = try program.finish()
        guard outcome.status == 0 else { throw TestFault("framehost ended with \(outcome.status): \(outcome.error)") }
        var run = try recorded(workspace.path("out-\(count).mp4"))
        run.joins = seen
        run.seconds = Date().timeIntervalSince(begin)
        return run
    }

    /// PSNR of brightness in dB, from the first join to that frame.
    private static func quality(_ record: String, _ clip: String, to end: Int) throws -> Double {
        let part = "trim=start_frame=\(firstJoin):end_frame=\(end),settb=1/30,setpts=N"
        let outcome = try Tool.ffmpeg.run(
            "-nostdin", "-i", record, "-i", clip, "-lavfi", "[0:v]\(part)[a];[1:v]\(part)[b];[a][b]psnr", "-f", "null",
            "-")
        guard let found = outcome.error.range(of: "PSNR y:"),
            let value = Double(outcome.error[found.upperBound...].prefix { $0 != " " })
        else { throw TestFault("ffmpeg says no PSNR: \(outcome.error.suffix(1000))") }
        return value
    }

    /// Fifty in a second, and fifty a second for three: the bitrate stays within a tenth of what was set, the picture
    /// within 1 dB.
    @Test(.needs(.python), .needs(.ffmpeg), .needs(.ffprobe)) func fiftyJoinsASecondCostLittle() throws {
        let source = Repository.media.appending(path: "portrait.mp4")
        try #require(FileManager.default.fileExists(atPath: source.path), "make demo makes \(source.path)")
        let workshop = try ClipWorkshop()
        let clip = try workshop.ffmpeg(
            [
                "-stream_loop", "-1", "-i", source.path, "-frames:v", "\(Self.clipFrames)", "-vf", "scale=640:360",
                "-c:v", "libx264", "-preset", "ultrafast", "-qp", "0", "clip.mkv",
            ])
        let workspace = try Workspace()
        let calm = try Self.calm(clip, workspace)
        #expect(calm.keyframeCount == 1)
        for count in [50, 150] {
            var crowd = try Self.crowd(clip, joins: count, workspace)
            // Two keyframes in a second of pictures, as many as in one of the clock: again where the encoder fell
            // behind.
            var hasKeptPace: Bool { crowd.keyframeCount <= 3 + (crowd.bytes.count - Self.firstJoin) / 15 }
            for _ in 0..<2 where !hasKeptPace { crowd = try Self.crowd(clip, joins: count, workspace) }
            let frames = crowd.bytes.count
            try #require(frames > Self.firstJoin + 30, "\(frames) frames")
            #expect(crowd.joins.count == count)
            #expect(crowd.joins.allSatisfy { $0.isKeyframe == true }, "\(crowd.joins)")
            // Readers bring about two at most in a second, and the first two may come closer (KeyframeRequests).
            let most = 3 + Int((2 * crowd.seconds).rounded(.up))
            #expect((2...most).contains(crowd.keyframeCount), "\(crowd.keyframeCount) keyframes in \(frames) frames")
            guard hasKeptPace else { continue }
            // 1000 kbit/s, and a tenth.
            let calmBytes = calm.bytes.prefix(frames).reduce(0, +)
            let bytes = crowd.bytes.reduce(0, +)
            #expect(bytes * 8 * 30 <= 1_100_000 * frames, "\(bytes) bytes, \(calmBytes) without joiners")
            let (quality, wanted) = try (
                Self.quality(crowd.record, clip, to: frames), Self.quality(calm.record, clip, to: frames)
            )
            #expect(quality > wanted - 1, "\(quality) dB, \(wanted) without joiners")
        }
    }
}
