// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import Testing

/// What `mqtt-events` says last, to a broker that says what comes.
@Suite struct MQTTFarewellTests {
    private let workspace: Workspace

    init() throws { workspace = try Workspace() }

    /// The packets of a run of 20 pictures.
    private func packets(deaf: String? = nil) throws -> [String] {
        let script = Repository.root.appending(path: "Tests/Tools/mqtt-broker.py").path
        let broker = try Tool(name: "python3").start([script] + (deaf.map { ["--deaf", $0] } ?? []))
        try broker.waitForOutput("\n")
        let port = try #require(broker.output.split(separator: "\n").first.flatMap { Int($0) })
        try workspace.write(
            "door.json",
            """
            {
              "mqtt": { "broker": "mqtt://127.0.0.1:\(port)", "host": "porch" },
              "stages": [
                { "id": "cam", "use": "test-source", "size": "160x120", "rate": 10, "live": true },
                { "id": "sink", "use": "null-sink" }
              ]
            }
            """)
        let host = try Program.framehost.start(
            ["door.json"], environment: ["XDG_STATE_HOME": workspace.path("state"), "STATE_DIRECTORY": ""],
            folder: workspace.folder.path)
        try broker.waitForOutput("/status online")
        kill(host.pid, SIGINT)
        let outcome = try host.finish()
        #expect(outcome.isDoneOrBusy, "\(outcome.status): \(outcome.error)")
        try broker.waitForOutput("\nend")
        return try broker.finish().lines
    }

    @Test func disconnectsOnceItsFarewellIsAcknowledged() throws {
        let packets = try packets()
        #expect(packets.suffix(2) == ["DISCONNECT ", "end"], "\(packets)")
        #expect(packets.contains { $0.hasSuffix("/status offline") }, "\(packets)")
    }

    /// Otherwise the broker would leave out the last will, and the chain would stay `online`.
    @Test func breaksTheConnectionWhereItIsNot() throws {
        let packets = try packets(deaf: "offline")
        #expect(packets.last == "end" && !packets.contains { $0.hasPrefix("DISCONNECT") }, "\(packets)")
    }
}
