// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

/// Events that a spool loses are all said, those within the last minute of a run too.
@Suite struct SpoolLossTests {
    @Test(arguments: ["nats", "mqtt"]) func everyLossIsSaidWhenTheRunEnds(kind: String) throws {
        let workspace = try Workspace()
        let server =
            kind == "nats" ? #""servers": ["nats://127.0.0.1:1"]"# : #""broker": "mqtt://127.0.0.1:1""#
        try workspace.write(
            "c.json",
            """
            {
              "\(kind)": { \(server), "spool": "spool", "spoolMegabytes": 1, "level": "debug" },
              "stages": [
                { "id": "cam", "use": "test-source", "size": "160x120", "rate": 100, "live": true },
                { "id": "t", "use": "text", "text": "x" }, { "use": "null-sink" }
              ]
            }
            """)
        let host = try Program.framehost.start(["c.json", "--commands", "--events"], folder: workspace.folder.path)
        let words = String(repeating: "w", count: 900)
        for number in 1...1200 {
            try host.write(#"{"stage":"t","set":{"text":"\#(number) \#(words)"},"tag":"n\#(number)"}"# + "\n")
            // No more than the mailbox of a stage takes.
            if number % 20 == 0 { try host.waitForOutput(#""tag":"n\#(number)""#) }
        }
        try host.write(#"{"command":"drain"}"# + "\n")
        let outcome = try host.finish()
        #expect(outcome.isDoneOrBusy, "\(outcome.status): \(outcome.error)")
        let reports = try outcome.output.split(separator: "\n").filter { $0.contains(#""event":"events-lost""#) }
            .map { try JSON(parsing: String($0))["count"].int ?? 0 }
        let numbers = try workspace.names(below: "spool").filter { $0.hasSuffix(".events") }.flatMap { name in
            String(decoding: try workspace.data("spool/" + name), as: UTF8.self).split(separator: "\n")
                .compactMap { Int($0.split(separator: " ")[1]) }
        }
        let last = try #require(numbers.max())
        #expect(reports.count >= 2)
        #expect(reports.reduce(0, +) == last - numbers.count)
        #expect(last > 1200)
    }
}
