// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

/// Who joins a stream that nobody makes keyframes of when asked has the pictures since the last keyframe at once: no
/// decode error, none left out, times that rise.
@Suite(.serialized) struct RTSPInstantPictureTests {
    /// Far apart, so that no joiner of these tests meets the next one by waiting.
    private static let keyframePictures = 3000
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
            "0", "-b:v", "1500k", workspace.path("clip.mp4"), timeout: 600)
        guard made.status == 0 else { throw TestFault("ffmpeg: \(made.error)") }
        whole = try RTSPStream.pictures(["-i", workspace.path("clip.mp4")])
        let port = try RTSPStream.freePort()
        url = "rtsp://127.0.0.1:\(port)/live"
        try workspace.write(
            "chain.json",
            """
            { "stages": [
              { "id": "clip", "use": "file-source", "path": "clip.mp4", "decode": false, "pace": "realtime", "loop": true },
              { "id": "live", "use": "rtsp-sink", "port": \(port), "keptSeconds": 90 }
            ] }
            """)
        program = try Program.framehost.start(
            ["chain.json", "--events", "--commands", "--stats", "stats.json"], folder: workspace.folder.path)
    }

    /// Until the last keyframe is at least 10 s old and the next one at least 20 s away: who has not caught up when that
    /// comes is given no more of the group before it. Gives how many pictures the group has then.
    private func waitForMiddleOfGroup() throws -> Int {
        let (least, most) = (10 * Self.rate, 40 * Self.rate)
        while true {
            let frames = try program.frames()
            let inGroup = frames % Self.keyframePictures
            if (least...most).contains(inGroup) { return inGroup }
            try program.waitForFrames(frames + (Self.keyframePictures + least - inGroup) % Self.keyframePictures)
        }
    }

    /// What one joiner gets.
    private struct Seen {
        var pictures: [String]
        /// How many it asked for: those of the group when it joined, and some over the seam to what came live.
        var count: Int
        /// The first that is not that of the clip.
        var wrong: Int?
        var isGood: Bool { pictures.count >= count && wrong == nil }
    }

    /// Joins with `record`, which gives at least so many pictures; again where datagrams were lost. A player that reads
    /// and decodes on one thread loses them on a busy machine, so it should write a file first and decode that.
    private func join(_ record: (_ count: Int) throws -> [String]) throws -> (value: Seen, tries: Int) {
        let play = {
            let count = try waitForMiddleOfGroup() + 3 * Self.rate
            let pictures = try record(count)
            return Seen(
                pictures: pictures, count: count,
                wrong: zip(pictures, whole).enumerated().first { $1.0 != $1.1 }?.offset)
        }
        return try DatagramLosses.retrying(play) { $0.isGood }
    }

    private func finish() throws -> JSON {
        program.send(SIGINT)
        #expect(try program.finish().status == 0)
        return try JSON(file: workspace.path("stats.json"))["stages"].first("id", "live")["figures"]["keptGroup"]
    }

    @Test(.needs(.ffmpeg), .needs(.ffprobe)) func ffmpegBeginsWithTheLastKeyframeAndMissesNothing() throws {
        var plays = 4
        for transport in ["tcp", "udp"] {
            let file = workspace.path("\(transport).mkv")
            let (seen, tries) = try join { count in
                let read = try Tool.ffmpeg.run(
                    [
                        "-nostdin", "-v", "error", "-y", "-rtsp_transport", transport, "-i", url, "-an", "-c", "copy",
                        "-frames:v", "\(count)", file,
                    ], timeout: 120)
                guard read.status == 0 else { throw TestFault("ffmpeg ended with \(read.status): \(read.error)") }
                return try RTSPStream.pictures(["-i", file])
            }
            plays += tries - 1
            #expect(
                seen.isGood && seen.pictures.count == seen.count,
                "\(transport): \(seen.pictures.count) of \(seen.count), wrong \(seen.wrong ?? -1), \(tries) tries")
            let probe: () throws -> Outcome = {
                try Tool.ffprobe.run(
                    "-v", "error", "-rtsp_transport", transport, "-select_streams", "v:0", "-read_intervals", "%+#300",
                    "-show_entries", "packet=pts_time,flags", "-of", "csv=p=0", url)
            }
            func packets(_ times: Outcome) -> [[Substring]] { times.lines.map { $0.split(separator: ",") } }
            // ffprobe gives the first packet of any RTSP stream no time.
            func stamps(_ times: Outcome) -> [Double] { packets(times).dropFirst().compactMap { Double($0[0]) } }
            func isRising(_ times: Outcome) -> Bool {
                let given = stamps(times)
                return given.count == 299 && zip(given, given.dropFirst()).allSatisfy { $0 < $1 }
            }
            let (times, probes) = try DatagramLosses.retrying(probe) { $0.error.isEmpty && isRising($0) }
            plays += probes - 1
            #expect(times.error.isEmpty, "\(times.error)")
            #expect(packets(times).count == 300)
            #expect(packets(times).first?.last?.hasPrefix("K") == true)
            #expect(isRising(times))
        }
        let figures = try finish()
        #expect(figures["joinedAtOnce"].int == plays && figures["joinedWaiting"].int == 0)
    }

    @Test(.needs(.gstreamer)) func gstreamerBeginsWithTheLastKeyframeAndMissesNothing() throws {
        for transport in ["tcp", "udp"] {
            let file = workspace.path("\(transport).i420")
            let (seen, tries) = try join { count in
                let outcome = try Tool.gstreamer.run(
                    [
                        "rtspsrc", "location=\(url)", "protocols=\(transport)", "!", "rtph264depay", "!", "h264parse",
                        "!", "avdec_h264", "!", "video/x-raw,format=I420", "!", "identity", "eos-after=\(count + 2)",
                        "!", "filesink", "location=\(file)",
                    ], timeout: 120)
                #expect(outcome.status == 0 || outcome.hasGivenUpItsGoodbye, "\(outcome.error)")
                return try RTSPStream.pictures(
                    ["-f", "rawvideo", "-pix_fmt", "yuv420p", "-s", "320x240", "-i", file])
            }
            #expect(
                seen.isGood,
                "\(transport): \(seen.pictures.count) of \(seen.count), wrong \(seen.wrong ?? -1), \(tries) tries")
        }
        _ = try finish()
    }
}
