import Foundation
import Testing

/// Sixteen late copies of a 720p picture, as a chain file has them.
@Suite struct PaintReplicateTests {
    private func chain(frames: Int) -> String {
        """
        { "stages": [
          { "id": "pictures", "use": "test-source", "size": "1280x720", "rate": 30, "frames": \(frames) },
          { "id": "wall", "use": "replicate", "grid": "4x4", "step": { "delay": 2, "hue": 22.5 } },
          { "id": "end", "use": "null-sink" } ] }
        """
    }

    @Test func holdsWhatCheckShows() throws {
        let workspace = try Workspace()
        try workspace.write("chain.json", chain(frames: 60))
        let check = try Program.framehost.run(["check", "chain.json"], folder: workspace.folder.path)
        #expect(check.output.contains("wall hold 30"))
        let outcome = try Program.framehost.run(["chain.json", "--stats", "stats.json"], folder: workspace.folder.path)
        #expect(outcome.status == 0, "\(outcome.error)")
        let stats = try JSON(file: workspace.path("stats.json"))
        #expect(stats["stages"].first("id", "wall")["heldMax"].int == 30)
        let pool = stats["pools"][0]
        #expect(pool["buffers"].int == 31 && pool["need"].int == 31 && pool["starvedMs"].double == 0)
        #expect(stats["ledger"]["delivered"].int == 60 && stats["ledger"]["dropped"].int == 0)
    }

    @Test func keepsUpWithTheSource() throws {
        let workspace = try Workspace()
        try workspace.write("chain.json", chain(frames: 300))
        let outcome = try Program.framehost.run(["chain.json"], folder: workspace.folder.path)
        #expect(outcome.status == 0, "\(outcome.error)")
        // Ten seconds of pictures; measured 1 s. A slow machine, or a busy one, still has most of it to spare.
        #expect(outcome.seconds < 10, "\(outcome.seconds) s")
    }
}
