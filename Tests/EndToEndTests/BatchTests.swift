// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import Testing

/// `framehost batch`: what it makes, keeps, makes anew and leaves alone. Tests/Soak/batch.py kills and freezes it.
@Suite struct BatchTests {
    let workspace: Workspace
    let framehost: Program

    init() throws {
        workspace = try Workspace()
        framehost = try Program.framehost
        try workspace.write(
            "chain.json",
            """
            { "stages": [ { "use": "file-source", "path": "${input}" },
                          { "id": "h264", "use": "x264-encoder", "preset": "ultrafast" },
                          { "use": "recorder", "path": "${output}" } ] }
            """)
    }

    /// A clip that framehost makes.
    private func makeClip(_ name: String, frames: Int, rate: Int = 25) throws {
        let target = URL(fileURLWithPath: workspace.path(name)).deletingLastPathComponent()
        try FileManager.default.createDirectory(at: target, withIntermediateDirectories: true)
        try workspace.write(
            "maker.json",
            """
            { "stages": [ { "use": "test-source", "size": "160x120", "rate": \(rate) },
                          { "use": "x264-encoder", "preset": "ultrafast" }, { "use": "recorder", "path": "made.mp4" } ] }
            """)
        let outcome = try framehost.run(
            ["maker.json", "--frames", "\(frames)", "--quiet"], folder: workspace.folder.path)
        try #require(outcome.status == 0, "\(outcome.error)")
        try FileManager.default.moveItem(atPath: workspace.path("made.mp4"), toPath: workspace.path(name))
    }

    private func batch(_ arguments: String..., input: String? = nil) throws -> Outcome {
        try framehost.run(["batch", "chain.json"] + arguments, input: input, folder: workspace.folder.path)
    }

    private func frames(_ name: String) throws -> Int { try RecordedFile(workspace.path(name)).packets.count }

    private func report(_ name: String) throws -> JSON {
        try JSON(parsing: String(decoding: workspace.data(name), as: UTF8.self))
    }

    /// Names below `folder` that are not ours to look at.
    private func outputs(_ folder: String) -> [String] {
        workspace.names(below: folder).filter { !$0.hasPrefix(".framehost/") }
    }

    @Test(.needs(.ffprobe)) func makesEachFileOnce() throws {
        let names = ["in/a.mp4", "in/deep/er/b.mov", "in/50% {off} $x.mp4", "in/ü 'quoted' \"too\".mkv"]
        for (index, name) in names.enumerated() { try makeClip(name, frames: 10 + index) }
        try workspace.write("in/notes.txt", "no clip")
        let outcome = try batch("in", "--out", "out", "--report", "report.json", "--report", "report.csv")
        #expect(outcome.status == 0, "\(outcome.error)")
        #expect(outcome.error.contains("1 other file in the folders is not a clip."), "\(outcome.error)")
        #expect(outcome.error.contains("Done: 4 files in"))
        let made = ["50% {off} $x.mp4", "a.mp4", "deep/er/b.mp4", "ü 'quoted' \"too\".mp4"]
        #expect(outputs("out") == made.sorted())
        #expect(try frames("out/a.mp4") == 10 && frames("out/deep/er/b.mp4") == 11)
        #expect(try frames("out/50% {off} $x.mp4") == 12 && frames("out/ü 'quoted' \"too\".mp4") == 13)
        let report = try report("report.json")
        #expect(report["files"].int == 4 && report["made"].int == 4 && report["setAside"].int == 0)
        #expect(report["frames"].int == 46 && report["units"].list.count == 4)
        let rows = try String(decoding: workspace.data("report.csv"), as: UTF8.self).split(separator: "\r\n")
        #expect(rows.count == 5 && rows[0].hasPrefix("input,output,state,"))
        // One record for each, and nothing else.
        let hidden = workspace.names(below: "out/.framehost")
        #expect(hidden.count == 4 && hidden.allSatisfy { $0.hasSuffix("/done") }, "\(hidden)")

        let before = try workspace.data("out/a.mp4")
        let second = try batch("in", "--out", "out", "--report", "report.json")
        #expect(second.status == 0 && second.error.contains("0 made, 4 there already"), "\(second.error)")
        #expect(try workspace.data("out/a.mp4") == before)
        #expect(try self.report("report.json")["present"].int == 4)

        // A batch that was killed between publishing and sweeping leaves these; the next one removes them.
        let record = try #require(hidden.first { $0.contains("a.mp4") })
        let unit = "out/.framehost/" + record.dropLast("/done".count)
        for name in ["1.claim", "1-abcdef01.done", "1-abcdef01/a.jpg"] { try workspace.write("\(unit)/\(name)", "") }
        #expect(try batch("in", "--out", "out").status == 0)
        #expect(workspace.names(below: "out/.framehost") == hidden)
    }

