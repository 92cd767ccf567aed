// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

/// Sixteen late copies of a 720p picture, as a chain file has them.
@Suite struct PaintReplicateTests {
    private static let wall = #""grid": "4x4", "step": { "delay": 2, "hue": 22.5 }"#
    /// Whole pictures over each other, each a little further to the right.
    private static let stack =
        #""grid": "1x1", "copies": 16, "first": { "scale": 0.9 }, "step": { "delay": 1, "x": 8 }"#

    private func chain(frames: Int, _ options: String = wall) -> String {
        """
        { "stages": [
          { "id": "pictures", "use": "test-source", "size": "1280x720", "rate": 30, "frames": \(frames) },
          { "id": "wall", "use": "replicate", \(options) },
          { "id": "end", "use": "null-sink" } ] }
        """
    }

    @Test(arguments: [(wall, 30), (stack, 15), (#""grid": "1x1""#, 0)]) func holdsWhatCheckShows(
        options: String, held: Int
    ) throws {
        let workspace = try Workspace()
        try workspace.write("chain.json", chain(frames: 60, options))
        let check = try JSON(
            parsing: Program.framehost.run(["check", "chain.json", "--json"], folder: workspace.folder.path).output)
        let outcome = try Program.framehost.run(["chain.json", "--stats", "stats.json"], folder: workspace.folder.path)
        #expect(outcome.status == 0, "\(outcome.error)")
        let stats = try JSON(file: workspace.path("stats.json"))
        #expect((check["pools"][0]["shares"]["kept by wall"].int ?? 0) == held)
        #expect(stats["stages"].first("id", "wall")["heldMax"].int == held)
        #expect(check["pools"].list.count == 2 && stats["pools"].list.count == 2)
        for (shown, made) in zip(check["pools"].list, stats["pools"].list) {
            #expect(shown["stage"].string == made["name"].string)
            for key in ["min", "need", "buffers", "bytes"] { #expect(shown[key].int == made[key].int, "\(key)") }
            #expect(made["starvedMs"].double == 0)
        }
        #expect(check["pools"][0]["buffers"].int == held + 1)
        #expect(stats["ledger"]["delivered"].int == 60 && stats["ledger"]["dropped"].int == 0)
    }

    @Test(arguments: [wall, stack]) func keepsUpWithTheSource(options: String) throws {
        let workspace = try Workspace()
        try workspace.write("chain.json", chain(frames: 300, options))
        let outcome = try Program.framehost.run(["chain.json"], folder: workspace.folder.path)
        #expect(outcome.status == 0, "\(outcome.error)")
        // A frame of 30 in a second has 33 ms; measured 3 to 6, with all that the program does besides.
        #expect(outcome.processorSeconds > 0 && outcome.processorSeconds / 300 < 0.033)
    }
}
