// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

/// What `framehost batch` calls done: each picture that an input promises has arrived, and what the output depends on is
/// as it was.
@Suite struct BatchDoneTests {
    let workshop: ClipWorkshop
    var workspace: Workspace { workshop.workspace }
    let framehost: Program

    init() throws {
        workshop = try ClipWorkshop()
        framehost = try Program.framehost
        try write("")
    }

    /// A chain that encodes anew, with a stage in the middle and more options of the source.
    private func write(_ filter: String, clip: String = "", more: String = "") throws {
        try workspace.write(
            "chain.json",
            """
            { "stages": [ { "id": "clip", "use": "file-source", "path": "${input}"\(clip) },\(filter)
                          { "id": "h264", "use": "x264-encoder", "preset": "ultrafast", "keyframeSeconds": 0.2 },
                          { "use": "recorder", "path": "${output}" }\(more) ] }
            """)
    }

    private func batch(_ arguments: String...) throws -> Outcome {
        try framehost.run(
            ["batch", "chain.json"] + arguments + ["--out", "out", "--report", "report.json"],
            folder: workspace.folder.path)
    }

    private func report() throws -> JSON {
        try JSON(parsing: String(decoding: workspace.data("report.json"), as: UTF8.self))
    }

    private func makeCut(_ name: String) throws {
        try workshop.make("whole.mp4", ClipWorkshop.moving("160x120", count: 100), "-g 20 -movflags faststart")
        _ = try workshop.change("whole.mp4", to: name) { $0 = $0.prefix($0.count * 6 / 10) }
    }

    private func folder(_ name: String) throws {
        try FileManager.default.createDirectory(
            atPath: workspace.path(name), withIntermediateDirectories: true)
    }

    @Test(.needs(.ffmpeg)) func doesNotCallHalfAFilmMade() throws {
        try folder("in")
        try makeCut("in/cut.mp4")
        try FileManager.default.copyItem(atPath: workspace.path("whole.mp4"), toPath: workspace.path("in/good.mp4"))
        for time in 1...2 {
            let outcome = try batch("in")
            #expect(outcome.status == 1, "\(outcome.error)")
            #expect(
                outcome.error.contains("in/cut.mp4: set aside: not all that the file promises could be read: "),
                "\(outcome.error)")
            #expect(outcome.error.contains("of 100 pictures in its index are missing"), "\(outcome.error)")
            #expect(try report()["setAside"].int == 1 && report()["made"].int == (time == 1 ? 1 : 0))
        }
        #expect(!FileManager.default.fileExists(atPath: workspace.path("out/cut.mp4")))

