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
                "-loop", "1", "-framerate", "25", "-i", "\(Repository.root.path)/examples/media/astronaut_portrait.png",
                "-f",
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
        try framehost.run(
            ["batch", chain, "film.mp4", "--out", out] + more,
            environment: FaceEffectTests.models.map { ["FRAMEHOST_DATA": $0.path] } ?? [:],
            folder: workspace.folder.path)
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
            let outcome = try batch(
                "chain.json", "of-\(jobs)", "--parts", "2", "--jobs", jobs, "--report", "report.json")
            #expect(outcome.status == 0, "\(outcome.error)")
            #expect(outcome.error.contains("1 made") && outcome.error.contains("225 frames"), "\(outcome.error)")
            #expect(outcome.error.contains("\(jobs) at once: "), "\(outcome.error)")
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
        ], [false, true]) func stagesHaveTheirPast(stage: String, isVariable: Bool) throws
    {
        try makeFilm(more: isVariable ? ["-vf", "select='not(between(mod(n,40),5,25))'", "-fps_mode", "vfr"] : [])
        try write("chain.json", stage)
        let whole = try batch("chain.json", "whole")
        let parts = try batch("chain.json", "parts", "--parts", "2")
        try #require(whole.status == 0, "\(whole.error)")
        if isVariable, parts.status == 2 {
            // Says so, where the rate that comes in is not known.
            #expect(
                stage.contains("rate") && parts.error.contains("does not know the frame rate of its input"),
                "\(parts.error)")
            return
        }
        #expect(parts.status == 0, "\(parts.error)")
        guard isVariable else { return try expectEqual("whole/film.mp4", "parts/film.mp4") }
        // Keyframes are counted in frames, of which parts have different numbers: so they lie elsewhere in the whole run.
        func times(_ path: String) throws -> [Int] {
            try RecordedFile(workspace.path(path)).packets.map(\.pts).sorted()
        }
        #expect(try times("parts/film.mp4") == times("whole/film.mp4"))
        let distances = try distances("whole/film.mp4", "parts/film.mp4")
        #expect(
            distances.count == (try times("whole/film.mp4")).count && distances.allSatisfy { $0 > 34 },
            "\(distances.min() ?? 0)")
    }

    /// How far each picture is from that of another film, in dB.
    private func distances(_ a: String, _ b: String) throws -> [Double] {
        let outcome = try Tool.ffmpeg.run([
            "-nostdin", "-v", "error", "-i", workspace.path(a), "-i", workspace.path(b), "-lavfi",
            "psnr=stats_file=-", "-f", "null", "-",
        ])
        return outcome.output.split(separator: " ").filter { $0.hasPrefix("psnr_avg:") }
            .map { Double($0.dropFirst(9)) ?? .infinity }
    }

    /// A face at every joint: parts differ from the film as much as the whole run does, so they cover as much. What follows
    /// a face for pleasure may lose it elsewhere than the whole run, but not because of a joint.
    @Test(
        .needs(.ffmpeg), .needs(.ffprobe),
        .enabled(if: FaceEffectTests.models != nil || Tool.isCI, FaceEffectTests.noModels),
        arguments: [
            (#"{ "use": "face-effect", "effect": "replace", "privacy": true },"#, true),
            (#"{ "use": "face-effect", "effect": "pixelate", "privacy": true, "lookAheadSeconds": 0 },"#, true),
            (#"{ "use": "face-effect", "effect": "sticker", "image": "glasses.png" },"#, false),
        ]) func facesAreCoveredAtJoints(stage: String, isEverywhere: Bool) throws
    {
        try makeFilm(seconds: 4, showsFace: true)
        try FileManager.default.copyItem(
            atPath: "\(Repository.root.path)/examples/media/glasses.png", toPath: workspace.path("glasses.png"))
        try write("chain.json", stage)
        let whole = try batch("chain.json", "whole")
        try #require(whole.status == 0, "\(whole.error)")
        let parts = try batch("chain.json", "parts", "--parts", "1")
        #expect(parts.status == 0, "\(parts.error)")
        let (ofWhole, ofParts) = (
            try distances("whole/film.mp4", "film.mp4"), try distances("parts/film.mp4", "film.mp4")
        )
        #expect(ofWhole.count == 100 && ofParts.count == 100)
        // In most pictures a face is found, or the test would say nothing.
        #expect(ofWhole.filter { $0 < 35 }.count > 60, "\(ofWhole)")
        for (index, distance) in ofParts.enumerated() where isEverywhere || (index + 1) % 25 < 2 {
            #expect(distance < ofWhole[index] + 3, "frame \(index): \(distance) dB, the whole run \(ofWhole[index]) dB")
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
        let left = workspace.names(below: "out/.framehost")
        #expect(left.allSatisfy { $0.hasSuffix("/done") }, "\(left)")
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
            (
                #"{ "id": "glow", "use": "frei0r", "effect": "glow" },"#,
                "'glow' (frei0r) may remember earlier pictures, and effects do not say whether they do"
            ),
            (#"{ "id": "no", "use": "text", "text": "{frame}" },"#, "'no' writes the numbers of frames"),
            (
                #"{ "id": "face", "use": "face-effect", "facesFile": "${output}.faces.jsonl" },"#,
                "'face' would write '"
            ),
        ]) func refusesWhatCannotBeDivided(stage: String, sentence: String) throws
    {
        try makeFilm(seconds: 2)
        try write("chain.json", stage)
        let outcome = try batch("chain.json", "out", "--parts", "1")
        #expect(outcome.status == 2, "\(outcome.error)")
        #expect(
            outcome.error.contains("a part of a file cannot be made by this chain: ")
                && outcome.error.contains(sentence),
            "\(outcome.error)")
        #expect(try batch("chain.json", "out").status == 0)
    }

    /// Matroska lists keyframes alone: a time that jumps would be seen by one part and not by the next.
    @Test(.needs(.ffmpeg), .needs(.ffprobe)) func makesAFileWithoutAnIndexAsAWhole() throws {
        try makeFilm(seconds: 5)
        let copied = try Tool.ffmpeg.run([
            "-nostdin", "-v", "error", "-i", workspace.path("film.mp4"), "-c", "copy", workspace.path("film.mkv"),
        ])
        try #require(copied.status == 0, "\(copied.error)")
        try write("chain.json", "")
        let outcome = try framehost.run(
            ["batch", "chain.json", "film.mkv", "--out", "out", "--parts", "1"], folder: workspace.folder.path)
        #expect(outcome.status == 0, "\(outcome.error)")
        #expect(
            outcome.error.contains(
                "film.mkv: is processed as a whole, because only MP4 and MOV files with an index can be divided."),
            "\(outcome.error)")
        #expect(try RecordedFile(workspace.path("out/film.mp4")).packets.count == 125)
    }

    /// What is read ends before the last part, or in it.
    @Test(.needs(.ffmpeg)) func saysThatAFilmEndsEarly() throws {
        try makeFilm(more: ["-movflags", "+faststart"])
        let whole = try workspace.data("film.mp4")
        try workspace.write("film.mp4", whole.prefix(whole.count * 6 / 10))
        try write("chain.json", "")
        let outcome = try batch("chain.json", "out", "--parts", "2")
        #expect(outcome.status == 1 && outcome.error.contains("film.mp4' ends early"), "\(outcome.error)")
        #expect(outcome.error.contains("film.mp4: set aside: part "), "\(outcome.error)")
        let kept = try batch("chain.json", "out", "--parts", "2", "--accept-damaged")
        #expect(kept.status == 1 && kept.error.contains("film.mp4: made of a damaged input: part "), "\(kept.error)")
    }

    /// A recorder that every part would write to.
    @Test(.needs(.ffmpeg)) func refusesARecorderOfOneName() throws {
        try makeFilm(seconds: 3)
        try workspace.write(
            "chain.json",
            """
            { "stages": [ { "id": "clip", "use": "file-source", "path": "${input}" }, { "id": "h264", "use": "x264-encoder" },
                          { "use": "recorder", "path": "${output}" },
                          { "id": "same", "use": "recorder", "from": "h264", "path": "same.mp4" } ] }
            """)
        let outcome = try batch("chain.json", "out", "--parts", "1")
        #expect(outcome.status == 2, "\(outcome.error)")
        #expect(
            outcome.error.contains("stages[3].path: all parts would write 'same.mp4'. Begin the name with ${output}."),
            "\(outcome.error)")
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
            outcome.output.contains(
                "parts of 10 s: the worker of each part also processes 7 frames or 0.2 s, whichever is longer, before it and 6 frames after it: 5.2 % more work"
            ),
            "\(outcome.output)")
        let json = try JSON(parsing: check("10", "--json").output)
        #expect(json["parts"]["warmUpFrames"].int == 7 && json["parts"]["lookAheadFrames"].int == 6)
        #expect(try check("0").status == 2)
    }
}
