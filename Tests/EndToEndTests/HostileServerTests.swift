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
        try workspace.write(
            "door.json",
            """
            {
              \(Self.services(kind, port: port)),
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