    @Test(.needs(.ffprobe)) func makesAnewWhatHasChanged() throws {
        try makeClip("in/a.mp4", frames: 10)
        try makeClip("in/b.mp4", frames: 11)
        #expect(try batch("in", "--out", "out").status == 0)
        try FileManager.default.removeItem(atPath: workspace.path("in/a.mp4"))
        try makeClip("in/a.mp4", frames: 20)
        let changed = try batch("in", "--out", "out", "--verbose")
        #expect(changed.status == 0 && changed.error.contains("1 made, 1 there already"), "\(changed.error)")
        #expect(changed.error.contains("made again, because the input had changed"), "\(changed.error)")
        #expect(try frames("out/a.mp4") == 20)
        // Comments are no change, options are.
        let chain = try String(decoding: workspace.data("chain.json"), as: UTF8.self)
        try workspace.write("chain.json", "// A comment.\n" + chain)
        #expect(try batch("in", "--out", "out").error.contains("2 there already"))
        let other = try batch("in", "--out", "out", "--set", "h264.bitrateKbps=300", "--verbose")
        #expect(other.status == 0 && other.error.contains("2 made"), "\(other.error)")
        #expect(other.error.contains("made again, because the chain had changed"))
        #expect(workspace.names(below: "out/.framehost").count == 2)
        // Content decides where it is asked to.
        #expect(try batch("in", "--out", "by", "--identity", "sha256").status == 0)
        try FileManager.default.setAttributes(
            [.modificationDate: Date(timeIntervalSince1970: 1e9)], ofItemAtPath: workspace.path("in/b.mp4"))
        #expect(try batch("in", "--out", "by", "--identity", "sha256").error.contains("2 there already"))
        #expect(try batch("in", "--out", "out", "--set", "h264.bitrateKbps=300").error.contains("1 made"))
    }

