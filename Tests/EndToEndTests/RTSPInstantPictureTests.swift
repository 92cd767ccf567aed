// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

/// Who joins a stream that nobody makes keyframes of when asked has the pictures since the last keyframe at once: no
/// decode error, none left out, times that rise.
@Suite(.serialized) struct RTSPInstantPictureTests {
    /// Far apart, so that no joiner of these tests meets the next one by waiting.
    private static let keyframePictures = 1500
    private static let rate = 50
    /// Of each picture of the clip, MD5.
    private let whole: [String]
    private let workspace: Workspace
    private let program: RunningProgram
    private let url: String

    init() throws {
        workspace = try Workspace()
        let made = try Tool.ffmpeg.run(
            "-nostdin", "-v", "error", "-f", "lavfi", "-i",
            "testsrc2=size=320x240:rate=\(Self.rate):duration=\(Self.keyframePictures / Self.rate)", "-pix_fmt",
            "yuv420p",
            "-c:v", "libx264", "-preset", "veryfast", "-bf", "0", "-g", "\(Self.keyframePictures)", "-sc_threshold",
            "0", "-b:v", "1500k", workspace.path("clip.mp4"))
        guard made.status == 0 else { throw TestFault("ffmpeg: \(made.error)") }
        whole = try RTSPStream.pictures(["-i", workspace.path("clip.mp4")])
        let port = try RTSPStream.freePort()
        url = "rtsp://127.0.0.1:\(port)/live"
        try workspace.write(
            "chain.json",
            """
            { "stages": [
              { "id": "clip", "use": "file-source", "path": "clip.mp4", "decode": false, "pace": "realtime", "loop": true },
              { "id": "live", "use": "rtsp-sink", "port": \(port), "keptSeconds": 60 }
            ] }
            """)
        program = try Program.framehost.start(
            ["chain.json", "--events", "--commands", "--stats", "stats.json"], folder: workspace.folder.path)
        // In the middle of a group: the next keyframe is 20 s away.
        try program.waitForFrames(10 * Self.rate)
    }

    private func finish() throws -> JSON {
        program.send(SIGINT)
        #expect(try program.finish().status == 0)
        return try JSON(file: workspace.path("stats.json"))["stages"].first("id", "live")["figures"]["keptGroup"]
    }

    @Test(.needs(.ffmpeg), .needs(.ffprobe)) func ffmpegBeginsWithTheLastKeyframeAndMissesNothing() throws {
        var plays = 4
        for transport in ["tcp", "udp"] {
            // Longer than the group was when it joined, and so over the seam to what came live.
            let play = {
                try RTSPStream.pictures(
                    ["-rtsp_transport", transport, "-i", url, "-frames:v", "\(13 * Self.rate)"], timeout: 120)
            }
            let seen = try DatagramLosses.retrying(play) { $0 == Array(whole.prefix(13 * Self.rate)) }
            plays += seen.tries - 1
            #expect(seen.value == Array(whole.prefix(13 * Self.rate)), "\(transport): \(seen.value.count)")
            let times = try Tool.ffprobe.run(
                "-v", "error", "-rtsp_transport", transport, "-select_streams", "v:0", "-read_intervals", "%+#300",
                "-show_entries", "packet=pts_time,flags", "-of", "csv=p=0", url)
            #expect(times.error.isEmpty, "\(times.error)")
            let packets = times.lines.map { $0.split(separator: ",") }
            #expect(packets.count == 300)
            #expect(packets.first?.last?.hasPrefix("K") == true)
            // ffprobe gives the first packet of any RTSP stream no time.
            let stamps = packets.dropFirst().compactMap { Double($0[0]) }
            #expect(stamps.count == 299 && zip(stamps, stamps.dropFirst()).allSatisfy { $0 < $1 })
        }
        let figures = try finish()
        #expect(figures["joinedAtOnce"].int == plays && figures["joinedWaiting"].int == 0)
    }

    @Test(.needs(.gstreamer)) func gstreamerBeginsWithTheLastKeyframeAndMissesNothing() throws {
        for transport in ["tcp", "udp"] {
            let file = workspace.path("\(transport).i420")
            let outcome = try Tool.gstreamer.run(
                [
                    "rtspsrc", "location=\(url)", "protocols=\(transport)", "!", "rtph264depay", "!", "h264parse", "!",
                    "avdec_h264", "!", "video/x-raw,format=I420", "!", "identity", "eos-after=\(12 * Self.rate)", "!",
                    "filesink", "location=\(file)",
                ], timeout: 120)
            #expect(outcome.status == 0, "\(outcome.error)")
            let seen = try RTSPStream.pictures(
                ["-f", "rawvideo", "-pix_fmt", "yuv420p", "-s", "320x240", "-i", file])
            #expect(seen.count >= 12 * Self.rate - 2)
            #expect(seen == Array(whole.prefix(seen.count)), "\(transport): \(seen.count)")
        }
        _ = try finish()
    }
}
