// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc

/// mosquitto on loopback, in a folder of a test's own, which it keeps its messages in.
final class MQTTBroker {
    static let mosquitto = Tool(name: "mosquitto")
    static let subscriber = Tool(name: "mosquitto_sub")

    let port: Int
    private let workspace: Workspace
    private var broker: RunningProgram?

    /// - Parameter more: Lines of its configuration.
    init(_ workspace: Workspace, more: String = "allow_anonymous true") throws {
        self.workspace = workspace
        port = try FreePorts.find(1)[0]
        try workspace.write(
            "mosquitto.conf",
            """
            listener \(port) 127.0.0.1
            persistence true
            persistence_location \(workspace.folder.path)/
            autosave_interval 1
            autosave_on_changes true
            user root
            \(more)

            """)
    }

    var address: String { "mqtt://127.0.0.1:\(port)" }

    func start() throws {
        broker = try Self.mosquitto.start(["-c", workspace.path("mosquitto.conf")])
        try broker?.waitForError("running")
    }

    /// `kill -9`, or a clean end.
    func end(_ signal: Int32 = SIGKILL) throws {
        guard let broker else { return }
        kill(broker.pid, signal)
        _ = try broker.finish(timeout: 20)
        self.broker = nil
    }

    /// Listens from now on; each message is a line `TOPIC PAYLOAD`.
    func subscribe(_ topics: String..., client: String? = nil) throws -> RunningProgram {
        var arguments = ["-p", "\(port)", "-q", "1", "-v"] + topics.flatMap { ["-t", $0] }
        if let client { arguments += ["-i", client, "-c"] }
        return try Self.subscriber.start(arguments)
    }

    /// What is retained below a topic.
    func retained(_ topic: String) throws -> [String: String] {
        let outcome = try Self.subscriber.run(
            "-p", "\(port)", "-q", "1", "-v", "-t", topic, "--retained-only", "-W", "1", timeout: 20)
        return Dictionary(
            outcome.lines.map { line in
                let parts = line.split(separator: " ", maxSplits: 1)
                return (String(parts[0]), parts.count > 1 ? String(parts[1]) : "")
            }, uniquingKeysWith: { $1 })
    }

    /// Asks for a retained message until it has this payload.
    func wait(for payload: String, at topic: String, seconds: Double = 30) throws {
        let deadline = Date() + seconds
        var last: String?
        while Date() < deadline {
            last = try retained(topic)[topic]
            if last == payload { return }
        }
        throw TestFault("'\(topic)' has '\(last ?? "nothing")', not '\(payload)', after \(seconds) s")
    }
}
