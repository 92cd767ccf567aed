// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import Testing

/// Pictures and their sound at one address, before clients that are not ours.
@Suite(.serialized, .needs(.ffmpeg), .needs(.ffprobe)) struct RTSPSoundTests {
    /// A flash and a beep each second, served and recorded from the same units.
    private final class Stream {
        let workspace: Workspace
        let program: RunningProgram
        let url: String

        init(_ codec: String, sink: String = "") throws {
            workspace = try Workspace()
            let port = try RTSPStream.freePort()
            url = "rtsp://127.0.0.1:\(port)/live"
            try workspace.write(
                "chain.json",
                """
                { "stages": [
                  { "id": "pictures", "use": "test-source", "size": "320x240", "rate": 25, "pattern": "flash", "live": true },
                  { "id": "h264", "use": "x264-encoder", "preset": "ultrafast", "keyframeSeconds": 1 },
                  { "id": "tone", "use": "tone-source", "pattern": "beep", "live": true },
                  { "id": "sound", "use": "audio-encoder", "codec": "\(codec)", "maxGapSeconds": 600 },
                  { "id": "live", "use": "rtsp-sink", "from": ["h264", "sound"], "port": \(port)\(sink) },
                  { "id": "file", "use": "recorder", "from": ["h264", "sound"], "path": "out.mp4" }
                ] }
                """)
            program = try Program.framehost.start(["chain.json", "--events"], folder: workspace.folder.path)
            program.closeInput()
            try program.waitForOutput(#""state":"streaming""#)
        }

        /// Ends the chain.
        func finish() throws -> Outcome {
            program.send(SIGINT)
            let outcome = try program.finish()
            guard outcome.isDoneOrBusy else {
                throw TestFault("framehost ended with \(outcome.status): \(outcome.error)")
            }
            return outcome
        }
    }

    /// What a client shows is as far apart as what the recorder wrote of the same units, whenever it joins and however
    /// the packets travel.
    @Test(arguments: [("aac", "tcp"), ("aac", "udp"), ("opus", "tcp"), ("opus", "udp")])
    func aClientKeepsSoundAndPicturesTogether(codec: String, transport: String) throws {
        let play: () throws -> (seen: LipSync, recorded: LipSync) = {
            let stream = try Stream(codec)
            let seen = try LipSync("-rtsp_transport", transport, "-i", stream.url, seconds: 12)
            _ = try stream.finish()
            return (seen, try LipSync("-i", stream.workspace.path("out.mp4")))
        }
        // A live picture has the time at which it was made, so each flash is late by as much as the machine was busy.
        func microseconds(_ offsets: [Double]) -> [Int] { offsets.map { Int(($0 * 1000).rounded()) } }
        // A client that joins at a beep lacks the packet before it, without which a decoder gives no sound.
        func isRun(_ seen: LipSync, of recorded: LipSync) -> Bool {
            RTSPStream.isRun(
                microseconds(Array(seen.offsets.dropFirst())), of: microseconds(recorded.offsets), within: 1000)
        }
        let (seen, recorded) = try DatagramLosses.retrying(play) {
            $0.seen.offsets.count >= 5 && isRun($0.seen, of: $0.recorded)
        }.value
        #expect(seen.flashes.count >= 5 && seen.offsets.count >= 5, "\(seen)")
        #expect(isRun(seen, of: recorded), "\(seen.offsets), recorded \(recorded.offsets)")
    }

    @Test(arguments: [("aac", "48000"), ("opus", "48000")]) func aClientSeesBothTracks(codec: String, rate: String)
        throws
    {
        let stream = try Stream(codec)
        let outcome = try Tool.ffprobe.run(
            "-v", "error", "-rtsp_transport", "tcp", "-show_entries", "stream=codec_name,sample_rate", "-of", "json",
            stream.url)
        _ = try stream.finish()
        #expect(outcome.error == "", "\(outcome.error)")
        let tracks = try JSON(parsing: outcome.output)["streams"].list
        #expect(tracks.map { $0["codec_name"].string } == ["h264", codec])
        #expect(tracks.last?["sample_rate"].string == rate)
    }

    /// FFmpeg sets up only the media that it is told to.
    @Test(arguments: [("video", "v:0"), ("audio", "a:0")]) func aClientMayTakeOneOfThem(
        medium: String, track: String
    ) throws {
        let stream = try Stream("aac")
        let outcome = try Tool.ffprobe.run(
            "-v", "error", "-rtsp_transport", "tcp", "-allowed_media_types", medium, "-read_intervals", "%+8",
            "-select_streams", track, "-show_entries", "packet=pts_time", "-of", "csv=p=0", stream.url)
        let ended = try stream.finish()
        let times = outcome.lines.compactMap { Double($0.prefix { $0 != "," }) }
        // A busy machine loses live pictures; sound it does not.
        #expect(times.count >= (medium == "video" ? 20 : 40), "\(outcome.output)\(outcome.error)")
        // Of the first packet with two units FFmpeg does not know yet how long one is, and gives both one time.
        let steps = zip(times, times.dropFirst()).map { $1 - $0 }.dropFirst(2)
        // A live picture has the time at which it was made; sound goes on sample by sample.
        #expect(steps.allSatisfy { medium == "video" ? $0 > 0 : abs($0 - 1024.0 / 48_000) < 0.000_1 }, "\(times)")
        #expect(ended.output.contains(#""client-left""#) || ended.error.contains(#""client-left""#))
    }

    @Test(.needs(.gstreamer), arguments: ["tcp", "udp"]) func gstreamerDecodesBoth(transport: String) throws {
        let stream = try Stream("aac")
        let (pictures, sound) = (stream.workspace.path("g.gray"), stream.workspace.path("g.pcm"))
        let player = try Tool.gstreamer.start([
            "-e", "rtspsrc", "location=\(stream.url)", "protocols=\(transport)", "latency=100", "name=source",
            "source.", "!", "queue", "!", "rtph264depay", "!", "h264parse", "!", "avdec_h264", "!", "videoconvert",
            "!", "video/x-raw,format=GRAY8", "!", "filesink", "buffer-mode=unbuffered", "location=\(pictures)",
            "source.", "!", "queue", "!", "rtpmp4gdepay", "!", "avdec_aac", "!", "audioconvert", "!",
            "audio/x-raw,format=S16LE,channels=1", "!", "filesink", "buffer-mode=unbuffered", "location=\(sound)",
        ])
        func size(_ path: String) -> Int {
            (try? URL(fileURLWithPath: path).resourceValues(forKeys: [.fileSizeKey]).fileSize) ?? 0
        }
        // 3 s of each.
        let deadline = Date() + 180
        while size(sound) < 3 * 48_000 * 2 || size(pictures) < 60 * 320 * 240, Date() < deadline { usleep(100_000) }
        #expect(size(sound) >= 3 * 48_000 * 2)
        #expect(size(pictures) >= 60 * 320 * 240)
        player.send(SIGINT)
        let outcome = try player.finish()
        let ended = try stream.finish()
        let fault = outcome.error.firstRange(of: "ERROR").map { outcome.error[$0.lowerBound...] }
        let text = (fault ?? "").split(separator: "\n").joined(separator: " | ")
        #expect(fault == nil || outcome.hasGivenUpItsGoodbye, "\(text)\n\(ended.output)")
    }

    @Test func checkSaysWhatItCannotServe() throws {
        let workspace = try Workspace()
        try workspace.write(
            "chain.json",
            """
            { "stages": [
              { "id": "one", "use": "test-source" },
              { "id": "h264", "use": "x264-encoder" },
              { "id": "tone", "use": "tone-source" },
              { "id": "live", "use": "rtsp-sink", "from": ["h264", "tone"] }
            ] }
            """)
        let outcome = try Program.framehost.run(["check", "chain.json"], folder: workspace.folder.path)
        #expect(outcome.status != 0)
        #expect(outcome.error.contains("'live'") && outcome.error.contains("AAC"), "\(outcome.error)")
    }
}