        // Kept where that is asked for, and said each time.
        let accepted = try batch("in", "--accept-damaged")
        #expect(accepted.status == 1, "\(accepted.error)")
        #expect(accepted.error.contains("in/cut.mp4: made of a damaged input: "), "\(accepted.error)")
        #expect(try report()["made"].int == 1 && report()["damaged"].int == 1 && report()["setAside"].int == 0)
        for arguments in [["in"], ["in", "--accept-damaged"]] {
            let later = try framehost.run(
                ["batch", "chain.json", "--out", "out", "--report", "report.json"] + arguments,
                folder: workspace.folder.path)
            #expect(later.status == 1, "\(later.error)")
            #expect(
                later.error.contains(
                    "1 output is made of damaged inputs, which --accept-damaged permitted: in/cut.mp4."),
                "\(later.error)")
            #expect(later.error.contains("2 there already, 1 of them of damaged inputs"), "\(later.error)")
            let unit = try report()["units"].first("input", "in/cut.mp4")
            #expect(unit["state"].string == "present" && unit["damage"].string?.isEmpty == false)
            #expect(unit["pictures"]["clip"]["promised"].int == 100)
        }

        // Given up by hand, it is named and counts no longer, until it changes.
        for arguments in [["--give-up", "cut.mp4"], []] {
            let outcome = try framehost.run(
                ["batch", "chain.json", "in", "--out", "out", "--report", "report.json"] + arguments,
                folder: workspace.folder.path)
            #expect(outcome.status == 0, "\(outcome.error)")
            #expect(outcome.error.contains("Given up by hand: in/cut.mp4."), "\(outcome.error)")
            #expect(outcome.error.contains("1 there already, 1 given up."), "\(outcome.error)")
            #expect(try report()["givenUp"].int == 1)
        }
        try FileManager.default.removeItem(atPath: workspace.path("in/cut.mp4"))
        try FileManager.default.copyItem(atPath: workspace.path("whole.mp4"), toPath: workspace.path("in/cut.mp4"))
        let mended = try batch("in")
        #expect(mended.status == 0 && mended.error.contains("1 made, 1 there already."), "\(mended.error)")
        let unknown = try batch("in", "--give-up", "other.mp4")
        #expect(unknown.status == 2, "\(unknown.error)")
        #expect(
            unknown.error.contains("--give-up other.mp4: no input of this batch has that name, and no output."),
            "\(unknown.error)")
    }

    /// A chain may leave pictures out: what the source read counts.
    @Test(.needs(.ffmpeg)) func countsWhatTheSourceReadWhereTheChainDropsPictures() throws {
        try folder("in")
        try workshop.make("in/a.mp4", ClipWorkshop.moving("160x120", count: 50))
        try write(
            #" { "use": "rate", "rate": 10 },"#, clip: #", "start": 0.4, "duration": 1"#)
        let outcome = try batch("in")
        #expect(outcome.status == 0, "\(outcome.error)")
        let unit = try report()["units"].list[0]
        #expect(unit["damage"].string == "" && unit["pictures"]["clip"]["given"].int == 25)
    }

    /// The rest would stand in a second file, with a gap between them.
    @Test(.needs(.ffmpeg)) func triesAgainWhereAStageFailsThatWouldRestart() throws {
        try folder("in")
        try folder("side")
        try workshop.make("in/a.mp4", ClipWorkshop.moving("160x120", count: 100))
        try write(
            "", clip: #", "pace": "realtime""#,
            more: """
                , { "id": "side", "use": "recorder", "from": "h264", "path": "side/a-{nnnn}.mp4", "segmentSeconds": 0.4,
                    "onError": "restart" }
                """)
        let running = try framehost.start(
            ["batch", "chain.json", "in", "--out", "out", "--attempts", "1"], folder: workspace.folder.path)
        let deadline = Date() + 60
        while workspace.names(below: "side").isEmpty, running.isRunning, Date() < deadline { usleep(10_000) }
        // The next file cannot be made for a moment.
        try FileManager.default.moveItem(atPath: workspace.path("side"), toPath: workspace.path("away"))
        try workspace.write("side", "")
        for _ in 0..<120 where running.isRunning { usleep(10_000) }
        try FileManager.default.removeItem(atPath: workspace.path("side"))
        try FileManager.default.moveItem(atPath: workspace.path("away"), toPath: workspace.path("side"))
        let outcome = try running.finish()
        #expect(outcome.status == 1 && outcome.error.contains("in/a.mp4: set aside: side: "), "\(outcome.error)")
        #expect(!FileManager.default.fileExists(atPath: workspace.path("out/a.mp4")))
    }

    private static let font = "/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf"

    /// A font for all, and one for each input.
    @Test(
        .needs(.ffmpeg),
        .enabled(if: FileManager.default.fileExists(atPath: font) || Tool.isCI, "fonts-dejavu-core is missing"))
    func knowsTheFilesThatTheChainReads() throws {
        try folder("in")
        for name in ["in/a.mp4", "in/b.mp4"] {
            try workshop.make(name, ClipWorkshop.moving("160x120", count: 5))
            try FileManager.default.copyItem(atPath: Self.font, toPath: workspace.path(name) + ".ttf")
        }
        try FileManager.default.copyItem(atPath: Self.font, toPath: workspace.path("common.ttf"))
        try write(
            """
             { "use": "text", "text": "1", "font": "common.ttf" },
             { "id": "own", "use": "text", "text": "2", "font": "${input}.ttf" },
            """)
        func change(_ name: String) throws {
            try workspace.write(name, workspace.data(name) + Data([0]))
        }
        #expect(try batch("in").status == 0)
        #expect(try report()["made"].int == 2)
        // Neither another mode nor a further name is another content.
        #expect(link(workspace.path("common.ttf"), workspace.path("other.ttf")) == 0)
        #expect(chmod(workspace.path("in/a.mp4.ttf"), 0o600) == 0)
        #expect(try batch("in").status == 0)
        #expect(try report()["present"].int == 2)
        try change("in/a.mp4.ttf")
        let own = try batch("in", "--verbose")
        #expect(try own.status == 0 && report()["made"].int == 1 && report()["present"].int == 1, "\(own.error)")
        #expect(own.error.contains("in/a.mp4.ttf had changed"), "\(own.error)")
        try change("common.ttf")
        let common = try batch("in", "--verbose")
        #expect(try common.status == 0 && report()["made"].int == 2, "\(common.error)")
        #expect(common.error.contains("made again, because the file common.ttf had changed"), "\(common.error)")
    }

    /// A further link or another mode is no change of what workers read; another content is.
    @Test(.needs(.ffmpeg), arguments: [false, true]) func stopsOnlyWhereTheContentChanges(changes: Bool) throws {
        try folder("in")
        try workshop.make("in/a.mp4", ClipWorkshop.moving("160x120", count: 20))
        try workshop.make("in/b.mp4", ClipWorkshop.moving("160x120", count: 20))
        try write("", clip: #", "pace": "realtime""#)
        let running = try framehost.start(
            ["batch", "chain.json", "in", "--out", "out", "--jobs", "1"], folder: workspace.folder.path)
        let deadline = Date() + 60
        while !workspace.names(below: "out/.framehost").contains(where: { $0.hasSuffix(".mp4") }), running.isRunning,
            Date() < deadline
        {
            usleep(10_000)
        }
        let path = workspace.path("chain.json")
        if changes {
            try workspace.write("chain.json", workspace.data("chain.json") + Data("// Later.\n".utf8))
        } else {
            #expect(link(path, path + ".link") == 0 && chmod(path, 0o600) == 0)
            #expect(utimensat(AT_FDCWD, path, nil, 0) == 0)
        }
        let outcome = try running.finish()
        #expect(outcome.status == (changes ? 1 : 0), "\(outcome.error)")
        #expect(
            outcome.error.contains("changed while the batch ran, so the batch stops.") == changes, "\(outcome.error)")
    }
}
