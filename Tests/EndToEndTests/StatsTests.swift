// SPDX-License-Identifier: Apache-2.0

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

    /// Descriptor 1 leads to standard error while plugins are loaded; a name of standard output must not.
    @Test(arguments: ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"]) func writesToStandardOutputByItsName(
        path: String
    ) throws {
        let chain = #"{ "stages": [ { "use": "test-source", "frames": 3, "size": "64x48" }, { "use": "null-sink" } ] }"#
        try workspace.write("chain.json", chain)
        let outcome = try framehost.run(["chain.json", "--quiet", "--stats", path], folder: workspace.folder.path)
        #expect(outcome.status == 0 && outcome.error == "", "\(outcome.error)")
        #expect(try JSON(parsing: outcome.output)["stages"].list.count == 2)
        // In a file it goes behind what is there; standard error may be a file with a text of its own.
        try workspace.write("out.txt", "before\n")
        try workspace.write("log.txt", "a log\n")
        let shell = try Tool(name: "sh").run([
            "-c",
            "cd '\(workspace.folder.path)' && '\(framehost.executable.path)' chain.json --quiet --stats \(path) >>out.txt 2>>log.txt",
        ])
        #expect(shell.status == 0, "\(shell.error)")
        let text = String(decoding: try workspace.data("out.txt"), as: UTF8.self)
        #expect(text.hasPrefix("before\n"), "\(text)")
        #expect(try JSON(parsing: String(text.dropFirst(7)))["stages"].list.count == 2)
        #expect(try workspace.data("log.txt") == Data("a log\n".utf8))
        // Raw video too.
        try workspace.write("dump.json", chain.replacing(#""null-sink""#, with: "\"null-sink\", \"dump\": \"\(path)\""))
        let dump = try framehost.run(["dump.json", "--quiet"], folder: workspace.folder.path)
        #expect(dump.status == 0 && dump.error == "", "\(dump.error)")
        #expect(dump.output.utf8.count >= 3 * 64 * 48 * 3 / 2)
    }

    private func stats(_ chain: String, _ arguments: String...) throws -> JSON {
        try workspace.write("chain.json", chain)
        let outcome = try framehost.run(
            ["chain.json", "--stats", "stats.json"] + arguments, folder: workspace.folder.path)
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
                Set(["from", "to", "capacity", "whenFull", "depth", "depthMax", "offered", "dropped"]).isSubset(
                    of: link.keys), "\(link)")
        }
        #expect(stats["pools"].list.count == 1)
        let pool = stats["pools"][0]
        #expect(Set(["name", "buffers", "min", "need", "bytes", "starvedMs"]).isSubset(of: pool.keys))
        #expect(pool["need"].int == 6 && pool["buffers"].int == 6 && pool["min"].int == 1)
    }

    @Test func accountsForEveryItem() throws {
        let stats = try stats(Self.fork)
        let ledger = stats["ledger"]
        #expect(
            ledger.keys == [
                "captured", "made", "copies", "delivered", "merged", "idle", "dropped", "replaced", "inFlight",
            ])
        func count(_ key: String) -> Int { ledger[key].int ?? -1 }
        #expect(count("captured") == 200)
        #expect(count("copies") == 200)
        #expect(count("inFlight") == 0)
        #expect(
            count("captured") + count("made") + count("copies")
                == count("delivered") + count("merged") + count("idle") + count("dropped") + count("replaced")
                + count("inFlight"))
        let watch = stats["links"].first("to", "watch")
        // Of what is watched only the newest is wanted: that is no drop.
        let lost = watch["replaced"].int ?? -1
        #expect(count("replaced") == lost && count("dropped") == 0 && watch["dropped"].keys.isEmpty)
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

    /// Seen before anything runs: an hour's figures are not lost for a folder's name.
    @Test func saysWhyTheFiguresCannotBeWritten() throws {
        try workspace.write("chain.json", Chains.short)
        for (path, reason) in [
            (
                "no/such/stats.json",
                "'no/such/stats.json' cannot be written: No such file or directory. Create the folder, or correct the name."
            ),
            (".", "'.' is a folder. Name a file in it."),
            ("chain.json", "'chain.json' is the chain file. Name another file."),
            ("./link", "'./link' is the chain file. Name another file."),
        ] {
            if path == "./link" { symlink("chain.json", workspace.path("link")) }
            let outcome = try framehost.run(["chain.json", "--stats", path], folder: workspace.folder.path)
            #expect(outcome.status == 2)
            #expect(outcome.errorLines == ["--stats: \(reason)"])
        }
        #expect(workspace.names == ["chain.json", "link"])
    }

    /// Rename would put a file in the place of the device, the pipe or the link.
    @Test func writesTheFiguresIntoWhatIsThere() throws {
        try workspace.write("chain.json", Chains.short)
        func run(_ path: String) throws -> Outcome {
            try framehost.run(["chain.json", "--quiet", "--stats", path], folder: workspace.folder.path)
        }
        func kind(_ name: String) -> mode_t {
            var status = stat()
            return lstat(workspace.path(name), &status) == 0 ? status.st_mode & S_IFMT : 0
        }
        // A link to a file whose rights stay.
        try workspace.write("real.json", "")
        chmod(workspace.path("real.json"), 0o600)
        symlink("real.json", workspace.path("link.json"))
        #expect(try run("link.json").status == 0)
        #expect(kind("link.json") == S_IFLNK)
        #expect(try JSON(file: workspace.path("real.json"))["ledger"]["inFlight"].int == 0)
        var status = stat()
        #expect(stat(workspace.path("real.json"), &status) == 0 && status.st_mode & 0o777 == 0o600)
        // A pipe with a reader, and one without.
        mkfifo(workspace.path("pipe"), 0o600)
        let deaf = try run("pipe")
        #expect(
            deaf.status == 1
                && deaf.errorLines == [
                    "--stats: no program reads the pipe 'pipe'. First start the program that reads it."
                ])
        let reader = open(workspace.path("pipe"), O_RDONLY | O_NONBLOCK)
        #expect(try run("pipe").status == 0)
        var buffer = [UInt8](repeating: 0, count: 65_536)
        let count = read(reader, &buffer, buffer.count)
        close(reader)
        #expect(count > 0 && buffer.first == UInt8(ascii: "{") && kind("pipe") == S_IFIFO)
        // A full device of the test's own, which only root can make.
        guard geteuid() == 0, mknod(workspace.path("full"), S_IFCHR | 0o666, 1 << 8 | 7) == 0 else { return }
        let full = try run("full")
        #expect(full.status == 1)
        #expect(
            full.errorLines == [
                "--stats: 'full' cannot be written: No space left on device. Free some space, or name a file on another disk."
            ])
        #expect(kind("full") == S_IFCHR)
        #expect(workspace.names == ["chain.json", "full", "link.json", "pipe", "real.json"])
    }

    // MARK: What is replaced

    @Test func replacesFiguresOfAnEarlierRunAndKeepsAnythingElse() throws {
        try workspace.write("chain.json", Chains.short)
        func run() throws -> Outcome {
            try framehost.run(["chain.json", "--stats", "stats.json"], folder: workspace.folder.path)
        }
        #expect(try run().status == 0)
        #expect(try run().status == 0)
        try workspace.write("stats.json", "")
        #expect(try run().status == 0)
        for text in ["My notes.\n", "{ \"stages\": [] }", "[1]"] {
            try workspace.write("stats.json", text)
            let outcome = try run()
            #expect(outcome.status == 2)
            #expect(
                outcome.errorLines == [
                    "--stats: 'stats.json' exists and has no figures of an earlier run, so it is kept. Name another file, or remove this one."
                ])
            #expect(try workspace.data("stats.json") == Data(text.utf8))
        }
    }
}
