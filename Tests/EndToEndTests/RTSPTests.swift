// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import Testing

/// Real clients before the RTSP sink: they must see exactly the pictures that were encoded.
@Suite(.serialized) struct RTSPTests {
    @Test(.needs(.ffmpeg), arguments: ["tcp", "udp"]) func ffmpegSeesEveryPicture(transport: String) throws {
        let (seen, recorded) = try RTSPStream.watch(count: 75) {
            try RTSPStream.pictures(["-rtsp_transport", transport, "-i", $0.url, "-frames:v", "75"])
        }
        #expect(seen.count == 75)
        #expect(RTSPStream.isRun(seen, of: recorded))
    }

    @Test(.needs(.ffprobe), arguments: ["tcp", "udp"]) func ffprobeSeesTheTimesOfTheRecording(transport: String) throws
    {
        let play: () throws -> (steps: [Int], recorded: [Int]) = {
            let stream = try RTSPStream()
            let seen = try RTSPStream.times(["-rtsp_transport", transport, "-read_intervals", "%+#60", stream.url])
            _ = try stream.finish()
            // FFmpeg has no time for the first picture, of any server (docs/rtsp-conformance.md), and counts the wait
            // for it as a step.
            return (Array(RTSPStream.steps(seen).dropFirst(2).prefix(50)), try stream.recordedSteps())
        }
        let (steps, recorded) = try DatagramLosses.retrying(play) {
            $0.steps.count == 50 && RTSPStream.isRun($0.steps, of: $0.recorded, within: 2)
        }.value
        #expect(steps.count == 50)
        #expect(RTSPStream.isRun(steps, of: recorded, within: 2), "\(steps)")
    }

    /// A keyframe every ten minutes only, longer than ffmpeg is waited for: who joins in between has a picture because
    /// the encoder is asked.
    @Test(.needs(.ffmpeg)) func showsAPictureAtOnceBetweenKeyframes() throws {
        let stream = try RTSPStream(keyframeSeconds: 600)
        for _ in 0..<3 {
            let seen = try RTSPStream.pictures(
                [
                    "-rtsp_transport", "tcp", "-analyzeduration", "0", "-i", stream.url,
                    "-frames:v", "1",
                ])
            #expect(seen.count == 1)
        }
        _ = try stream.finish()
        let packets = try Tool.ffprobe.run(
            "-v", "error", "-show_entries", "packet=flags", "-of", "csv=p=0", stream.workspace.path("out.mp4")
        ).lines
        // That of the beginning, and what the second and the third asked for at least: again where the encoder takes
        // longer than a second to make it.
        #expect((3...10).contains(packets.count { $0.contains("K") }), "\(packets.count) pictures")
    }

    @Test(.needs(.ffmpeg)) func asksForAPassword() throws {
        let stream = try RTSPStream(
            sink: #""users": "env:RTSP_USERS", "authentication": "digest""#, environment: ["RTSP_USERS": "anna:secret"])
        let open = try Tool.ffprobe.run("-v", "error", "-rtsp_transport", "tcp", stream.url)
        #expect(open.status != 0)
        #expect(open.error.contains("401"))
        let named = stream.url.replacingOccurrences(of: "rtsp://", with: "rtsp://anna:secret@")
        for transport in ["tcp", "udp"] {
            #expect(
                try RTSPStream.pictures(["-rtsp_transport", transport, "-i", named, "-frames:v", "10"]).count == 10)
        }
        _ = try stream.finish()
        #expect(!(stream.program.output + stream.program.error).contains("secret"))
    }

    @Test(.needs(.curl)) func curlAsksForOptions() throws {
        let stream = try RTSPStream()
        let outcome = try Tool.curl.run("-sS", "-i", "--max-time", "60", stream.url)
        #expect(outcome.output.contains("RTSP/1.0 200 OK"))
        #expect(outcome.output.contains("GET_PARAMETER"))
        _ = try stream.finish()
    }

    /// NIO lies in one image: two copies would not know each other's loops.
    @Test(.needs(.nm)) func hasNIOInOneImage() throws {
        let folder = try Repository.programFolder
        var images: [String] = []
        for name in try FileManager.default.contentsOfDirectory(atPath: folder.path)
        where name.hasSuffix(".so") || name == "framehost" {
            let symbols = try Tool.nm.run("--defined-only", folder.appending(path: name).path).lines
            // The one descriptor of a type lies in the image that defines it.
            if symbols.contains(where: { $0.hasSuffix(" $s7NIOCore10ByteBufferVMn") }) {
                images.append(name)
            }
        }
        #expect(images == ["libFrameNetwork.so"])
    }
}
