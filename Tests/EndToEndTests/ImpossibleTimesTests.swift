// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

/// Clips whose time stamps no file can mean: they play, and what was wrong is said.
@Suite struct ImpossibleTimesTests {
    /// Milliseconds that no nanoseconds of 64 bits can say.
    private static let impossible: Int64 = 9_223_372_036_860_000

    /// Two seconds in Matroska whose second cluster has another time.
    private static func clip(_ workshop: ClipWorkshop, at milliseconds: Int64 = impossible) throws -> String {
        try workshop.ffmpeg([
            "-f", "lavfi", "-i", ClipWorkshop.moving("160x120", count: 50), "-f", "lavfi", "-i", "sine=duration=2",
            "-c:v", "libx264", "-bf",
            "2", "-g", "10", "-pix_fmt", "yuv420p", "-c:a", "aac", "-shortest", "-cluster_time_limit", "400", "a.mkv",
        ])
        return try workshop.change("a.mkv", to: "far.mkv") { bytes in
            // Cluster (1F43B675), in it CRC-32 (BF, 4 bytes) and the time (E7, 2 bytes): both make room for a time of 8
            // bytes.
            let mark = Data([0x1f, 0x43, 0xb6, 0x75])
            let first = try #require(bytes.range(of: mark))
            let second = try #require(bytes.range(of: mark, in: first.upperBound..<bytes.count))
            let check = try #require(
                bytes.range(of: Data([0xbf, 0x84]), in: second.upperBound..<second.upperBound + 12))
            #expect(bytes[check.lowerBound + 6..<check.lowerBound + 8] == Data([0xe7, 0x82]))
            let time = withUnsafeBytes(of: milliseconds.bigEndian) { Data($0) }
            bytes.replaceSubrange(check.lowerBound..<check.lowerBound + 10, with: [0xe7, 0x88] + time)
        }
    }

    @Test(.needs(.ffmpeg), .needs(.ffprobe), arguments: [false, true]) func recordsThemInARow(inRealTime: Bool) throws {
        let workshop = try ClipWorkshop()
        let (outcome, result) = try workshop.play(
            try Self.clip(workshop), source: inRealTime ? ["pace": "realtime"] : [:])
        #expect(outcome.status == 0, "\(outcome.error)")
        let said = try #require(outcome.error.split(separator: "\n").last { $0.contains("impossible") })
        #expect(
            said.contains("far.mkv' were impossible, the first 92233720368600")
                && said.contains("counts as directly after"),
            "\(said)")
        let times = try ClipProbe(result).times.compactMap { $0 }
        #expect(times.count == 50)
        #expect(zip(times, times.dropFirst()).allSatisfy { ($1 - $0 - 0.04).magnitude < 0.002 }, "\(times)")
    }

    @Test(.needs(.ffmpeg), .needs(.ffprobe)) func goesRoundAndRoundWithThem() throws {
        let workshop = try ClipWorkshop()
        let path = try Self.clip(workshop)
        let chain = try workshop.workspace.write(
            "loop.json",
            """
            { "stages": [
              { "id": "clip", "use": "file-source", "path": "\(path)", "loop": true }, { "id": "h264", "use": "x264-encoder" },
              { "id": "file", "use": "recorder", "path": "\(workshop.workspace.path("loop.mp4"))" } ] }
            """)
        // Three rounds.
        let outcome = try Program.framehost.run([chain, "--quiet", "--frames", "150"])
        #expect(outcome.status == 0, "\(outcome.error)")
        #expect(outcome.error.contains("far.mkv' gives a picture the time 92233720368600"), "\(outcome.error)")
    }

    @Test(.needs(.ffmpeg)) func servesThem() throws {
        let workshop = try ClipWorkshop()
        let path = try Self.clip(workshop)
        let chain = try workshop.workspace.write(
            "serve.json",
            """
            { "stages": [
              { "id": "clip", "use": "file-source", "path": "\(path)", "pace": "realtime" }, { "id": "h264", "use": "x264-encoder" },
              { "id": "live", "use": "rtsp-sink", "port": \(try RTSPStream.freePort()), "path": "/far" } ] }
            """)
        let outcome = try Program.framehost.run([chain, "--quiet"])
        #expect(outcome.status == 0, "\(outcome.error)")
        #expect(outcome.error.contains("far.mkv' were impossible"), "\(outcome.error)")
    }

    @Test(.needs(.ffmpeg)) func carriesTheirSoundAlong() throws {
        let workshop = try ClipWorkshop()
        let path = try Self.clip(workshop)
        let chain = try workshop.workspace.write(
            "sound.json",
            """
            { "stages": [
              { "id": "clip", "use": "file-source", "path": "\(path)" }, { "id": "h264", "use": "x264-encoder" },
              { "id": "file", "use": "recorder", "path": "\(workshop.workspace.path("sound.mp4"))", "audio": "copy" } ] }
            """)
        let outcome = try Program.framehost.run([chain, "--quiet"])
        #expect(outcome.status == 0, "\(outcome.error)")
        #expect(outcome.error.contains("of the sound of '"), "\(outcome.error)")
    }

    /// Forty years are a time; MP4 cannot say them from one picture to the next.
    @Test(.needs(.ffmpeg), .needs(.ffprobe)) func endsAnMP4WhereAGapIsLongerThanItCanSay() throws {
        let workshop = try ClipWorkshop()
        let (outcome, result) = try workshop.play(try Self.clip(workshop, at: 40 * 365 * 86_400_000))
        #expect(outcome.status == 1)
        #expect(outcome.error.contains("is complete and ends here: the next picture comes "), "\(outcome.error)")
        #expect(try ClipProbe(result).times.count >= 8)
    }

    /// A time that is asked for is taken, or refused by a sentence.
    @Test func takesTimesOfYearsAndRefusesThoseBeyond() throws {
        let workshop = try ClipWorkshop()
        let chain = try workshop.workspace.write(
            "short.json",
            #"{ "stages": [{ "use": "test-source", "frames": 3, "size": "16x16" }, { "use": "null-sink" }] }"#)
        #expect(try Program.framehost.run([chain, "--quiet", "--for", "1e9"]).status == 0)
        for seconds in ["1e300", "1e10", "9223372037", "nan", "-1"] {
            let outcome = try Program.framehost.run([chain, "--quiet", "--for=\(seconds)"])
            #expect(outcome.status == 2)
            #expect(outcome.error.contains("--for"), "\(outcome.error)")
        }
    }

    @Test func refusesPicturesThatNoH264DecoderTakes() throws {
        let workshop = try ClipWorkshop()
        let chain = try workshop.workspace.write(
            "huge.json",
            #"""
            { "stages": [
              { "use": "test-source", "size": "16384x16384" }, { "id": "h264", "use": "x264-encoder" }, { "use": "null-sink" } ] }
            """#)
        let outcome = try Program.framehost.run(["check", chain])
        #expect(outcome.status == 2)
        #expect(
            outcome.error.contains("stages[1] 'h264': no H.264 decoder accepts pictures of 16384x16384: level 6.2"),
            "\(outcome.error)")
    }
}
