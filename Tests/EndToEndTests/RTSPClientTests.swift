// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import Testing

/// What clients do besides playing from end to end: other addresses, TLS, pauses, two streams, a stream that ends and
/// comes again.
@Suite(.serialized) struct RTSPClientTests {
    private static func ffmpeg(_ url: String, _ transport: String) throws -> [String] {
        try RTSPStream.pictures(["-rtsp_transport", transport, "-i", url, "-frames:v", "40"])
    }

    /// An ffmpeg that plays up to the stream's end, once it has shown a second of it.
    private static func player(_ url: String, _ transport: String) throws -> RunningProgram {
        let player = try RTSPStream.player(["-rtsp_transport", transport, "-i", url])
        try player.waitForLines(50)
        return player
    }

    @Test(.needs(.ffmpeg), .needsIPv6, arguments: ["tcp", "udp"]) func ffmpegPlaysOverIPv6(transport: String) throws {
        let (seen, recorded) = try RTSPStream.watch(count: 40) { try Self.ffmpeg($0.urlOverIPv6, transport) }
        #expect(seen.count == 40)
        #expect(RTSPStream.isRun(seen, of: recorded))
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
        try RTSPStream.expectTheEnd { stream in
            let player = try Self.player(stream.url, transport)
            return { try RTSPStream.pictures(of: player) }
        }
    }

    @Test(.needs(.mpv)) func mpvEndsWithTheStream() throws {
        let stream = try RTSPStream(frames: 1500)
        let outcome = try Tool.mpv.run("--no-config", "--vo=null", "--no-audio", "--rtsp-transport=tcp", stream.url)
        #expect(outcome.status == 0)
        #expect(outcome.output.contains("(End of file)"), "\(outcome.output.suffix(500))")
        _ = try stream.finish(bySignal: false)
    }

    /// The port is free at once for the chain that comes after, though clients were there at the end.
    @Test(.needs(.ffmpeg)) func playsAgainWhenTheChainIsRestarted() throws {
        let first = try RTSPStream()
        let player = try Self.player(first.url, "tcp")
        _ = try first.finish()
        _ = try RTSPStream.pictures(of: player)
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
        let ended = try program.finish()
        #expect(ended.isDoneOrBusy, "\(ended.error)")
    }

    /// libcurl takes 40 pictures, pauses, plays again and takes 40 more.
    @Test(.needs(.python), .needs(.curl), .needs(.ffmpeg), arguments: ["tcp", "udp"])
    func libcurlPlaysPausesAndPlays(transport: String) throws {
        struct Part {
            var seen: [String]
            var times: [UInt32]
            var recorded: [String]
            var recordedSteps: [Int]
            var isRun: Bool { seen.count == 40 && RTSPStream.isRun(seen, of: recorded) }
            var isInTime: Bool {
                let steps = zip(times, times.dropFirst()).map { Int($1 &- $0) }
                return times.count == 40 && RTSPStream.isRun(steps, of: recordedSteps, within: 2)
            }
        }
        let script = Repository.root.appending(path: "Tests/Conformance/curl-client.py").path
        let play: () throws -> [Part] = {
            let stream = try RTSPStream()
            let outcome = try Tool.python.run(script, stream.url, transport, "40", stream.workspace.folder.path)
            guard outcome.status == 0 else { throw TestFault("curl-client.py: \(outcome.error)") }
            let recorded = try stream.finish()
            let steps = try stream.recordedSteps()
            return try ["1", "2"].map { part in
                let text = String(decoding: try stream.workspace.data("\(part).txt"), as: UTF8.self)
                return Part(
                    seen: try RTSPStream.pictures(["-i", stream.workspace.path("\(part).h264")]),
                    times: text.split(separator: "\n").compactMap { UInt32($0) }, recorded: recorded,
                    recordedSteps: steps)
            }
        }
        let parts = try DatagramLosses.retrying(play) { $0.allSatisfy { $0.isRun && $0.isInTime } }.value
        #expect(parts.count == 2)
        for part in parts {
            #expect(part.isRun, "\(part.seen.count) pictures")
            #expect(part.isInTime, "\(part.times)")
        }
    }
}
