// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import Testing

/// `framehost batch --parts`: that parts give what a whole run gives. Tests/Soak/parts.py does it with a film of ten minutes.
@Suite struct BatchPartsTests {
    let workspace: Workspace
    let framehost: Program

    init() throws {
        workspace = try Workspace()
        framehost = try Program.framehost
    }

    /// At a constant quantizer and with one thread, an encoder gives the same for a part as for the whole.
    private func write(_ name: String, _ stages: String, encoder: String = #""qp": 22"#) throws {
        try workspace.write(
            name,
            """
            { "stages": [ { "use": "file-source", "path": "${input}" }, \(stages)
                          { "id": "h264", "use": "x264-encoder", "preset": "ultrafast", "threads": 1, "sceneCut": 0,
                            "keyframeSeconds": 1, \(encoder) },
                          { "use": "recorder", "path": "${output}", "audio": "copy" } ] }
            """)
    }

    /// A film with B-frames, open groups of pictures that are longer than a part, and sound; of a moving pattern, or of a
    /// face that wanders about.
    private func makeFilm(seconds: Int = 9, showsFace: Bool = false, more: [String] = []) throws {
        let picture =
            showsFace
            ? [
                "-loop", "1", "-framerate", "25", "-i", "\(Repository.root.path)/examples/media/astronaut_portrait.png", "-f",
                "lavfi", "-i", "sine=frequency=330:sample_rate=48000", "-vf",
                "scale=480:480,crop=320:240:'80+60*sin(t)':'40+20*sin(2*t)',format=yuv420p",
            ]
            : [
                "-f", "lavfi", "-i", "testsrc2=s=320x240:r=25", "-f", "lavfi", "-i",
                "sine=frequency=330:sample_rate=48000", "-pix_fmt", "yuv420p",
            ]
        let outcome = try Tool.ffmpeg.run(
            ["-nostdin", "-v", "error", "-y"] + picture + [
                "-t", "\(seconds)", "-c:v", "libx264", "-preset", "veryfast", "-g", "90", "-bf", "3", "-x264-params",
                "open-gop=1", "-c:a", "aac", "-b:a", "64k",
            ] + more + [workspace.path("film.mp4")])
        try #require(outcome.status == 0, "\(outcome.error)")
    }

    private func batch(_ chain: String, _ out: String, _ more: String...) throws -> Outcome {
        try framehost.run(["batch", chain, "film.mp4", "--out", out] + more, folder: workspace.folder.path)
    }

    /// Every decoded picture, or block of sound, with its time.
    private func digests(_ path: String, _ stream: String) throws -> [Substring] {
        let outcome = try Tool.ffmpeg.run([
            "-nostdin", "-v", "error", "-i", workspace.path(path), "-map", "0:\(stream)", "-f", "framemd5", "-",
        ])
        #expect(outcome.status == 0 && outcome.error.isEmpty, "\(outcome.error)")
        return outcome.output.split(separator: "\n").filter { !$0.hasPrefix("#") }
    }

    /// That parts differ in nothing from the whole run.
    private func expectEqual(_ whole: String, _ parts: String) throws {
        #expect(try RecordedFile(workspace.path(parts)).packets == RecordedFile(workspace.path(whole)).packets)
        for stream in ["v:0", "a:0"] {
            let (a, b) = (try digests(whole, stream), try digests(parts, stream))
            let differing = zip(a, b).filter { $0 != $1 }.count
            #expect(a.count == b.count && differing == 0, "\(stream): \(differing) of \(a.count), \(b.count)")
        }
    }

