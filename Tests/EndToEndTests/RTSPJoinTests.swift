import Foundation
import Testing

/// What joiners get, and what they cost those who watch. Counts, sizes and pictures are judged;
/// Benchmarks/rtsp-joins.py measures times.
@Suite(.serialized) struct RTSPJoinTests {
    private static let script = Repository.root.appending(path: "Tests/Conformance/joins.py").path

    private struct Join: Decodable {
        var isKeyframe: Bool?
        var pictureMs: Double?
        var fault: String?
    }

    private static func joins(_ lines: [String]) throws -> [Join] {
        try lines.map { try JSONDecoder().decode(Join.self, from: Data($0.utf8)) }
    }

    /// At a keyframe interval of ten seconds, which no join waits for.
    @Test(.needs(.python), arguments: ["tcp", "udp"]) func everyJoinerStartsWithAKeyframe(transport: String) throws {
        let stream = try RTSPStream(keyframeSeconds: 10)
        let outcome = try Tool.python.run(
            [Self.script, stream.url, "--count", "12", "--transport", transport], timeout: 60)
        #expect(outcome.status == 0, "\(outcome.output)\(outcome.error)")
        let joins = try Self.joins(outcome.lines)
        #expect(joins.count == 12)
        #expect(joins.allSatisfy { $0.isKeyframe == true && ($0.pictureMs ?? 10_000) < 9_000 }, "\(joins)")
        _ = try stream.finish()
    }

    /// A run of the clip with joiners, as it was recorded.
    private struct Run {
        var byteCount: Int
        var keyframeCount: Int
        /// PSNR of brightness in dB, from the first join on.
        var quality: Double
        var joins: [Join]
    }

    /// Seven seconds, every picture of which is encoded, however busy the machine is. Joins begin after two.
    private static func run(_ clip: String, joins count: Int) throws -> Run {
        let workspace = try Workspace()
        let port = try RTSPStream.freePort()
        try workspace.write(
            "chain.json",
            """
            { "stages": [
              { "id": "clip", "use": "file-source", "path": "\(clip)", "pace": "realtime" },
              { "id": "h264", "use": "x264-encoder", "tune": "zerolatency", "bitrateKbps": 1000, "vbvMaxKbps": 1000, "keyframeSeconds": 10 },
              { "id": "live", "use": "rtsp-sink", "port": \(port) },
              { "id": "file", "use": "recorder", "from": "h264", "path": "out.mp4" } ] }
            """)
        let program = try Program.framehost.start(["chain.json", "--events"], folder: workspace.folder.path)
        program.closeInput()
        try program.waitForOutput(#""state":"streaming""#)
        program.listen(seconds: 2)
        var seen: [Join] = []
        if count > 0 {
            let url = "rtsp://127.0.0.1:\(port)/live"
            seen = try joins(
                Tool.python.run(script, url, "--count", "\(count)", "--per-second", "50", "--stay", "0.2").lines)
        }
        let outcome = try program.finish()
        guard outcome.status == 0 else { throw TestFault("framehost ended with \(outcome.status): \(outcome.error)") }
        let record = workspace.path("out.mp4")
        let packets = try Tool.ffprobe.run(
            "-v", "error", "-show_entries", "packet=size,flags", "-of", "csv=p=0", record
        ).lines
        return Run(
            byteCount: packets.reduce(0) { $0 + (Int($1.prefix { $0 != "," }) ?? 0) },
            keyframeCount: packets.count { $0.contains("K") }, quality: try quality(record, clip), joins: seen)
    }

    private static func quality(_ record: String, _ clip: String) throws -> Double {
        let part = "trim=start_frame=60,settb=1/30,setpts=N"
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
                "-i", source.path, "-frames:v", "210", "-vf", "scale=640:360", "-c:v", "libx264", "-preset",
                "ultrafast", "-qp", "0",
            ]
                + ["clip.mkv"])
        let calm = try Self.run(clip, joins: 0)
        #expect(calm.keyframeCount == 1)
        for (count, mostKeyframes) in [(50, 5), (150, 9)] {
            let crowd = try Self.run(clip, joins: count)
            #expect(crowd.joins.count == count)
            #expect(crowd.joins.allSatisfy { $0.isKeyframe == true }, "\(crowd.joins)")
            #expect((2...mostKeyframes).contains(crowd.keyframeCount), "\(crowd.keyframeCount) keyframes")
            // Seven seconds of 1000 kbit/s, and a tenth.
            #expect(crowd.byteCount * 8 <= 7_700_000, "\(crowd.byteCount) bytes, \(calm.byteCount) without joiners")
            #expect(crowd.quality > calm.quality - 1, "\(crowd.quality) dB, \(calm.quality) without joiners")
        }
    }
}
