// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import Testing

/// `network-source` beside the RTSP sink and gst-rtsp-server, with recordings of both ends.
@Suite(.serialized) struct NetworkSourceTests {
    /// A receiver of `url` that records to `got.mp4`.
    private static func receiver(
        _ url: String, _ workspace: Workspace, source: String = "", encoder: String = "",
        environment: [String: String] = [:]
    ) throws -> RunningProgram {
        try workspace.write(
            "receive.json",
            """
            { "stages": [
                { "id": "net", "use": "network-source", "url": "\(url)", "connectSeconds": 60\(source) },\(encoder)
                { "id": "file", "use": "recorder", "path": "got.mp4" }
            ] }
            """)
        return try Program.framehost.start(
            ["receive.json", "--events", "--commands", "--stats", "stats.json"], environment: environment,
            folder: workspace.folder.path)
    }

    private static let encoder =
        #" { "id": "h264", "use": "x264-encoder", "preset": "ultrafast", "tune": "zerolatency", "keyframeSeconds": 1 },"#

    /// MD5 of each access unit of a recording.
    private static func units(_ path: String) throws -> [String] {
        let outcome = try Tool.ffmpeg.run([
            "-nostdin", "-v", "error", "-i", path, "-map", "0:v", "-c", "copy", "-f", "framemd5", "-",
        ])
        return outcome.lines.filter { !$0.hasPrefix("#") }.compactMap {
            $0.split(separator: ",").last.map { $0.trimmingCharacters(in: .whitespaces) }
        }
    }

    private static func rises(_ path: String) throws -> Bool {
        RTSPStream.steps(try RTSPStream.times([path])).allSatisfy { $0 > 0 }
    }

    /// From keyframe to keyframe of what ``server(_:size:in:)`` serves.
    private static let group = 13

