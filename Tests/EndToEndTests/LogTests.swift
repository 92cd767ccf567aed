// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

/// `--log-format`: what the program writes to standard error.
@Suite struct LogTests {
    let workspace: Workspace
    let framehost: Program

    init() throws {
        workspace = try Workspace()
        framehost = try Program.framehost
    }

    private func lines(_ outcome: Outcome) throws -> [JSON] {
        try outcome.error.split(separator: "\n").map { try JSON(parsing: String($0)) }
    }

    @Test func isAJSONObjectPerLine() throws {
        try workspace.write(
            "chain.json",
            """
            { "stages": [ { "use": "test-source", "size": "64x64", "rate": 50, "live": true },
                          { "id": "rec", "use": "x264-encoder", "link": { "queue": 300 } },
                          { "id": "file", "use": "recorder", "path": "a.mp4" } ] }
            """)
        let outcome = try framehost.run(
            ["chain.json", "--frames", "300", "--log-format", "json"], folder: workspace.folder.path)
        #expect(outcome.status == 0, "\(outcome.error)")
        let lines = try lines(outcome)
        for line in lines {
            #expect(line["time"].string?.hasSuffix("Z") == true && line["time"].string?.hasPrefix("20") == true)
            #expect(line["level"].string != nil && line["message"].string != nil)
        }
        let began = try #require(lines.first { $0["event"].string == "recording-did-start" })
        #expect(began["stage"].string == "file" && began["level"].string == "info")
        #expect(lines.last?["message"].string?.hasPrefix("Done: 300 frames in ") == true)
        // Six seconds would have a line of progress.
        #expect(!outcome.error.contains(" fps  "))
    }

    @Test func hasTheFaultsOfAChainThatCannotRun() throws {
        try workspace.write("chain.json", #"{ "stages": [ { "use": "test-sauce" }, { "use": "null-sink" } ] }"#)
        let outcome = try framehost.run(
            ["chain.json", "--log-format", "json"], folder: workspace.folder.path)
        #expect(outcome.status == 2)
        let lines = try lines(outcome)
        #expect(lines.count == 1 && lines[0]["level"].string == "critical")
        #expect(lines[0]["message"].string?.contains("Did you mean 'test-source'?") == true)
        let line = try framehost.run(
            ["chain.json", "--log-format", "json", "--for", "0"], folder: workspace.folder.path)
        #expect(line.status == 2)
        #expect(try JSON(parsing: line.error)["message"].string?.contains("it must be a number of seconds") == true)
        let other = try framehost.run(["chain.json", "--log-format", "xml"], folder: workspace.folder.path)
        #expect(other.status == 2 && other.error.contains("log-format"), "\(other.error)")
    }
}
