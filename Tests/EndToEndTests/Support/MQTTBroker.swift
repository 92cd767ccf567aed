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
        port = try RTSPStream.freePort()
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
        _ = try broker.finish()
        self.broker = nil
    }

    /// Listens from now on; each message is a line `TOPIC PAYLOAD`. One more message is retained for it at a topic of
    /// its own, the last one: when that has come, all topics are subscribed.
    func subscribe(_ topics: String..., client: String? = nil) throws -> RunningProgram {
        let last = "test/subscribed"
        let sent = try Tool(name: "mosquitto_pub").run("-p", "\(port)", "-q", "1", "-r", "-t", last, "-m", "yes")
        guard sent.status == 0 else { throw TestFault("mosquitto_pub: \(sent.error)") }
        var arguments = ["-p", "\(port)", "-q", "1", "-v"] + (topics + [last]).flatMap { ["-t", $0] }
        if let client { arguments += ["-i", client, "-c"] }
        let listener = try Self.subscriber.start(arguments)
        try listener.waitForOutput("\(last) yes")
        return listener
    }

    /// What is retained at a topic: nothing where nobody has said anything for ten seconds.
    func retained(_ topic: String) throws -> [String: String] {
        let outcome = try Self.subscriber.run(
            "-p", "\(port)", "-q", "1", "-v", "-t", topic, "--retained-only", "-C", "1", "-W", "10")
        return Dictionary(
            outcome.lines.map { line in
                let parts = line.split(separator: " ", maxSplits: 1)
                return (String(parts[0]), parts.count > 1 ? String(parts[1]) : "")
            }, uniquingKeysWith: { $1 })
    }

    /// Asks for a retained message until it has this payload.
    func wait(for payload: String, at topic: String, seconds: Double = 120) throws {
        let deadline = Date() + seconds
        var last: String?
        while Date() < deadline {
            last = try retained(topic)[topic]
            if last == payload { return }
            Thread.sleep(forTimeInterval: 0.2)
        }
        throw TestFault("'\(topic)' has '\(last ?? "nothing")', not '\(payload)', after \(seconds) s")
    }
}

extension MQTTBroker {
    /// Asks for a retained message until there is one that is wanted.
    func waitForRetained(_ topic: String, where isWanted: (String) throws -> Bool = { _ in true }) throws -> String {
        let deadline = Date() + 120
        var last: String?
        while Date() < deadline {
            last = try retained(topic)[topic]
            if let last, try isWanted(last) { return last }
            Thread.sleep(forTimeInterval: 0.2)
        }
        throw TestFault("'\(topic)' has '\(last ?? "nothing")'")
    }

    /// Waits until nothing is retained at a topic. What is retained comes in the order of the topics: a message of
    /// `other`, where something is, comes first only then.
    func waitForNothing(at topic: String, before other: String) throws {
        let deadline = Date() + 120
        var first: String?
        while Date() < deadline {
            first = try Self.subscriber.run(
                "-p", "\(port)", "-q", "1", "-v", "-t", topic, "-t", other, "--retained-only", "-C", "1", "-W", "10"
            ).lines.first
            if first?.hasPrefix("\(other) ") == true { return }
            Thread.sleep(forTimeInterval: 0.2)
        }
        throw TestFault("'\(topic)' is not gone: '\(first ?? "nothing")'")
    }
}