    @Test(.needs(.ffmpeg), .needs(.ffprobe)) func givesTheSameForAnyNumberOfWorkers() throws {
        try makeFilm()
        try write("chain.json", "")
        #expect(try batch("chain.json", "whole").status == 0)
        for jobs in ["1", "2", "3"] {
            let outcome = try batch("chain.json", "of-\(jobs)", "--parts", "2", "--jobs", jobs, "--report", "report.json")
            #expect(outcome.status == 0, "\(outcome.error)")
            #expect(outcome.error.contains("1 made") && outcome.error.contains("225 frames"), "\(outcome.error)")
            // The parts are gone.
            #expect(workspace.names(below: "of-\(jobs)/.framehost").allSatisfy { $0.hasSuffix("/done") })
        }
        #expect(try workspace.data("of-1/film.mp4") == workspace.data("of-2/film.mp4"))
        #expect(try workspace.data("of-1/film.mp4") == workspace.data("of-3/film.mp4"))
        try expectEqual("whole/film.mp4", "of-1/film.mp4")
        #expect(try batch("chain.json", "of-1", "--parts", "2").error.contains("0 made, 1 there already"))
        // Another length gives other bytes in general, so it is another output.
        #expect(try batch("chain.json", "of-1", "--parts", "3", "--verbose").error.contains("the chain had changed"))
        // What is shorter than two parts is made as a whole.
        #expect(try batch("chain.json", "short", "--parts", "5").status == 0)
        #expect(try workspace.data("short/film.mp4") == workspace.data("whole/film.mp4"))
    }

    /// Stages with a past or a future, at a variable rate too.
    @Test(
        .needs(.ffmpeg), .needs(.ffprobe),
        arguments: [
            #"{ "use": "replicate", "copies": 2, "each": [ { }, { "delay": 40, "scale": 0.5 } ] },"#,
            #"{ "use": "rate", "rate": 10 },"#, #"{ "use": "rate", "rate": 50 },"#,
            #"{ "use": "text", "text": "{pts}" },"#,
        ], [false, true]) func stagesHaveTheirPast(stage: String, isVariable: Bool) throws {
        try makeFilm(more: isVariable ? ["-vf", "select='not(between(mod(n,40),5,25))'", "-fps_mode", "vfr"] : [])
        try write("chain.json", stage)
        let whole = try batch("chain.json", "whole")
        let parts = try batch("chain.json", "parts", "--parts", "2")
        try #require(whole.status == 0, "\(whole.error)")
        if isVariable, parts.status == 2 {
            // Says so, where the rate that comes in is not known.
            #expect(stage.contains("rate") && parts.error.contains("the rate that comes in is not known"), "\(parts.error)")
            return
        }
        #expect(parts.status == 0, "\(parts.error)")
        try expectEqual("whole/film.mp4", "parts/film.mp4")
    }

    /// A face at every joint: no picture there shows it where the whole run does not.
    @Test(
        .needs(.ffmpeg), .needs(.ffprobe),
        arguments: [
            #"{ "use": "face-effect", "effect": "box", "privacy": true },"#,
            #"{ "use": "face-effect", "effect": "box", "privacy": true, "lookAhead": 0 },"#,
            #"{ "use": "face-effect", "effect": "pixelate" },"#,
        ]) func facesAreCoveredAtJoints(stage: String) throws {
        try makeFilm(seconds: 8, showsFace: true)
        try write("chain.json", stage)
        let whole = try batch("chain.json", "whole")
        try #require(whole.status == 0, "\(whole.error)")
        let parts = try batch("chain.json", "parts", "--parts", "1")
        #expect(parts.status == 0, "\(parts.error)")
        func lines(_ a: String, _ b: String) throws -> [Double] {
            let outcome = try Tool.ffmpeg.run([
                "-nostdin", "-v", "error", "-i", workspace.path(a), "-i", workspace.path(b), "-lavfi",
                "psnr=stats_file=-", "-f", "null", "-",
            ])
            return outcome.output.split(separator: " ").filter { $0.hasPrefix("psnr_avg:") }
                .map { Double($0.dropFirst(9)) ?? .infinity }
        }
        let (covered, plain) = (try lines("whole/film.mp4", "parts/film.mp4"), try lines("whole/film.mp4", "film.mp4"))
        #expect(covered.count == 200 && plain.count == 200)
        for (index, distance) in covered.enumerated() {
            // An uncovered face would be as far from the whole run as the film is.
            #expect(distance > plain[index] + 3, "frame \(index): \(distance) dB, the film \(plain[index]) dB")
        }
    }