    @Test(.needs(.ffprobe)) func setsBadFilesAsideAndGoesOn() throws {
        try makeClip("in/good.mp4", frames: 10)
        try workspace.write("in/bad.mp4", "no clip")
        try makeClip("in/worse.mp4", frames: 30)
        let whole = try workspace.data("in/worse.mp4")
        try workspace.write("in/worse.mp4", whole.prefix(whole.count / 2))
        let outcome = try batch("in", "in/missing.mp4", "--out", "out")
        #expect(outcome.status == 2 && outcome.error.contains("missing.mp4: cannot be opened"), "\(outcome.error)")
        let second = try batch("in", "--out", "out", "--report", "report.json")
        #expect(second.status == 1, "\(second.error)")
        #expect(second.error.contains("in/bad.mp4: set aside: ") && second.error.contains("is not a media file"))
        #expect(outputs("out") == ["good.mp4"])
        let report = try report("report.json")
        #expect(report["made"].int == 1 && report["setAside"].int == 2 && report["left"].int == 0)
        #expect(report["units"].list.first { $0["input"].string == "in/bad.mp4" }?["error"].string?.isEmpty == false)
        // Not tried again, unless asked to or mended.
        let third = try batch("in", "--out", "out", "--verbose")
        #expect(third.status == 1 && third.error.contains("0 made, 1 there already, 2 set aside"), "\(third.error)")
        #expect(
            third.error.contains(
                " Correct the causes, then run the same command again with --retry.\n"), "\(third.error)")
        try FileManager.default.removeItem(atPath: workspace.path("in/bad.mp4"))
        try makeClip("in/bad.mp4", frames: 12)
        #expect(try batch("in", "--out", "out").error.contains("1 made"))
        #expect(try frames("out/bad.mp4") == 12)
        let retried = try batch("in", "--out", "out", "--retry", "--report", "report.json")
        #expect(retried.status == 1)
        #expect(
            try self.report("report.json")["units"].list.first { $0["state"].string == "set aside" }?["attempts"].int
                == 1)
    }

    /// A worker that fails while it runs is started again, so many times.
    @Test func triesAgain() throws {
        try makeClip("in/a.mp4", frames: 10)
        try workspace.write(
            "chain.json",
            """
            { "stages": [ { "use": "file-source", "path": "${input}" },
                          { "id": "h264", "use": "x264-encoder", "preset": "ultrafast" },
                          { "use": "recorder", "path": "${output}" },
                          { "use": "rtsp-sink", "from": "h264", "port": 1, "address": "203.0.113.7" } ] }
            """)
        let outcome = try batch("in", "--out", "out", "--attempts", "2", "--report", "report.json")
        #expect(outcome.status == 1, "\(outcome.error)")
        #expect(outcome.error.contains("in/a.mp4: attempt 1 of 2 failed: "), "\(outcome.error)")
        #expect(outcome.error.contains("in/a.mp4: set aside after 2 attempts: "), "\(outcome.error)")
        #expect(outputs("out").isEmpty)
        let report = try report("report.json")
        #expect(report["failedAttempts"].int == 1 && report["setAside"].int == 1 && report["frames"].int == 0)
        #expect(
            workspace.names(below: "out/.framehost").map { $0.split(separator: "/").last } == ["1.failed", "2.failed"])
    }

    @Test(.needs(.ffprobe)) func leavesAloneWhatIsNotItsOwn() throws {
        try makeClip("in/a.mp4", frames: 10)
        try makeClip("in/b.mp4", frames: 10)
        try workspace.write("out/a.mp4", "somebody's")
        let outcome = try batch("in", "--out", "out")
        #expect(outcome.status == 1, "\(outcome.error)")
        #expect(
            outcome.error.contains("out/a.mp4 already exists, and no record says that a batch made it"),
            "\(outcome.error)")
        #expect(try workspace.data("out/a.mp4") == Data("somebody's".utf8))
        // An output that somebody edited stays; one that was removed is made again.
        let edited = try FileHandle(forWritingTo: URL(fileURLWithPath: workspace.path("out/b.mp4")))
        try edited.seekToEnd()
        try edited.write(contentsOf: Data("edited".utf8))
        try edited.close()
        let second = try batch("in/b.mp4", "--out", "out")
        #expect(
            second.status == 1 && second.error.contains("out/b.mp4 has been changed since it was made"),
            "\(second.error)")
        #expect(try workspace.data("out/b.mp4").suffix(6) == Data("edited".utf8))
        try FileManager.default.removeItem(atPath: workspace.path("out/b.mp4"))
        let third = try batch("in/b.mp4", "--out", "out")
        #expect(third.status == 0 && third.error.contains("1 made"), "\(third.error)")
        #expect(try frames("out/b.mp4") == 10)
        // The same after a change of the chain, which may replace only what it made.
        try workspace.write("out/b.mp4", "somebody's")
        let fourth = try batch("in/b.mp4", "--out", "out", "--set", "h264.bitrateKbps=300")
        #expect(fourth.status == 1 && fourth.error.contains("no record says"), "\(fourth.error)")
        #expect(try workspace.data("out/b.mp4") == Data("somebody's".utf8))
    }

    @Test func doesNotReplaceTheOutputOfAnotherInputNorAnInput() throws {
        try makeClip("A/a.mp4", frames: 5)
        try makeClip("B/a.mp4", frames: 6)
        #expect(try batch("A", "--out", "out").status == 0)
        let made = try workspace.data("out/a.mp4")
        let other = try batch("B", "--out", "out")
        #expect(other.status == 1, "\(other.error)")
        #expect(
            other.error.contains("out/a.mp4 was made from another input, \(workspace.path("A/a.mp4"))"),
            "\(other.error)")
        #expect(try workspace.data("out/a.mp4") == made)
        // An archive that was moved is the same archive.
        try FileManager.default.moveItem(atPath: workspace.path("A"), toPath: workspace.path("C"))
        #expect(try batch("C", "--out", "out", "--set", "h264.bitrateKbps=300").error.contains("1 made"))
        let itself = try batch("C/a.mp4", "--out", "C")
        #expect(itself.status == 1 && itself.error.contains("would overwrite the input"), "\(itself.error)")
        let again = try batch("out/a.mp4", "--out", "out")
        #expect(again.status == 1 && again.error.contains("would overwrite the input"), "\(again.error)")
        let same = try batch("out", "--out", "out")
        #expect(
            same.error.contains(
                "is the folder of --out, which cannot be an input too. Name another folder with --out."),
            "\(same.error)")
    }

    /// Equal warnings of many files are said once, with their number.
    @Test func saysWhatItsWorkersWarnOf() throws {
        for name in ["a", "b", "c"] { try makeClip("in/\(name).mp4", frames: 5) }
        try workspace.write(
            "chain.json",
            """
            { "stages": [ { "use": "file-source", "path": "${input}" },
                          { "id": "h264", "use": "x264-encoder", "preset": "ultrafast" },
                          { "use": "recorder", "path": "${output}", "audio": "copy" } ] }
            """)
        let outcome = try batch("in", "--out", "out", "--report", "report.csv")
        #expect(outcome.status == 0, "\(outcome.error)")
        let warnings = outcome.untimedErrorLines.filter { $0.hasPrefix("warning: ") }
        #expect(outcome.error.contains("3 made (3 with warnings)."), "\(outcome.error)")
        #expect(
            !warnings.isEmpty && warnings.allSatisfy { $0.contains("sound") || $0.contains("audio") }, "\(warnings)")
    }

    @Test func takesNamesFromLists() throws {
        try makeClip("in/x/a.mp4", frames: 5)
        try makeClip("in/y/a.mp4", frames: 5)
        let listed = try batch("-", "--out", "out", input: "in/x/a.mp4\r\n\n./in/y/a.mp4\nin/x/a.mp4\n")
        #expect(listed.status == 0 && listed.error.contains("1 repetition of a name is left out."), "\(listed.error)")
        #expect(outputs("out") == ["in/x/a.mp4", "in/y/a.mp4"])
        try workspace.write("list", "in/x/a.mp4\0in/y/a.mp4\0")
        #expect(try batch("--list", "list", "--out", "zero", "--base", "in").status == 0)
        #expect(outputs("zero") == ["x/a.mp4", "y/a.mp4"])
        #expect(try batch("in/*/a.mp4", "--out", "glob", "--base", "in", "--ending", "mkv").status == 0)
        #expect(outputs("glob") == ["x/a.mkv", "y/a.mkv"])
        for shard in 1...2 {
            #expect(try batch("in", "--out", "shards", "--shard", "\(shard)/2").status == 0)
            #expect(outputs("shards").count == shard)
        }
        // A name that is not there is that name's fault alone.
        let missing = try batch("--list", "-", "--out", "some", input: "in/x/a.mp4\n../out/nothing.mp4\n")
        #expect(missing.status == 1 && missing.error.contains("nothing.mp4: set aside: "), "\(missing.error)")
        #expect(outputs("some") == ["in/x/a.mp4"])
    }

    /// Nothing begins, with a sentence; no folder is left.
    @Test(arguments: [
        (
            ["in", "--out", "out"],
            #"{ "stages": [ { "use": "test-source" }, { "use": "recorder", "path": "${output}" } ] }"#,
            "the chain has no ${input}"
        ),
        (
            ["in", "--out", "out"],
            #"{ "stages": [ { "use": "file-source", "path": "${input}" }, { "use": "null-sink" } ] }"#,
            "the chain has no ${output}"
        ),
        (
            ["in", "--out", "out"],
            #"{ "stages": [ { "use": "file-sauce", "path": "${input}" }, { "use": "recorder", "path": "${output}" } ] }"#,
            "Did you mean 'file-source'?"
        ),
        (["in", "--out", "out", "--set", "h264.cfr=1"], "", "--set h264.cfr=1"),
        (
            ["in", "--out", "out"],
            #"{ "control": {}, "stages": [ { "use": "file-source", "path": "${input}" }, { "use": "x264-encoder" }, { "use": "recorder", "path": "${output}" } ] }"#,
            "each would start 'control'"
        ), (["in", "chain.json", "--out", "out"], "", "is a JSON file, but inputs must be media files"),
        (["in/a.mp4", "other/a.mov", "--out", "out"], "", "would become 'a.mp4', and so would other/a.mov"),
        (["in/nothing.mp4", "--out", "out"], "", "in/nothing.mp4: cannot be opened: No such file"),
        (["nothing/*.mp4", "--out", "out"], "", "no file matches this pattern"),
        (["other", "--out", "50%"], "", "which recorders read as a pattern"),
        (["in", "--out", "chain.json/out"], "", "cannot be created: Not a directory"),
        (["empty", "--out", "out"], "", "empty: there are no clips, only 1 other file. Name a folder with clips"),
        (["in", "--out", "out", "--shard", "3/2"], "", "must be two numbers i/N"),
        (["in", "--out", "out", "--report", "r.txt"], "", "must end in .json or .csv"),
        (["in", "--out", "out", "--report", "nowhere/r.csv"], "", "--report nowhere/r.csv: cannot be written"),
        (["--out", "out"], "", "no input is named"),
        (["in", "--out", "out", "--ending", "a/b"], "", "must be the ending of a file's name"),
        (
            ["in", "--out", "out", "--ending", "avi"], "",
            #"--ending .avi: 'a.avi' must end in .mp4, .mov or .mkv, or of sound alone in .m4a or .mka. Use one of these endings: the ending chooses the container."#
        ),
    ])
    func beginsNothingThatCannotBeDone(arguments: [String], chain: String, sentence: String) throws {
        try makeClip("in/a.mp4", frames: 2)
        try makeClip("other/a.mov", frames: 2)
        try workspace.write("empty/notes.txt", "no clip")
        if !chain.isEmpty { try workspace.write("chain.json", chain) }
        let before = workspace.names
        let outcome = try framehost.run(["batch", "chain.json"] + arguments, folder: workspace.folder.path)
        #expect(outcome.status == 2, "\(outcome.error)")
        #expect(outcome.error.contains(sentence), "\(outcome.error)")
        #expect(workspace.names == before)
    }

    /// A signal ends it soon, without a trace of what was under way; the same command goes on.
    @Test(.needs(.ffprobe), arguments: [SIGTERM, SIGINT, SIGKILL]) func goesOnAfterASignal(signal: Int32) throws {
        for name in ["a", "b", "c"] { try makeClip("in/\(name).mp4", frames: 25, rate: 5) }
        var (out, tries) = ("out", 0)
        func arguments() -> [String] {
            ["batch", "chain.json", "in", "--out", out, "--jobs", "2", "--set", "file.pace=realtime"]
        }
        try workspace.write(
            "chain.json",
            """
            { "stages": [ { "id": "file", "use": "file-source", "path": "${input}" },
                          { "id": "h264", "use": "x264-encoder", "preset": "ultrafast" },
                          { "use": "recorder", "path": "${output}" } ] }
            """)
        func interrupted() throws -> Outcome {
            tries += 1
            out = "out\(tries)"
            let running = try framehost.start(arguments(), folder: workspace.folder.path)
            // Until two workers write.
            let deadline = Date() + 180
            while workspace.names(below: "\(out)/.framehost").filter({ $0.hasSuffix(".mp4") }).count < 2,
                running.isRunning, Date() < deadline
            {
                usleep(10_000)
            }
            if running.isRunning { running.send(signal) }
            return try running.finish()
        }
        var outcome = try interrupted()
        // On a busy machine the first clips may be done before the signal comes.
        while !outputs(out).isEmpty, tries < 10 { outcome = try interrupted() }
        #expect(outcome.status == (signal == SIGKILL ? 128 + 9 : 1), "\(outcome.error)")
        if signal != SIGKILL {
            #expect(outcome.error.contains("Run the same command again to continue."), "\(outcome.error)")
            let left = workspace.names(below: "\(out)/.framehost")
            #expect(left.isEmpty, "\(left)")
        }
        #expect(outputs(out).isEmpty)
        // Its workers have ended with it: nothing is written any more.
        let second = try framehost.run(arguments(), folder: workspace.folder.path)
        #expect(second.status == 0 && second.error.contains("3 made"), "\(second.error)")
        for name in ["a", "b", "c"] { #expect(try frames("\(out)/\(name).mp4") == 25) }
        let hidden = workspace.names(below: "\(out)/.framehost")
        #expect(hidden.count == 3 && hidden.allSatisfy { $0.hasSuffix("/done") }, "\(hidden)")
    }

    /// Files whose names begin as the output's are outputs too.
    @Test func bringsWhatLiesBesideTheOutput() throws {
        try makeClip("in/a.mp4", frames: 50)
        try workspace.write(
            "chain.json",
            """
            { "stages": [ { "use": "file-source", "path": "${input}" },
                          { "id": "h264", "use": "x264-encoder", "preset": "ultrafast", "keyframeSeconds": 1 },
                          { "use": "recorder", "path": "${output}" },
                          { "id": "copy", "use": "recorder", "from": "h264", "path": "${output}.copy.mkv" } ] }
            """)
        #expect(try batch("in", "--out", "out").status == 0)
        #expect(outputs("out") == ["a.mp4", "a.mp4.copy.mkv"])
        #expect(try batch("in", "--out", "out").error.contains("1 there already"))
        try FileManager.default.removeItem(atPath: workspace.path("out/a.mp4.copy.mkv"))
        let again = try batch("in", "--out", "out")
        #expect(again.status == 0 && again.error.contains("1 made"), "\(again.error)")
        #expect(outputs("out") == ["a.mp4", "a.mp4.copy.mkv"])
    }

    /// Two at once, over the same folder.
    @Test func sharesAFolderWithAnotherBatch() throws {
        for index in 0..<8 { try makeClip("in/\(index).mp4", frames: 10) }
        let runs = try (0..<2).map { index in
            try framehost.start(
                ["batch", "chain.json", "in", "--out", "out", "--report", "report\(index).json"],
                folder: workspace.folder.path)
        }
        var made = 0
        for (index, run) in runs.enumerated() {
            let outcome = try run.finish()
            #expect(outcome.status == 0, "\(outcome.error)")
            let report = try report("report\(index).json")
            made += report["made"].int ?? 0
            #expect(
                (report["made"].int ?? 0) + (report["present"].int ?? 0) + (report["madeElsewhere"].int ?? 0) == 8)
        }
        #expect(made == 8)
        #expect(outputs("out").count == 8)
    }
}
