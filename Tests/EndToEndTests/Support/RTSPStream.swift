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
    ///   - sink: Further members of the RTSP sink.
    ///   - sound: The codec of a tone that is served beside the pictures, "aac" or "opus"; without it there is none.
    ///   - keyframeSeconds: From one keyframe to the next.
    ///   - isSecure: RTSPS, with a certificate of its own.
    ///   - frames: Ends after so many.
    ///   - port: Where to listen; without it a port nobody has at the moment.
    ///   - descriptors: Most files and sockets that the program may have open.
    init(
        sink: String = "", sound: String? = nil, keyframeSeconds: Double = 0.5, isSecure: Bool = false,
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
                { "id": "sound", "use": "audio-encoder", "codec": "\(sound)" },
                """
        }
        let end = frames.map { #", "frames": \#($0)"# } ?? ""
        try workspace.write(
            "chain.json",
            """
            {
              "stages": [
                { "id": "camera", "use": "test-source", "size": "320x240", "rate": 50, "live": true\(end) },
                { "id": "h264", "use": "x264-encoder", "preset": "ultrafast", "bitrateKbps": 1500, "keyframeSeconds": \(keyframeSeconds) },
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
        let isBusy =
            outcome.status == 1 && outcome.error.contains("the live chain lost")
            && !outcome.errorLines.contains { $0.hasPrefix("error") }
        guard outcome.status == 0 || isBusy else {
            throw TestFault("framehost ended with \(outcome.status): \(outcome.error)")
        }
        return try Self.pictures(["-i", workspace.path("out.mp4")])
    }

    /// MD5 of each decoded picture, as ffmpeg's framemd5 writes them.
    static func pictures(_ input: [String], timeout: Double = 180) throws -> [String] {
        let outcome = try Tool.ffmpeg.run(
            ["-nostdin", "-v", "error"] + input + ["-an", "-fps_mode", "passthrough", "-f", "framemd5", "-"],
            timeout: timeout)
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

extension Trait where Self == ConditionTrait {
    /// Skips by name where the kernel has no IPv6, except in CI.
    static var needsIPv6: Self {
        .enabled(
            if: FileManager.default.fileExists(atPath: "/proc/net/if_inet6") || Tool.isCI, "this machine has no IPv6")
    }
}
