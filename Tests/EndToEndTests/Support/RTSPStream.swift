// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import Synchronization
import Testing

/// A chain that serves a test picture and records the same access units.
final class RTSPStream {
    let program: RunningProgram
    let url: String
    let port: Int
    let workspace: Workspace

    /// - Parameters:
    ///   - encoder: Further members of the encoder.
    ///   - sink: Further members of the RTSP sink.
    ///   - sound: The codec of a tone that is served beside the pictures, "aac" or "opus"; without it there is none.
    ///   - keyframeSeconds: From one keyframe to the next.
    ///   - isSecure: RTSPS, with a certificate of its own.
    ///   - frames: Ends after so many.
    ///   - port: Where to listen; without it a port nobody has at the moment.
    ///   - descriptors: Most files and sockets that the program may have open.
    init(
        encoder: String = "", sink: String = "", sound: String? = nil, keyframeSeconds: Double = 0.5,
        isSecure: Bool = false,
        frames: Int? = nil, environment: [String: String] = [:],
        port: Int? = nil, descriptors: Int? = nil
    ) throws {
        workspace = try Workspace()
        self.port = try port ?? Self.freePort()
        var members = #""port": \#(self.port), "path": "/live""#
        if !sink.isEmpty { members += ", " + sink }
        if isSecure {
            try Self.makeCertificate(workspace)
            members += #", "certificate": "cert.pem", "key": "key.pem""#
        }
        var tone = ""
        if let sound {
            members += #", "from": ["h264", "sound"]"#
            tone = """
                { "id": "tone", "use": "tone-source", "live": true },
                { "id": "sound", "use": "audio-encoder", "codec": "\(sound)", "maxGapSeconds": 600 },
                """
        }
        let end = frames.map { #", "frames": \#($0)"# } ?? ""
        try workspace.write(
            "chain.json",
            """
            {
              "stages": [
                { "id": "camera", "use": "test-source", "size": "320x240", "rate": 50, "live": true\(end) },
                { "id": "h264", "use": "x264-encoder", "preset": "ultrafast", "bitrateKbps": 1500, "keyframeSeconds": \(keyframeSeconds)\(encoder.isEmpty ? "" : ", \(encoder)") },
                \(tone)
                { "id": "live", "use": "rtsp-sink", \(members) },
                { "id": "file", "use": "recorder", "from": "h264", "path": "out.mp4" }
              ]
            }
            """)
        url = "\(isSecure ? "rtsps" : "rtsp")://127.0.0.1:\(self.port)/live"
        let limit = descriptors.map { "ulimit -n \($0) && " } ?? ""
        program = try Program(URL(fileURLWithPath: "/bin/sh")).start(
            ["-c", limit + "exec \"$0\" \"$@\"", try Repository.executable.path, "chain.json", "--events"],
            environment: environment,
            folder: workspace.folder.path)
        program.closeInput()
        try program.waitForOutput(#""state":"streaming""#)
    }

    /// The same over IPv6.
    var urlOverIPv6: String { url.replacingOccurrences(of: "127.0.0.1", with: "[::1]") }

    /// Ends the chain; MD5 of each picture of the recording. On a machine that has no time for it a live chain loses frames
    /// and says so with status 1: what is asked here holds for those it has.
    ///
    /// - Parameter bySignal: False for a chain that ends by itself.
    func finish(bySignal: Bool = true) throws -> [String] {
        if bySignal { program.send(SIGINT) }
        let outcome = try program.finish()
        guard outcome.isDoneOrBusy else {
            throw TestFault("framehost ended with \(outcome.status): \(outcome.error)")
        }
        return try Self.pictures(["-i", workspace.path("out.mp4")])
    }

    /// MD5 of each decoded picture, as ffmpeg's framemd5 writes them.
    static func pictures(_ input: [String], timeout: Double = 180) throws -> [String] {
        try pictures(of: player(input), timeout: timeout)
    }

    /// An ffmpeg that says a line of framemd5 for each picture as it comes.
    static func player(_ input: [String]) throws -> RunningProgram {
        let player = try Tool.ffmpeg.start(
            ["-nostdin", "-v", "error"] + input + ["-an", "-fps_mode", "passthrough", "-f", "framemd5", "-"])
        player.closeInput()
        return player
    }

    /// MD5 of each picture of a ``player(_:)``, once it has ended.
    static func pictures(of player: RunningProgram, timeout: Double = 180) throws -> [String] {
        let outcome = try player.finish(timeout: timeout)
        guard outcome.status == 0 else { throw TestFault("ffmpeg ended with \(outcome.status): \(outcome.error)") }
        return outcome.lines.filter { !$0.hasPrefix("#") }.compactMap { line in
            line.split(separator: ",").last.map { $0.trimmingCharacters(in: .whitespaces) }
        }
    }

    /// `part` as a run without gap in `whole`, which may have equal neighbours.
    static func isRun(_ part: [String], of whole: [String]) -> Bool {
        guard let first = part.first else { return false }
        return whole.indices.contains { whole[$0] == first && whole[$0...].starts(with: part) }
    }

    /// Whether `seen` is what a client must get of a file that is served over and over; `whole` begins with all of it.
    /// Of the group in which it joined it is given no more once the next keyframe comes (docs/design/006).
    ///
    /// - Parameters:
    ///   - count: Pictures of the file.
    ///   - group: From keyframe to keyframe.
    static func isJoin(_ seen: [String], of whole: [String], count: Int, group: Int) -> Bool {
        let clip = Array(whole.prefix(count))
        guard clip.count == count, let begin = seen.first, let joined = clip.firstIndex(of: begin), joined % group == 0
        else { return false }
        let next = joined + group < count ? joined + group : 0
        let first = seen.prefix { $0 != clip[next] }
        return clip[joined...].starts(with: first) && isRun(Array(seen.dropFirst(first.count)), of: whole)
    }

    /// What a player sees of a stream, and what that recorded: again where datagrams were lost and it has seen no run
    /// of so many pictures.
    static func watch(
        count: Int, _ play: (RTSPStream) throws -> [String]
    ) throws -> (seen: [String], recorded: [String]) {
        try DatagramLosses.retrying(
            {
                let stream = try RTSPStream()
                let seen = try play(stream)
                return (seen, try stream.finish())
            },
            until: { (watched: (seen: [String], recorded: [String])) in
                watched.seen.count == count && isRun(watched.seen, of: watched.recorded)
            }
        ).value
    }

    /// Ends streams while a player is there, which must have a run of the pictures, and of one stream the last of them:
    /// a player that reads too late gives up what waits in its socket when it is told of the end.
    ///
    /// - Parameter start: Starts a player, waits until it has shown some pictures, and gives what waits for its end.
    static func expectTheEnd(_ start: (RTSPStream) throws -> () throws -> [String]) throws {
        var hasSeenTheEnd = false
        for _ in 0..<5 where !hasSeenTheEnd {
            let (seen, recorded) = try DatagramLosses.retrying(
                {
                    let stream = try RTSPStream()
                    let pictures = try start(stream)
                    let recorded = try stream.finish()
                    return (try withExtendedLifetime(stream, pictures), recorded)
                }, until: { (watched: ([String], [String])) in isRun(watched.0, of: watched.1) }
            ).value
            #expect(seen.count >= 20 && isRun(seen, of: recorded), "\(seen.count) of \(recorded.count) pictures")
            hasSeenTheEnd = seen == recorded.suffix(seen.count)
        }
        #expect(hasSeenTheEnd, "of none of five streams the player has seen the last picture")
    }

    // MARK: Times, in ticks of 1/90000 s

    /// The times of all packets that ffprobe sees.
    static func times(_ input: [String]) throws -> [Int] {
        let outcome = try Tool.ffprobe.run(
            ["-v", "error", "-select_streams", "v:0", "-show_entries", "packet=pts_time", "-of", "csv=p=0"] + input)
        guard outcome.status == 0, outcome.error.isEmpty else {
            throw TestFault("ffprobe ended with \(outcome.status): \(outcome.error)")
        }
        return outcome.lines.compactMap { Double($0.prefix { $0 != "," }) }.map { Int(($0 * 90_000).rounded()) }
    }

    static func steps(_ times: [Int]) -> [Int] { zip(times, times.dropFirst()).map { $1 - $0 } }

    /// From each picture of the recording to the next.
    func recordedSteps() throws -> [Int] { Self.steps(try Self.times([workspace.path("out.mp4")])) }

    /// Whether `part` stands in `whole`, each step within so many ticks: rounding on either side.
    static func isRun(_ part: [Int], of whole: [Int], within ticks: Int) -> Bool {
        guard !part.isEmpty, whole.count >= part.count else { return false }
        return (0...(whole.count - part.count)).contains { start in
            zip(part, whole[start...]).allSatisfy { abs($0 - $1) <= ticks }
        }
    }

    private static func makeCertificate(_ workspace: Workspace) throws {
        let outcome = try Tool.openssl.run(
            "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost", "-keyout",
            workspace.path("key.pem"),
            "-out",
            workspace.path("cert.pem"))
        guard outcome.status == 0 else { throw TestFault("openssl: \(outcome.error)") }
    }

    /// A TCP port nobody has at the moment, and no client is given: below those that the kernel hands out
    /// (`ip_local_port_range`, ip(7)). The socket is closed on exec, or a program another test starts meanwhile would
    /// keep the port.
    static func freePort() throws -> Int {
        for _ in 0..<200 {
            // None twice in this process: it is free until its program listens, and another test would be given it.
            let port = 10_000 + nextPort.wrappingAdd(1, ordering: .relaxed).oldValue % 5000
            let socket = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
            defer { close(socket) }
            var address = sockaddr_in()
            address.sin_family = sa_family_t(AF_INET)
            address.sin_port = in_port_t(port).bigEndian
            let result = withUnsafePointer(to: &address) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    bind(socket, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
                }
            }
            if result == 0 { return port }
        }
        throw TestFault("no port is free between 10000 and 15000")
    }

    /// RTSPSinkTests have those from 15000 on.
    private static let nextPort = Atomic(Int.random(in: 0..<5000))
}

extension Tool {
    static let gstreamer = Tool(name: "gst-launch-1.0")
    static let openssl = Tool(name: "openssl")
    static let curl = Tool(name: "curl")
    static let nm = Tool(name: "nm")
}

extension Outcome {
    /// After its last picture `rtspsrc` says PAUSE and TEARDOWN. Where the answer to the first takes longer than
    /// gst-launch's own way down, it cancels its connection, finds it cancelled ("end-of-file", without any system
    /// call) and ends with status 1: the server has no part in it.
    var hasGivenUpItsGoodbye: Bool {
        let places = errorLines.filter { $0.hasPrefix("../") }
        let ofGoodbye = ["gst_rtspsrc_try_send ()", "gst_rtspsrc_pause ()", "gst_rtspsrc_close ()"]
        return status == 1 && !places.isEmpty
            && places.allSatisfy { place in ofGoodbye.contains { place.contains($0) } }
            && error.contains("(Received end-of-file)")
    }
}

extension Trait where Self == ConditionTrait {
    /// Skips by name where the kernel has no IPv6, except in CI.
    static var needsIPv6: Self {
        .enabled(
            if: FileManager.default.fileExists(atPath: "/proc/net/if_inet6") || Tool.isCI, "this machine has no IPv6")
    }
}
