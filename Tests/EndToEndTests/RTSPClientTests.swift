// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import Testing

/// What clients do besides playing from end to end: other addresses, TLS, pauses, two streams, a stream that ends and
/// comes again.
@Suite(.serialized) struct RTSPClientTests {
    private static func ffmpeg(_ url: String, _ transport: String, count: Int? = 40) throws -> [String] {
        try RTSPStream.pictures(
            ["-rtsp_transport", transport, "-i", url] + (count.map { ["-frames:v", "\($0)"] } ?? []))
    }

    @Test(.needs(.ffmpeg), .needsIPv6, arguments: ["tcp", "udp"]) func ffmpegPlaysOverIPv6(transport: String) throws {
        let stream = try RTSPStream()
        let seen = try Self.ffmpeg(stream.urlOverIPv6, transport)
        #expect(seen.count == 40)
        #expect(RTSPStream.isRun(seen, of: try stream.finish()))
    }

    @Test(.needs(.ffmpeg), .needs(.openssl)) func ffmpegPlaysOverTLS() throws {
        let stream = try RTSPStream(isSecure: true)
        let seen = try Self.ffmpeg(stream.url, "tcp")
        #expect(seen.count == 40)
        #expect(RTSPStream.isRun(seen, of: try stream.finish()))
    }

    /// RTSP through HTTP: a GET and a POST.
    @Test(.needs(.ffmpeg)) func ffmpegPlaysThroughHTTP() throws {
        let stream = try RTSPStream()
        let seen = try Self.ffmpeg(stream.url, "http")
        #expect(seen.count == 40)
        #expect(RTSPStream.isRun(seen, of: try stream.finish()))
    }

    /// The stream's last pictures arrive, and the client ends without a fault.
    @Test(.needs(.ffmpeg), arguments: ["tcp", "udp"]) func ffmpegEndsWithTheStream(transport: String) throws {
        let stream = try RTSPStream(frames: 150)
        let seen = try Self.ffmpeg(stream.url, transport, count: nil)
        let recorded = try stream.finish(bySignal: false)
        // A busy machine leaves out some of the 150, for the recording and the player alike.
        #expect((20...150).contains(recorded.count))
        #expect(seen.count >= 20)
        #expect(seen == recorded.suffix(seen.count))
    }

    @Test(.needs(.mpv)) func mpvEndsWithTheStream() throws {
        let stream = try RTSPStream(frames: 150)
        let outcome = try Tool.mpv.run("--no-config", "--vo=null", "--no-audio", "--rtsp-transport=tcp", stream.url)
        #expect(outcome.status == 0)
        #expect(outcome.output.contains("(End of file)"), "\(outcome.output.suffix(500))")
        _ = try stream.finish(bySignal: false)
    }

    /// The port is free at once for the chain that comes after, though clients were there at the end.
    @Test(.needs(.ffmpeg)) func playsAgainWhenTheChainIsRestarted() throws {
        let first = try RTSPStream(frames: 100)
        _ = try Self.ffmpeg(first.url, "tcp", count: nil)
        _ = try first.finish(bySignal: false)
        let second = try RTSPStream(port: first.port)
        let seen = try Self.ffmpeg(first.url, "tcp")
        #expect(seen.count == 40)
        #expect(RTSPStream.isRun(seen, of: try second.finish()))
    }

    /// Two stages of a chain serve on one port; each player gets its own picture.
    @Test(.needs(.ffmpeg), .needs(.ffprobe), arguments: ["tcp", "udp"]) func servesTwoPathsOnOnePort(transport: String)
        throws
    {
        let workspace = try Workspace()
        let port = try RTSPStream.freePort()
        let stages = ["320x240", "160x120"].enumerated().map { number, size in
            """
            { "id": "camera\(number)", "use": "test-source", "size": "\(size)", "rate": 25, "live": true },
            { "id": "h264\(number)", "use": "x264-encoder", "preset": "ultrafast" },
            { "id": "live\(number)", "use": "rtsp-sink", "port": \(port), "path": "/\(size)" }
            """
        }
        try workspace.write("chain.json", #"{ "stages": [ \#(stages.joined(separator: ",\n")) ] }"#)
        let program = try Program.framehost.start(["chain.json", "--events"], folder: workspace.folder.path)
        program.closeInput()
        try program.waitForOutput(#""state":"streaming""#)
        let players = try ["320x240", "160x120"].map { size in
            let url = "rtsp://127.0.0.1:\(port)/\(size)"
            return try Tool.ffmpeg.start(
                [
                    "-nostdin", "-v", "error", "-rtsp_transport", transport, "-i", url, "-frames:v", "30", "-f",
                    "framehash", "-",
                ])
        }
        for (player, bytes) in zip(players, [320 * 240 * 3 / 2, 160 * 120 * 3 / 2]) {
            let outcome = try player.finish()
            #expect(outcome.status == 0, "\(outcome.error)")
            let rows = outcome.lines.filter { !$0.hasPrefix("#") }.map { line in
                line.split(separator: ",").map { $0.trimmingCharacters(in: .whitespaces) }
            }
            #expect(rows.count == 30)
            #expect(rows.allSatisfy { $0.count == 6 && $0[4] == "\(bytes)" })
        }
        program.send(SIGINT)
        #expect(try program.finish().status == 0)
    }

    /// libcurl takes 40 pictures, pauses, plays again and takes 40 more.
    @Test(.needs(.python), .needs(.curl), .needs(.ffmpeg), arguments: ["tcp", "udp"])
    func libcurlPlaysPausesAndPlays(transport: String) throws {
        let stream = try RTSPStream()
        let script = Repository.root.appending(path: "Tests/Conformance/curl-client.py").path
        let folder = stream.workspace.folder.path
        let outcome = try Tool.python.run(script, stream.url, transport, "40", folder)
        #expect(outcome.status == 0, "\(outcome.error)")
        let recorded = try stream.finish()
        let steps = try stream.recordedSteps()
        for part in ["1", "2"] {
            let seen = try RTSPStream.pictures(["-i", stream.workspace.path("\(part).h264")])
            #expect(seen.count == 40)
            #expect(RTSPStream.isRun(seen, of: recorded))
            let text = String(decoding: try stream.workspace.data("\(part).txt"), as: UTF8.self)
            let times = text.split(separator: "\n").compactMap { UInt32($0) }
            #expect(times.count == 40)
            #expect(
                RTSPStream.isRun(zip(times, times.dropFirst()).map { Int($1 &- $0) }, of: steps, within: 2), "\(times)")
        }
    }
}
