// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import Testing

/// Whoever answers in the place of a NATS server or an MQTT broker neither ends a run nor takes its memory.
@Suite(.needs(.python)) struct HostileServerTests {
    private let workspace: Workspace

    init() throws { workspace = try Workspace() }

    private static func services(_ kind: String, port: Int) -> String {
        kind == "nats"
            ? #""nats": { "servers": ["nats://127.0.0.1:\#(port)"] }"#
            : #""mqtt": { "broker": "mqtt://127.0.0.1:\#(port)" }"#
    }

    /// - Parameter shell: A program of bash that ends with framehost, whose path is `$0`.
    private func start(_ kind: String, port: Int, shell: String? = nil) throws -> RunningProgram {
        try start(Self.services(kind, port: port), shell: shell)
    }

    private func start(_ services: String, shell: String? = nil) throws -> RunningProgram {
        try workspace.write(
            "door.json",
            """
            {
              \(services),
              "stages": [
                { "id": "cam", "use": "test-source", "size": "160x120", "rate": 10, "live": true },
                { "id": "sink", "use": "null-sink" }
              ]
            }
            """)
        let framehost = try Program.framehost
        let (program, before) =
            shell.map { (Program(URL(fileURLWithPath: "/bin/bash")), ["-c", $0, framehost.executable.path]) }
            ?? (framehost, [])
        return try program.start(
            before + ["door.json"], environment: ["XDG_STATE_HOME": workspace.path("state"), "STATE_DIRECTORY": ""],
            folder: workspace.folder.path)
    }

    /// The most memory that a process has had, in MiB.
    private func peak(_ pid: Int32) throws -> Int {
        let text = try String(contentsOfFile: "/proc/\(pid)/status", encoding: .utf8)
        let line = try #require(text.split(separator: "\n").first { $0.hasPrefix("VmHWM:") })
        return (Int(line.filter(\.isNumber)) ?? 0) >> 10
    }

    @Test(arguments: [
        ("nats", #"MSG a 1 2147483647\r\n"#, 1, "the server announced a message of '2147483647' bytes"),
        ("nats", #"MSG a 1 60000000\r\n"#, 50, ""),
        ("mqtt", #"\x30\xff\xff\xff\x7f"#, 255, ""),
        ("mqtt", #"\x20\xff\xff\xff\x7f"#, 1, "what answers does not speak MQTT 3.1.1"),
    ]) func neitherEndsARunNorTakesItsMemory(kind: String, line: String, mebibytes: Int, reason: String) throws {
        let script = Repository.root.appending(path: "Tests/Tools/hostile-server.py").path
        let server = try Tool.python.start([script, kind, line, "\(mebibytes)"])
        defer { kill(server.pid, SIGKILL) }
        try server.waitForOutput("\n")
        let port = try #require(server.output.split(separator: "\n").first.flatMap { Int($0) })
        let host = try start(kind, port: port)
        try server.waitForOutput("sent\n")
        if !reason.isEmpty { try host.waitForError(reason) }
        #expect(try peak(host.pid) < 200)
        kill(host.pid, SIGINT)
        let outcome = try host.finish()
        #expect(outcome.isDoneOrBusy, "\(outcome.status): \(outcome.error)")
    }

    private func server(_ kind: String, _ line: String, _ more: String) throws -> (RunningProgram, port: Int) {
        let script = Repository.root.appending(path: "Tests/Tools/hostile-server.py").path
        let server = try Tool.python.start([script, kind, line, more])
        try server.waitForOutput("\n")
        return (server, try #require(server.output.split(separator: "\n").first.flatMap { Int($0) }))
    }

    /// Of what nothing has asked for little is read, then the connection is closed and not made again for a while.
    @Test(arguments: [
        ("nats", #"PING\r\n"#), ("nats", #"-ERR 'no'\r\n"#), ("nats", #"+OK\r\n"#), ("nats", #"PONG\r\n"#),
        ("nats", #"INFO {"headers":true,"max_payload":1024}\r\n"#), ("nats", #"MSG a 1 2\r\nab\r\n"#),
        ("mqtt", #"\x40\x02\x09\x09"#), ("mqtt", #"\xd0\x00"#), ("mqtt", #"\x90\x03\x00\x00\x01"#),
        ("mqtt", #"\x32\x05\x00\x01a\x00\x01"#),
    ]) func aFloodIsNotRead(kind: String, line: String) throws {
        let (server, port) = try server(kind, line, "flood")
        let host = try start(kind, port: port)
        try server.waitForOutput("took ")
        try host.waitForError("it sent more than 200 messages within 10 s that nothing had asked for")
        host.listen(seconds: 2.5)
        server.listen(seconds: 0.1)
        let took = server.output.split(separator: "\n").filter { $0.hasPrefix("took ") }
        #expect(took.count == 1, "it connects again at once")
        // What the kernel keeps, and not many reads of 64 KiB.
        #expect(took.allSatisfy { Int($0.dropFirst(5)) ?? .max < 8 << 20 }, "\(took)")
        kill(host.pid, SIGINT)
        let outcome = try host.finish()
        #expect(outcome.isDoneOrBusy, "\(outcome.status): \(outcome.error)")
    }

    /// All services are told at the same time, and wait together.
    @Test func severalEndInTheTimeOfOne() throws {
        let (nats, mqtt) = (try server("nats", "", "silent"), try server("mqtt", "", "silent"))
        var times: [Double] = []
        for _ in 0..<4 {
            let host = try start(
                """
                "control": { "listen": "127.0.0.1:0" }, \(Self.services("nats", port: nats.port)),
                \(Self.services("mqtt", port: mqtt.port))
                """)
            try host.waitForError("takes no events: it does not answer")
            kill(host.pid, SIGTERM)
            let begin = Date()
            let status = host.waitForEnd(seconds: 60)
            times.append(Date().timeIntervalSince(begin))
            #expect(status == 0 || status == 1)
        }
        // The fastest of them: a busy machine may hold up some.
        #expect(times.min() ?? 1 < 0.9, "\(times)")
    }

    /// select(2) knows only the descriptors below 1,024.
    @Test func connectsWhereTheFirstThousandDescriptorsAreTaken() throws {
        let script = Repository.root.appending(path: "Tests/Tools/mqtt-broker.py").path
        let broker = try Tool.python.start([script])
        defer { kill(broker.pid, SIGKILL) }
        try broker.waitForOutput("\n")
        let port = try #require(broker.output.split(separator: "\n").first.flatMap { Int($0) })
        let shell = #"ulimit -n 4096 && for i in $(seq 1100); do exec {file}</dev/null; done && exec "$0" "$@""#
        let host = try start("mqtt", port: port, shell: shell)
        try broker.waitForOutput("/status online")
        kill(host.pid, SIGINT)
        let outcome = try host.finish()
        #expect(outcome.isDoneOrBusy, "\(outcome.status): \(outcome.error)")
        try broker.waitForOutput("/status offline")
    }
}