    @Test(.needs(.ffmpeg)) func goesOnAfterKills() throws {
        try makeFilm()
        try write("chain.json", #"{ "use": "text", "text": "{pts}" },"#)
        #expect(try batch("chain.json", "straight", "--parts", "1").status == 0)
        for milliseconds in [60, 150, 250, 400, 550] {
            let running = try framehost.start(
                ["batch", "chain.json", "film.mp4", "--out", "out", "--parts", "1", "--quiet"],
                folder: workspace.folder.path)
            usleep(UInt32(milliseconds) * 1000)
            running.send(SIGKILL)
            _ = try running.finish()
        }
        let outcome = try batch("chain.json", "out", "--parts", "1")
        #expect(outcome.status == 0, "\(outcome.error)")
        #expect(try workspace.data("out/film.mp4") == workspace.data("straight/film.mp4"))
        #expect(workspace.names(below: "out/.framehost").allSatisfy { $0.hasSuffix("/done") })
    }

    /// Two batches, and tasks of a cluster that are more than there are files.
    @Test(.needs(.ffmpeg), arguments: [[[], []], [["--shard", "1/3"], ["--shard", "2/3"], ["--shard", "3/3"]]])
    func severalBatchesMakeOne(shards: [[String]]) throws {
        try makeFilm()
        try write("chain.json", "")
        #expect(try batch("chain.json", "straight", "--parts", "1").status == 0)
        let running = try shards.map { shard in
            try framehost.start(
                ["batch", "chain.json", "film.mp4", "--out", "out", "--parts", "1", "--jobs", "1"] + shard,
                folder: workspace.folder.path)
        }
        for batch in running {
            let outcome = try batch.finish()
            #expect(outcome.status == 0, "\(outcome.error)")
        }
        #expect(try workspace.data("out/film.mp4") == workspace.data("straight/film.mp4"))
    }

    @Test(
        .needs(.ffmpeg),
        arguments: [
            (#"{ "id": "glow", "use": "frei0r", "effect": "glow" },"#, "'glow' (frei0r) may remember all earlier pictures"),
            (#"{ "id": "no", "use": "text", "text": "{frame}" },"#, "'no' writes the numbers of frames"),
            (
                #"{ "id": "face", "use": "face-effect", "facesFile": "${output}.faces.jsonl" },"#,
                "'face' would write '"
            ),
        ]) func refusesWhatCannotBeDivided(stage: String, sentence: String) throws {
        try makeFilm(seconds: 2)
        try write("chain.json", stage)
        let outcome = try batch("chain.json", "out", "--parts", "1")
        #expect(outcome.status == 2, "\(outcome.error)")
        #expect(
            outcome.error.contains("a part of a file cannot be made by this chain: ") && outcome.error.contains(sentence),
            "\(outcome.error)")
        #expect(try batch("chain.json", "out").status == 0)
    }

    @Test(.needs(.ffmpeg)) func checkSaysWhatPartsCost() throws {
        try makeFilm(seconds: 2)
        try write("chain.json", #"{ "use": "rate", "rate": 5 },"#)
        func check(_ parts: String, _ more: String...) throws -> Outcome {
            try framehost.run(
                ["check", "chain.json", "--parts", parts] + more,
                environment: ["input": workspace.path("film.mp4"), "output": workspace.path("o.mp4")],
                folder: workspace.folder.path)
        }
        let outcome = try check("10")
        #expect(outcome.status == 0, "\(outcome.error)")
        #expect(
            outcome.output.contains("parts of 10 s: 7 frames or 0.2 s before each and 6 frames behind it are worked on twice: 5.2 % more work"),
            "\(outcome.output)")
        let json = try JSON(parsing: check("10", "--json").output)
        #expect(json["parts"]["warmUpFrames"].int == 7 && json["parts"]["lookAheadFrames"].int == 6)
        #expect(try check("0").status == 2)
    }
}
