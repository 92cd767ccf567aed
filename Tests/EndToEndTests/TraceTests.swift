// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

/// A module of Python's that a test needs: as ``Tool``.
struct PythonModule {
    let name: String

    /// Perfetto's own messages, of PyPI.
    static let perfetto = PythonModule(name: "perfetto")

    var isThere: Bool {
        (try? Tool.python.run("-c", "import \(name)").status) == 0
    }
}

extension Trait where Self == ConditionTrait {
    static func needs(_ module: PythonModule) -> Self {
        .enabled(if: Tool.isCI || module.isThere, "Python's \(module.name) is not installed: make test-packages")
    }
}

/// `--trace`, read with the messages that Perfetto publishes (Tests/Tools/trace.py).
@Suite(.needs(.perfetto)) struct TraceTests {
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
            { "id": "meter", "use": "fps-meter" },
            { "id": "h264", "use": "x264-encoder", "preset": "ultrafast", "bitrateKbps": 500 },
            { "id": "file", "use": "recorder", "path": "out.mp4" },
            { "id": "watch", "use": "null-sink", "from": "pictures", "link": { "whenFull": "latest" } }
          ]
        }
        """

    /// What is in a trace, without a fault.
    private func read(_ name: String, _ location: SourceLocation = #_sourceLocation) throws -> JSON {
        let script = Repository.root.appending(path: "Tests/Tools/trace.py").path
        let outcome = try Tool.python.run(script, "--json", workspace.path(name), timeout: 120)
        #expect(outcome.status == 0, "\(outcome.output.prefix(2000))\(outcome.error)", sourceLocation: location)
        return try JSON(parsing: outcome.output)
    }

    private func run(_ arguments: String...) throws -> Outcome {
        try framehost.run(["chain.json"] + arguments, folder: workspace.folder.path)
    }

    @Test func aTraceHasEveryThreadStageAndPool() throws {
        try workspace.write("chain.json", Self.fork)
        let outcome = try run("--trace", "t.pftrace", "--stats", "stats.json")
        #expect(outcome.status == 0, "\(outcome.error)")
        let trace = try read("t.pftrace")
        #expect(outcome.error.contains("The trace 't.pftrace' has "), "\(outcome.error)")
        let stats = try JSON(file: workspace.path("stats.json"))
        for stage in stats["stages"].list {
            let id = try #require(stage["id"].string)
            let slices = trace["stages"][id]
            #expect(slices["category"].string == "stage" && slices["open"].int == 0)
            let frames = try #require(id == "pictures" ? stage["framesOut"].int : stage["framesIn"].int)
            #expect(slices["frames"].int == frames, "\(id): \(slices)")
        }
        #expect(trace["lanes"].list.compactMap(\.string).contains("src:pictures"))
        #expect(trace["stages"]["h264 start"]["slices"].int == 1)
        for pool in stats["pools"].list {
            let counter = trace["counters"]["pool \(try #require(pool["name"].string))"]
            #expect(counter["least"].int == 0 && counter["last"].int == 0)
            #expect(try #require(counter["most"].int) <= #require(pool["buffers"].int))
        }
        for link in stats["links"].list where link["capacity"].int ?? 0 > 0 {
            let name = "queue \(try #require(link["from"].string)) → \(try #require(link["to"].string))"
            let counter = trace["counters"][name]
            #expect(counter["most"].int == link["depthMax"].int && counter["last"].int == 0, "\(name): \(counter)")
            #expect(trace["marks"]["drop: replaced"].int ?? 0 >= 0)
        }
        // Frames that `watch` missed have an arrow that leads nowhere; all others two ends.
        let watched = try #require(stats["stages"].first("id", "watch")["framesIn"].int)
        #expect(trace["flowsWithOneEnd"].int == 200 - watched)
        #expect(trace["flows"].int == 4 * 200)
        #expect(trace["marks"]["trace ends"].int == 1)
    }

    /// What was written in the last second may be missing; what is there opens.
    @Test func theTraceOfAKilledRunOpens() throws {
        try workspace.write("chain.json", Chains.live)
        let running = try framehost.start(
            ["chain.json", "--quiet", "--trace", "t.pftrace"], folder: workspace.folder.path)
        let path = workspace.path("t.pftrace")
        func size() -> Int {
            ((try? FileManager.default.attributesOfItem(atPath: path))?[.size] as? NSNumber)?.intValue ?? 0
        }
        // Three times a second's worth.
        var last = 0
        for _ in 0..<3 {
            let deadline = Date() + 30
            while size() == last, Date() < deadline { running.listen(seconds: 0.02) }
            #expect(size() > last)
            last = size()
        }
        running.send(SIGKILL)
        #expect(try running.finish().status == 128 + 9)
        let trace = try read("t.pftrace")
        #expect(trace["cutBytes"].int == 0)
        let frames = try #require(trace["stages"]["camera"]["frames"].int)
        #expect(frames >= 50, "\(frames) frames")
        #expect(trace["marks"]["trace ends"].int == nil)
    }

    @Test func refusesAFileThatIsThere() throws {
        try workspace.write("chain.json", Chains.short)
        try workspace.write("old", "keep me")
        for (path, reason) in [
            ("old", "'old' already exists. Name another file."),
            ("chain.json", "'chain.json' is the chain file. Name another file."),
            (".", "'.' is a folder. Name a file in it."),
            (
                "no/such/t.pftrace",
                "'no/such/t.pftrace' cannot be written: No such file or directory. Create the folder, or correct the name."
            ),
        ] {
            let outcome = try run("--trace", path)
            #expect(outcome.status == 2 && outcome.errorLines == ["--trace: \(reason)"], "\(outcome.error)")
        }
        #expect(try workspace.data("old") == Data("keep me".utf8))
        #expect(workspace.names == ["chain.json", "old"])
        let same = try run("--trace", "x", "--stats", "x")
        #expect(same.status == 2 && same.error.contains("--trace and --stats name the same file."), "\(same.error)")
        for number in ["0", "1000001"] {
            let outcome = try run("--trace", "x", "--trace-megabytes", number)
            #expect(outcome.status == 2)
            #expect(outcome.error.contains("must be a whole number from 1 to 1000000."), "\(outcome.error)")
        }
        #expect(workspace.names == ["chain.json", "old"])
    }

    /// For so long that the trace thread comes to its part: a processor makes 40,000 frames in a tenth of a second.
    private static let seconds = 8
    private static let fast = Chains.endless.replacingOccurrences(of: "320x240", with: "16x16")

    @Test func endsTheTraceWhereTheDiskIsFull() throws {
        try workspace.write("chain.json", Self.fast)
        try FileManager.default.createDirectory(atPath: workspace.path("small"), withIntermediateDirectories: true)
        let disk = try SmallDisk(at: workspace.path("small"))
        try disk.empty(room: 512 << 10)
        let outcome = try disk.run(
            ["chain.json", "--trace", "small/t.pftrace", "--stats", "stats.json", "--for", "\(Self.seconds)"],
            in: workspace)
        #expect(outcome.status == 1, "\(outcome.error)")
        #expect(
            outcome.errorLines.contains {
                $0.hasPrefix("warning: The trace ends here with ")
                    && $0.contains("'small/t.pftrace' cannot be written: \(disk.reason).")
            }, "\(outcome.error)")
        #expect(
            outcome.errorLines.contains {
                $0.hasPrefix("--trace: 'small/t.pftrace' cannot be written: \(disk.reason).")
            }, "\(outcome.error)")
        // The run goes on without it.
        #expect(outcome.seconds >= Double(Self.seconds))
        let ledger = try JSON(file: workspace.path("stats.json"))["ledger"]
        let delivered = try #require(ledger["delivered"].int)
        #expect(delivered > 0 && delivered == ledger["captured"].int, "\(ledger)")
        let trace = try read("small/t.pftrace")
        #expect(trace["cutBytes"].int == 0)
    }

    @Test func endsTheTraceAtItsBound() throws {
        try workspace.write("chain.json", Self.fast)
        let outcome = try run("--trace", "t.pftrace", "--trace-megabytes", "1", "--for", "\(Self.seconds)")
        let hasGaps = outcome.error.contains("--trace: 't.pftrace' has gaps: ")
        #expect(outcome.status == (hasGaps ? 1 : 0), "\(outcome.error)")
        #expect(
            outcome.errorLines.contains {
                $0.hasPrefix(
                    "warning: The trace 't.pftrace' ends here, because it has reached its limit with ")
                    && $0.hasSuffix("Allow a larger trace with --trace-megabytes.")
            }, "\(outcome.error)")
        let trace = try read("t.pftrace")
        let bytes = try #require(trace["bytes"].int)
        #expect(bytes <= 1_000_000 && bytes > 900_000, "\(bytes)")
        // A busy machine may have lost entries before that. Those that come later are not missing.
        let endsWithGaps = trace["marks"]["trace ends, entries were lost"].int == 1
        #expect(hasGaps == endsWithGaps, "\(outcome.error)")
    }
}
