import Foundation
import Testing

@Suite struct StatsTests {
    let workspace: Workspace
    let framehost: Program

    init() throws {
        workspace = try Workspace()
        framehost = try Program.framehost
    }

    private static let fork = """
        {
          "stages": [
            { "id": "pictures", "use": "test-source", "size": "320x240", "rate": 30, "frames": 200 },
            { "id": "h264", "use": "x264-encoder", "preset": "ultrafast", "bitrateKbps": 500 },
            { "id": "file", "use": "recorder", "path": "out.mp4" },
            { "id": "watch", "use": "null-sink", "from": "pictures", "link": { "whenFull": "latest" } }
          ]
        }
        """

    private func stats(_ chain: String, _ arguments: String...) throws -> JSON {
        try workspace.write("chain.json", chain)
        let outcome = try framehost.run(["chain.json", "--stats", "stats.json"] + arguments, folder: workspace.folder.path)
        #expect(outcome.status == 0, "\(outcome.error)")
        return try JSON(file: workspace.path("stats.json"))
    }

    @Test func writesEveryFigureOfAFork() throws {
        let stats = try stats(Self.fork)
        #expect(stats["stages"].list.count == 4)
        for stage in stats["stages"].list {
            let keys: Set = ["id", "use", "framesIn", "framesOut", "dropped", "p50Us", "p99Us", "heldMax"]
            #expect(keys.isSubset(of: stage.keys), "\(stage)")
            #expect(stage["p50Us"].double! >= 0 && stage["p99Us"].double! >= stage["p50Us"].double!)
        }
        #expect(stats["stages"].first("id", "pictures")["framesOut"].int == 200)
        #expect(stats["stages"].first("id", "h264")["framesIn"].int == 200)
        #expect(stats["stages"].first("id", "h264")["framesOut"].int == 200)
        #expect(stats["stages"].first("id", "file")["framesIn"].int == 200)
        #expect(stats["links"].list.count == 3)
        for link in stats["links"].list {
            #expect(
                Set(["from", "to", "capacity", "whenFull", "depth", "depthMax", "offered", "dropped"]).isSubset(of: link.keys), "\(link)")
        }
        #expect(stats["pools"].list.count == 1)
        let pool = stats["pools"][0]
        #expect(Set(["name", "buffers", "min", "need", "bytes", "starvedMs"]).isSubset(of: pool.keys))
        #expect(pool["need"].int == 6 && pool["buffers"].int == 6 && pool["min"].int == 1)
    }

    @Test func accountsForEveryItem() throws {
        let stats = try stats(Self.fork)
        let ledger = stats["ledger"]
        #expect(ledger.keys == ["captured", "made", "copies", "delivered", "merged", "idle", "dropped", "inFlight"])
        func count(_ key: String) -> Int { ledger[key].int ?? -1 }
        #expect(count("captured") == 200)
        #expect(count("copies") == 200)
        #expect(count("inFlight") == 0)
        #expect(
            count("captured") + count("made") + count("copies")
                == count("delivered") + count("merged") + count("idle") + count("dropped") + count("inFlight"))
        let watch = stats["links"].first("to", "watch")
        let lost = watch["dropped"]["replaced"].int ?? 0
        #expect(count("dropped") == lost)
        #expect(watch["offered"].int == 200)
        #expect(stats["stages"].first("id", "watch")["framesIn"].int == 200 - lost)
    }

    @Test func countsWhatAnUnconnectedOutputLoses() throws {
        let stats = try stats(
            """
            { "stages": [ { "use": "test-source", "size": "64x64", "frames": 9 }, { "use": "fps-meter", "unread": true } ] }
            """)
        #expect(stats["stages"].first("id", "fps-meter")["dropped"]["unconnected"].int == 9)
        #expect(stats["ledger"]["dropped"].int == 9)
    }

    @Test func saysWhyTheFiguresCannotBeWritten() throws {
        try workspace.write("chain.json", Chains.short)
        let outcome = try framehost.run(["chain.json", "--stats", "no/such/stats.json"], folder: workspace.folder.path)
        #expect(outcome.status == 1)
        #expect(
            outcome.errorLines.last
                == "no/such/stats.json: the figures could not be written: No such file or directory. Name a file in a folder you may write to with --stats."
        )
        #expect(workspace.names == ["chain.json"])
    }
}