    /// A server of a file's access units, over and over, which records them too.
    private static func server(_ port: Int, size: String, in workspace: Workspace) throws -> RunningProgram {
        let made = try Tool.ffmpeg.run(
            "-nostdin", "-v", "error", "-y", "-f", "lavfi", "-i", "testsrc2=size=\(size):rate=25:duration=4",
            "-pix_fmt",
            "yuv420p", "-c:v", "libx264", "-bf", "0", "-g", "\(group)", "-sc_threshold", "0",
            workspace.path("\(size).mp4"))
        guard made.status == 0 else { throw TestFault("ffmpeg: \(made.error)") }
        try workspace.write(
            "serve.json",
            """
            { "stages": [
                { "id": "clip", "use": "file-source", "path": "\(size).mp4", "decode": false, "pace": "realtime", "loop": true },
                { "id": "live", "use": "rtsp-sink", "port": \(port), "path": "/live", "address": "127.0.0.1" },
                { "id": "file", "use": "recorder", "from": "clip", "path": "sent.mp4", "overwrite": true }
            ] }
            """)
        let server = try Program.framehost.start(["serve.json", "--events"], folder: workspace.folder.path)
        try server.waitForOutput(#""state":"streaming""#)
        return server
    }

    @Test(.needs(.ffmpeg)) func givesAFilesAccessUnitsThroughRTSPByteForByte() throws {
        for attempt in 1...5 {
            let workspace = try Workspace()
            let port = try RTSPStream.freePort()
            let server = try Self.server(port, size: "320x240", in: workspace)
            let receiver = try Self.receiver(
                "rtsp://127.0.0.1:\(port)/live", workspace, source: #", "decode": false, "stallSeconds": 60"#)
            try receiver.waitForOutput("recording-did-start")
            try receiver.waitForFrames(130)
            receiver.send(SIGINT)
            let received = try receiver.finish()
            #expect(received.isDoneOrBusy, "\(received.error)")
            server.send(SIGINT)
            #expect(try server.finish().status == 0)
            let stats = try JSON(file: workspace.path("stats.json"))
            let net = stats["stages"].first("id", "net")["figures"]
            // A live chain on a busy machine leaves out what it has no time for.
            let dropped = (stats["ledger"]["dropped"].int ?? 0) + (net["dropped"].int ?? 0)
            if dropped > 0, attempt < 5 { continue }
            let (sent, got) = (try Self.units(workspace.path("sent.mp4")), try Self.units(workspace.path("got.mp4")))
            #expect(got.count > 100)
            #expect(
                RTSPStream.isJoin(got, of: sent, count: 100, group: Self.group),
                "\(got.map { unit in sent.firstIndex(of: unit) ?? -1 }), \(dropped) dropped")
            #expect(try Self.rises(workspace.path("got.mp4")))
            #expect(net["damaged"].int == 0)
            #expect(net["losses"].int == 0)
            return
        }
    }

    @Test(.needs(.ffmpeg)) func refusesAccessUnitsOfAnotherSizeAndTakesThePlannedOneAgain() throws {
        let workspace = try Workspace()
        let port = try RTSPStream.freePort()
        var server = try Self.server(port, size: "320x240", in: workspace)
        let receiver = try Self.receiver("rtsp://127.0.0.1:\(port)/live", workspace, source: #", "decode": false"#)
        try receiver.waitForOutput("recording-did-start")
        receiver.listen(seconds: 1)
        server.send(SIGKILL)
        _ = try server.finish()
        server = try Self.server(port, size: "160x120", in: workspace)
        try receiver.waitForOutput("now has pictures of 160x120, but the chain was planned for 320x240")
        server.send(SIGKILL)
        _ = try server.finish()
        server = try Self.server(port, size: "320x240", in: workspace)
        try receiver.waitForOutput("stream-back")
        receiver.listen(seconds: 1)
        receiver.send(SIGINT)
        let received = try receiver.finish()
        #expect(received.isDoneOrBusy, "\(received.error)")
        server.send(SIGKILL)
        _ = try server.finish()
        let probe = try Tool.ffprobe.run(
            "-v", "error", "-show_entries", "stream=width,height", "-of", "csv=p=0", workspace.path("got.mp4"))
        #expect(probe.lines == ["320,240"])
        #expect(try Self.rises(workspace.path("got.mp4")))
        #expect(try !RTSPStream.pictures(["-i", workspace.path("got.mp4")]).isEmpty)
    }

    /// Ends it as asked, and looks at what it recorded.
    ///
    /// - Parameter least: How often it must have lost the stream; a busy machine may make that more.
    private static func end(_ receiver: RunningProgram, _ workspace: Workspace, losses least: Int) throws {
        let begin = Date()
        receiver.send(SIGINT)
        let received = try receiver.finish()
        #expect(received.isDoneOrBusy, "\(received.error)")
        #expect(Date().timeIntervalSince(begin) < 60)
        let stats = try JSON(file: workspace.path("stats.json"))
        let losses = count("stream-lost", receiver)
        #expect(losses >= least && stats["stages"].first("id", "net")["figures"]["losses"].int == losses)
        #expect(stats["ledger"]["inFlight"].int == 0)
        #expect(try rises(workspace.path("got.mp4")))
        #expect(try !RTSPStream.pictures(["-i", workspace.path("got.mp4")]).isEmpty)
    }

    @Test(.needs(.ffmpeg)) func comesBackTenTimesToAnRTSPSinkThatIsKilled() throws {
        let workspace = try Workspace()
        let port = try RTSPStream.freePort()
        var server = try RTSPStream(port: port)
        let receiver = try Self.receiver(server.url, workspace, encoder: Self.encoder)
        try receiver.waitForOutput("recording-did-start")
        var (files, threads) = (0, 0)
        for cycle in 1...10 {
            try Self.lose(receiver) {
                server.program.send(SIGKILL)
                _ = try server.program.finish()
            }
            server = try RTSPStream(port: port)
            try Self.waitUntilItIsThere(receiver)
            if cycle == 1 { (files, threads) = Self.open(receiver) }
        }
        var last = Self.open(receiver)
        let limit = Date() + 60
        while last.files > files || last.threads > threads, Date() < limit {
            receiver.listen(seconds: 0.1)
            last = Self.open(receiver)
        }
        #expect(last.files <= files && last.threads <= threads, "\(last), after the first time \(files), \(threads)")
        try Self.end(receiver, workspace, losses: 10)
        _ = try server.finish()
    }

    /// Files and threads that it has.
    private static func open(_ program: RunningProgram) -> (files: Int, threads: Int) {
        func count(_ name: String) -> Int {
            ((try? FileManager.default.contentsOfDirectory(atPath: "/proc/\(program.pid)/\(name)")) ?? []).count
        }
        return (count("fd"), count("task"))
    }

    /// How often it has said an event.
    private static func count(_ event: String, _ program: RunningProgram) -> Int {
        program.output.components(separatedBy: #""event":"\#(event)""#).count - 1
    }

    private static func wait(for what: String, _ program: RunningProgram, until isSo: () -> Bool) throws {
        let limit = Date() + 180
        while !isSo() {
            guard Date() < limit else { throw TestFault("no \(what).\n\(program.output.suffix(2000))") }
            program.listen(seconds: 0.1)
        }
    }

    /// Waits until the stream is back as often as it was lost.
    private static func waitUntilItIsThere(_ program: RunningProgram) throws {
        try wait(for: "stream-back", program) { count("stream-back", program) == count("stream-lost", program) }
    }

    /// Does something to the server of a stream that is there, and waits until that is lost.
    private static func lose(_ program: RunningProgram, _ body: () throws -> Void) throws {
        try waitUntilItIsThere(program)
        let before = count("stream-lost", program)
        try body()
        try wait(for: "stream-lost", program) { count("stream-lost", program) > before }
    }

    @Test(.needs(.ffmpeg)) func losesAnRTSPSinkThatFreezesAndTakesItBack() throws {
        let workspace = try Workspace()
        let server = try RTSPStream()
        let receiver = try Self.receiver(
            server.url, workspace, source: #", "stallSeconds": 1"#, encoder: Self.encoder)
        try receiver.waitForOutput("recording-did-start")
        try Self.lose(receiver) { server.program.send(SIGSTOP) }
        receiver.listen(seconds: 1)
        server.program.send(SIGCONT)
        try Self.waitUntilItIsThere(receiver)
        try Self.end(receiver, workspace, losses: 1)
        _ = try server.finish()
    }

    // MARK: Another server

    private static let hasGstServer: Bool = {
        guard FileManager.default.isExecutableFile(atPath: "/usr/bin/python3") else { return false }
        let asked = try? Program(URL(fileURLWithPath: "/usr/bin/python3")).run([
            "-c", "import gi; gi.require_version('GstRtspServer', '1.0')",
        ])
        return asked?.status == 0
    }()

    private static func gstServer(_ port: Int, _ more: String...) throws -> RunningProgram {
        let script = Repository.root.appending(path: "Tests/Conformance/gst-server.py").path
        let server = try Program(URL(fileURLWithPath: "/usr/bin/python3")).start([script, "--port", "\(port)"] + more)
        try server.waitForOutput("rtsp://127.0.0.1:\(port)/live")
        return server
    }

    @Test(
        .enabled(if: hasGstServer || Tool.isCI, "gst-rtsp-server is not installed: make test-packages"),
        arguments: ["tcp", "udp"])
    func comesBackTenTimesToGstRtspServer(transport: String) throws {
        let workspace = try Workspace()
        let port = try RTSPStream.freePort()
        var server = try Self.gstServer(port, "--user", "viewer:geheim7")
        let receiver = try Self.receiver(
            "rtsp://127.0.0.1:\(port)/live", workspace,
            source: #", "transport": "\#(transport)", "login": "env:LOGIN", "stallSeconds": 1.5"#,
            encoder: Self.encoder,
            environment: ["LOGIN": "viewer:geheim7"])
        try receiver.waitForOutput("recording-did-start")
        for _ in 1...(transport == "tcp" ? 10 : 3) {
            try Self.lose(receiver) {
                server.send(SIGKILL)
                _ = try server.finish()
            }
            server = try Self.gstServer(port, "--user", "viewer:geheim7")
            try Self.waitUntilItIsThere(receiver)
        }
        try Self.end(receiver, workspace, losses: transport == "tcp" ? 10 : 3)
        server.send(SIGKILL)
        _ = try server.finish()
    }

    // MARK: Passwords

    @Test(.needs(.ffmpeg)) func showsNoPasswordAnywhere() throws {
        let workspace = try Workspace()
        let secret = "ge:he/im@7?"
        let server = try RTSPStream(sink: #""users": "env:USERS""#, environment: ["USERS": "viewer:\(secret)"])
        let url = server.url + "?token=sesam99"
        var said = ""
        // Right, wrong, none; a login inside the address; a path that is not there.
        for (address, login, isRefused) in [
            (url, "viewer:\(secret)", false), (url, "viewer:wrong\(secret)", true), (url, "\(secret):\(secret)", true),
            ("rtsp://viewer:\(secret)@127.0.0.1:\(server.port)/live", "viewer:\(secret)", true),
            ("rtsp://viewer:geheim8@127.0.0.1:\(server.port)/live", "viewer:\(secret)", true),
            ("rtsp://127.0.0.1:\(server.port)/nothing?token=sesam99", "viewer:\(secret)", true),
            ("http://127.0.0.1:\(server.port)/nothing?token=sesam99", "viewer:\(secret)", true),
            ("rtmp://127.0.0.1:\(server.port)/nothing?token=sesam99", "viewer:\(secret)", true),
            ("srt://127.0.0.1:\(server.port)?passphrase=sesam99sesam99", "viewer:\(secret)", true),
        ] {
            let chain = try workspace.write(
                "check.json",
                """
                { "stages": [ { "id": "net", "use": "network-source", "url": "\(address)", "login": "env:LOGIN", "connectSeconds": \(isRefused ? 2 : 60) },
                  { "use": "null-sink" } ] }
                """)
            for arguments in [
                ["check", chain], ["check", chain, "--json"], [chain, "--events", "--verbose", "--for", "1"],
            ] {
                let outcome = try Program.framehost.run(arguments, environment: ["LOGIN": login])
                said += outcome.output + outcome.error
                #expect(outcome.isDoneOrBusy != isRefused, "\(arguments): \(outcome.error)")
            }
        }
        let receiver = try Self.receiver(
            url, workspace, source: #", "login": "env:LOGIN""#, encoder: Self.encoder,
            environment: ["LOGIN": "viewer:\(secret)"])
        try receiver.waitForOutput("recording-did-start")
        server.program.send(SIGKILL)
        _ = try server.program.finish()
        try receiver.waitForOutput("stream-refused")
        receiver.send(SIGINT)
        let received = try receiver.finish()
        said += received.output + received.error
        said += try String(contentsOfFile: workspace.path("stats.json"), encoding: .utf8)
        #expect(said.contains("refuses the login"))
        #expect(said.contains("contains a login"))
        for word in [secret, "ge%3Ahe%2Fim%407%3F", "ge:he", "he/im", "im@7", "sesam99", "geheim8"] {
            #expect(!said.contains(word), "\(word) in \(said)")
        }
    }
}
