// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import Testing

/// What a file says about itself: kept, or said to be lost. docs/design/040-tags.md.
@Suite struct TagsTests {
    let workspace: Workspace

    init() throws { workspace = try Workspace() }

    // MARK: Inputs

    private static let chapters = """
        ;FFMETADATA1
        [CHAPTER]
        TIMEBASE=1/1000
        START=0
        END=400
        title=One
        [CHAPTER]
        TIMEBASE=1/1000
        START=400
        END=1000
        title=Two ü
        """

    private func ffmpeg(_ arguments: [String]) throws {
        let outcome = try Tool.ffmpeg.run(
            ["-nostdin", "-v", "error", "-y"] + arguments, folder: workspace.folder.path)
        guard outcome.status == 0 else { throw TestFault("ffmpeg \(arguments): \(outcome.error)") }
    }

    /// A second of pictures and sounds in two tracks, with subtitles: what all inputs are made of.
    private func makeBase() throws {
        try workspace.write("chapters.txt", Self.chapters)
        try workspace.write("words.srt", "1\n00:00:00,100 --> 00:00:00,800\nHello\n")
        try ffmpeg([
            "-f", "lavfi", "-i", "testsrc=s=160x120:r=25:d=1", "-f", "lavfi", "-i", "sine=d=1", "-f", "lavfi", "-i",
            "sine=330:d=1", "-map", "0", "-map", "1", "-map", "2", "-c:v", "libx264", "-preset", "ultrafast",
            "-pix_fmt",
            "yuv420p", "-c:a", "aac", "-fflags", "+bitexact", "base.mkv",
        ])
        try ffmpeg(["-f", "lavfi", "-i", "color=red:s=64x64", "-frames:v", "1", "cover.png"])
    }

    /// An input: what `ffmpeg -i base.mkv` is asked for.
    struct Input: CustomStringConvertible {
        var name: String
        var container: String
        var arguments: [String]
        /// Further inputs before the arguments.
        var inputs: [String] = []
        var output: String

        var description: String { "\(name) in \(container), recorded to \(output)" }
    }

    private static let date = ["-metadata", "creation_time=2019-07-14T09:10:11Z"]
    private static let film =
        date + [
            "-metadata", "title=Anna", "-metadata", "comment=Holiday", "-metadata", "artist=Berta",
        ]
    private static let phone =
        date + [
            "-metadata", "com.apple.quicktime.make=Apple", "-metadata", "com.apple.quicktime.model=iPhone",
            "-metadata", "location=+48.1371+011.5754/", "-movflags", "use_metadata_tags",
        ]
    private static let names = [
        "-metadata:s:v:0", "language=eng", "-metadata:s:a:0", "language=deu", "-metadata:s:a:0", "title=Ton",
        "-metadata:s:a:1", "language=fra", "-metadata:s:a:1", "title=Kommentar",
    ]

    /// 66 of them: what is said, in what it is said, and in what it is recorded.
    static let all: [Input] = {
        let mapped = ["-map", "0:v", "-map", "0:a", "-c", "copy"]
        let said: [(String, inputs: [String], [String])] = [
            ("a date", [], mapped + date),
            ("a film's tags", [], mapped + film),
            ("a phone's tags", [], mapped + phone),
            ("a place", [], mapped + ["-metadata", "location=+48.1371+011.5754/"]),
            ("chapters", ["-i", "chapters.txt"], mapped + film + ["-map_chapters", "1"]),
            ("names and languages", [], mapped + names),
            (
                "roles", [],
                mapped + [
                    "-disposition:v:0", "default", "-disposition:a:0", "default", "-disposition:a:1",
                    "comment+hearing_impaired",
                ]
            ),
            ("no default sound", [], mapped + ["-disposition:a:0", "0", "-disposition:a:1", "default"]),
            (
                "odd names", [],
                mapped + ["-metadata", "mood=glad", "-metadata", "SCENE=12", "-metadata", "description=a=b;c\\nd"]
            ),
            ("subtitles", ["-i", "words.srt"], mapped + film + ["-map", "1"]),
            ("a cover", ["-i", "cover.png"], mapped + film + ["-map", "1", "-disposition:v:1", "attached_pic"]),
        ]
        let containers = [
            ("mp4", "mp4"), ("mp4", "mkv"), ("mov", "mov"), ("mov", "mp4"), ("mkv", "mkv"), ("mkv", "mp4"),
        ]
        return containers.flatMap { container, output in
            said.map { name, inputs, arguments in
                var arguments = arguments
                if name == "subtitles" { arguments += ["-c:s", container == "mkv" ? "srt" : "mov_text"] }
                if name == "a cover", container == "mkv" {
                    // Matroska has pictures as attachments.
                    arguments = mapped + film + ["-attach", "cover.png", "-metadata:s:t", "mimetype=image/png"]
                }
                return Input(
                    name: name, container: container, arguments: arguments,
                    inputs: name == "a cover" && container == "mkv" ? [] : inputs, output: output)
            }
        }
    }()

    // MARK: What is said of a file

    /// What differs in every copy.
    private static let exempt: Set = [
        "encoder", "handler_name", "major_brand", "minor_version", "compatible_brands", "vendor_id", "duration",
    ]

    /// Everything that ffprobe says of a file beside codecs, rates and sizes, each with a name under which a message
    /// speaks of it: `tag title` → `Anna`.
    private func facts(_ path: String) throws -> [String: (value: String, names: [String])] {
        let outcome = try Tool.ffprobe.run([
            "-v", "error", "-show_format", "-show_streams", "-show_chapters", "-of", "json", path,
        ])
        let probe = try JSONSerialization.jsonObject(with: Data(outcome.output.utf8)) as? [String: Any] ?? [:]
        var facts: [String: (value: String, names: [String])] = [:]
        func add(_ tags: Any?, _ place: String, _ names: [String] = []) {
            for (key, value) in tags as? [String: String] ?? [:] {
                let key = key.lowercased()
                // A place is said once more with its language.
                let isTwice = key.hasPrefix("location-")
                // A track's date is that of its file.
                let isFile = !place.isEmpty && key == "creation_time"
                guard !Self.exempt.contains(key), !isTwice, !isFile, value != "und" else { continue }
                var value = key == "creation_time" ? String(value.prefix(19)) : value
                // ISO 639-2 has two codes for some languages, and QuickTime one of them.
                if key == "language" { value = ["ger": "deu", "fre": "fra"][value] ?? value }
                facts["\(place)tag \(key)"] = (value, ["'\(key)'"] + names)
            }
        }
        let format = probe["format"] as? [String: Any] ?? [:]
        add(format["tags"], "")
        var counts: [String: Int] = [:]
        let chapters = probe["chapters"] as? [[String: Any]] ?? []
        for stream in probe["streams"] as? [[String: Any]] ?? [] {
            let disposition = stream["disposition"] as? [String: Int] ?? [:]
            var kind = stream["codec_type"] as? String ?? "?"
            if disposition["attached_pic"] == 1 { kind = "cover picture" }
            // The titles of chapters, which are compared as such.
            if kind == "data", !chapters.isEmpty { continue }
            counts[kind, default: 0] += 1
            let place = "\(kind) \(counts[kind]!) "
            let lost = ["\(kind) track \(counts[kind]!)"]
            facts[place + "track"] = ("there", lost)
            add(stream["tags"], place, lost)
            // Readers of MP4 show the name of a track as its handler's.
            let tags = stream["tags"] as? [String: String] ?? [:]
            if tags["title"] == nil, let name = tags["handler_name"] ?? tags["HANDLER_NAME"], !name.hasSuffix("Handler")
            {
                facts[place + "tag title"] = (name, ["'title'"] + lost)
            }
            for (role, isSet) in disposition where isSet == 1 { facts[place + role] = ("set", ["'\(role)'"] + lost) }
            for data in stream["side_data_list"] as? [[String: Any]] ?? [] {
                let name = data["side_data_type"] as? String ?? "?"
                facts[place + name] = ("there", ["'\(name)'"] + lost)
            }
        }
        for (index, chapter) in chapters.enumerated() {
            let begin = Double(chapter["start_time"] as? String ?? "") ?? -1
            let title = (chapter["tags"] as? [String: String])?["title"] ?? ""
            facts["chapter \(index + 1)"] = ("\(title) at \((begin * 100).rounded() / 100)", ["chapter"])
        }
        return facts
    }

    /// What a run lost or changed without a word.
    private func unsaid(_ input: String, _ output: String, messages: String) throws -> [String] {
        let (before, after) = (try facts(input), try facts(output))
        var unsaid: [String] = []
        for (name, fact) in before where after[name]?.value != fact.value {
            guard !fact.names.contains(where: { messages.contains($0) }) else { continue }
            unsaid.append("\(name): '\(fact.value)' became '\(after[name]?.value ?? "nothing")'")
        }
        for (name, fact) in after where before[name] == nil {
            // A track of an MP4 file that no other of its kind goes before is the default one.
            if name.hasSuffix(" default") { continue }
            // MP4 says both in one word.
            if name.hasSuffix(" captions"), before[name.replacing("captions", with: "hearing_impaired")] != nil {
                continue
            }
            unsaid.append("\(name): '\(fact.value)' was not there")
        }
        return unsaid.sorted()
    }

    private func record(
        _ input: String, to output: String, decode: Bool, source: String = "", between: String = "",
        recorder: String = #", "audio": "copy""#, command: String = "run"
    ) throws -> Outcome {
        let encoder = decode ? #"{ "use": "x264-encoder", "preset": "ultrafast" },"# : ""
        try workspace.write(
            "chain.json",
            """
            { "stages": [ { "id": "clip", "use": "file-source", "path": "\(input)", "decode": \(decode)\(source) },
                          \(between) \(encoder)
                          { "id": "file", "use": "recorder", "path": "\(output)", "overwrite": true\(recorder) } ] }
            """)
        return try Program.framehost.run(
            [command, "chain.json"],
            environment: FaceEffectTests.models.map { ["FRAMEHOST_DATA": $0.path] } ?? [:],
            folder: workspace.folder.path)
    }

    // MARK: Tests

    @Test(.needs(.ffmpeg), .needs(.ffprobe)) func keepsWhatFilesSayOrSaysWhatIsLost() throws {
        try makeBase()
        #expect(Self.all.count >= 60)
        for input in Self.all {
            let (clip, output) = ("clip.\(input.container)", "out.\(input.output)")
            try ffmpeg(["-i", "base.mkv"] + input.inputs + input.arguments + [clip])
            for decode in [true, false] {
                let outcome = try record(clip, to: output, decode: decode)
                #expect(outcome.status == 0, "\(input): \(outcome.error)")
                let unsaid = try unsaid(
                    workspace.path(clip), workspace.path(output), messages: outcome.error + outcome.output)
                #expect(unsaid.isEmpty, "\(input), decode \(decode): \(unsaid)\n\(outcome.error)")
            }
        }
    }

    /// The test above would pass if everything were lost and said.
    @Test(.needs(.ffmpeg), .needs(.ffprobe), arguments: [true, false])
    func keepsDatePlaceTitleCommentAndChapters(decode: Bool) throws {
        try makeBase()
        try ffmpeg(
            ["-i", "base.mkv", "-i", "chapters.txt", "-map", "0:v", "-map", "0:a", "-c", "copy", "-map_chapters", "1"]
                + Self.film + ["-metadata", "location=+48.1371+011.5754/"] + Self.names + ["clip.mkv"])
        for output in ["out.mp4", "out.mov", "out.mkv"] {
            for finalize in ["auto", "never"] {
                let outcome = try record(
                    "clip.mkv", to: output, decode: decode, recorder: #", "audio": "copy", "finalize": "\#(finalize)""#)
                let (before, after) = (try facts(workspace.path("clip.mkv")), try facts(workspace.path(output)))
                for name in [
                    "tag creation_time", "tag location", "tag title", "tag comment", "tag artist", "chapter 1",
                    "chapter 2", "audio 1 tag language", "audio 2 tag language", "audio 1 tag title",
                    "audio 2 tag title",
                ] {
                    #expect(after[name]?.value == before[name]?.value, "\(output), \(finalize): \(name)")
                    #expect(before[name] != nil, "\(name)")
                }
                #expect(!outcome.error.contains("cannot store"), "\(outcome.error)")
            }
        }
    }

    @Test(.needs(.ffmpeg), .needs(.ffprobe)) func keepsAPhonesTags() throws {
        try makeBase()
        try ffmpeg(["-i", "base.mkv", "-map", "0:v", "-map", "0:a", "-c", "copy"] + Self.phone + ["clip.mov"])
        for output in ["out.mp4", "out.mov", "out.mkv"] {
            let outcome = try record("clip.mov", to: output, decode: true)
            let after = try facts(workspace.path(output))
            #expect(after["tag com.apple.quicktime.model"]?.value == "iPhone", "\(output): \(outcome.error)")
            #expect(after["tag location"]?.value == "+48.1371+011.5754/", "\(output)")
            #expect(after["tag creation_time"]?.value == "2019-07-14T09:10:11", "\(output)")
            #expect(after["tag major_brand"] == nil)
        }
    }

    @Test(.needs(.ffmpeg), .needs(.ffprobe)) func checkSaysWhatTheContainerCannotStore() throws {
        try makeBase()
        try ffmpeg([
            "-i", "base.mkv", "-map", "0:v", "-map", "0:a", "-c", "copy", "-disposition:a:1", "hearing_impaired",
            "clip.mkv",
        ])
        let checked = try record("clip.mkv", to: "out.mov", decode: true, command: "check")
        #expect(
            checked.output.contains(
                "file: a MOV file cannot store the role 'hearing_impaired' of sound 2 of 'clip.mkv'. Record to .mkv to keep them"
            ), "\(checked.output)")
        let kept = try record("clip.mkv", to: "out.mkv", decode: true, command: "check")
        #expect(!kept.output.contains("cannot store"), "\(kept.output)")
    }

    @Test(.needs(.ffmpeg), .needs(.ffprobe)) func leavesTagsOutWhenAsked() throws {
        try makeBase()
        try ffmpeg(
            ["-i", "base.mkv", "-i", "chapters.txt", "-map", "0:v", "-map", "0:a", "-c", "copy", "-map_chapters", "1"]
                + Self.film + ["clip.mp4"])
        for output in ["out.mp4", "out.mkv"] {
            let outcome = try record("clip.mp4", to: output, decode: true, recorder: #", "tags": "none""#)
            #expect(outcome.status == 0, "\(outcome.error)")
            let after = try facts(workspace.path(output))
            #expect(after["tag title"] == nil && after["chapter 1"] == nil && after["tag creation_time"] == nil)
            #expect(!after.keys.contains { $0.hasSuffix(" language") && after[$0]?.value != "und" }, "\(after)")
        }
    }

    /// A title can name whom the pictures hide.
    @Test(.needs(.ffmpeg), .needs(.ffprobe)) func tellsNothingBehindPrivacyUnasked() throws {
        try makeBase()
        try ffmpeg(
            [
                "-i", "base.mkv", "-i", "chapters.txt", "-i", "cover.png", "-map", "0:v", "-map", "0:a", "-map", "2",
                "-c", "copy", "-map_chapters", "1", "-disposition:v:1", "attached_pic",
            ] + Self.film + Self.names + ["clip.mp4"])
        let guardian =
            #"{ "id": "face", "use": "face-effect", "effect": "pixelate", "privacy": true, "acceptMissedFaces": true },"#
        let note =
            "'face' hides what is in the pictures, so the tags 'creation_time', 'title', 'artist' and 'comment' of 'clip.mp4' and its chapters are left out, as they may tell it. Set \"tags\": \"keep\" to keep them"
        let checked = try record("clip.mp4", to: "out.mp4", decode: true, between: guardian, command: "check")
        #expect(checked.output.contains("file: " + note), "\(checked.output)\(checked.error)")
        for output in ["out.mp4", "out.mkv"] {
            let outcome = try record("clip.mp4", to: output, decode: true, between: guardian)
            #expect(outcome.status == 0, "\(outcome.error)")
            let bytes = try workspace.data(output)
            for word in ["Anna", "Holiday", "Berta", "Kommentar", "Two ü"] {
                #expect(bytes.range(of: Data(word.utf8)) == nil, "\(output): \(word)")
            }
            #expect(try facts(workspace.path(output))["tag creation_time"] == nil)
            let kept = try record(
                "clip.mp4", to: output, decode: true, between: guardian, recorder: #", "tags": "keep""#)
            #expect(kept.status == 0 && !kept.error.contains("hides"), "\(kept.error)")
            let after = try facts(workspace.path(output))
            #expect(after["tag title"]?.value == "Anna")
            #expect(after["chapter 2"] != nil)
            #expect(after["cover picture 1 track"] == nil)
        }
    }

    /// What the pictures hide, a recording of their sound would tell.
    @Test(.needs(.ffmpeg), .needs(.ffprobe)) func tellsNothingBesidePrivacyEither() throws {
        try makeBase()
        try ffmpeg(["-i", "base.mkv", "-map", "0:v", "-map", "0:a:0", "-c", "copy"] + Self.film + ["clip.mp4"])
        for isGuarded in [true, false] {
            try workspace.write(
                "chain.json",
                """
                { "stages": [
                  { "id": "clip", "use": "file-source", "path": "clip.mp4" },
                  { "id": "face", "use": "face-effect", "effect": "pixelate", "privacy": \(isGuarded), "acceptMissedFaces": \(isGuarded) },
                  { "use": "null-sink" },
                  { "id": "aac", "use": "audio-encoder", "from": "clip.audio" },
                  { "id": "sound", "use": "recorder", "path": "sound.m4a", "overwrite": true } ] }
                """)
            let outcome = try Program.framehost.run(["chain.json"], folder: workspace.folder.path)
            #expect(outcome.status == 0, "\(outcome.error)")
            #expect(outcome.error.contains("'face' hides what is in the pictures") == isGuarded, "\(outcome.error)")
            let told = try workspace.data("sound.m4a").range(of: Data("Anna".utf8)) != nil
            #expect(told != isGuarded)
        }
    }

    /// A guard that is put in while the chain runs: no recording that begins later has what was before it.
    @Test(.needs(.ffprobe)) func keepsNoPastFromBeforeAGuard() throws {
        try workspace.write(
            "chain.json",
            """
            { "spare": 40, "stages": [
              { "use": "test-source", "live": true, "size": "160x120", "rate": 25 },
              { "id": "face", "use": "face-effect", "effect": "pixelate", "draw": false },
              { "use": "x264-encoder", "preset": "ultrafast", "keyframeSeconds": 1 },
              { "id": "file", "use": "recorder", "path": "past.mkv", "record": "onCommand", "preEventSeconds": 5 } ] }
            """)
        let program = try Program.framehost.start(
            ["chain.json", "--events", "--commands"], folder: workspace.folder.path)
        try program.waitForFrames(60)
        let guarding = #""with": { "effect": "pixelate", "privacy": true, "acceptMissedFaces": true }"#
        let replaced = try program.sendPatiently(#"{ "stage": "face", "command": "replace", \#(guarding) }"#)
        #expect(replaced["ok"].bool == true, "\(replaced)")
        program.listen(seconds: 1.5)
        let started = try program.sendPatiently(#"{ "stage": "file", "command": "start" }"#)
        #expect(started["ok"].bool == true, "\(started)")
        program.listen(seconds: 1)
        program.send(SIGINT)
        let outcome = try program.finish()
        #expect(outcome.isDoneOrBusy, "\(outcome.error)")
        let events = try outcome.lines.map { try JSON(parsing: $0) }
        let begin = events.first { $0["event"].string == "recording-did-start" }?["startSeconds"].double
        // The answer came once the guard was there.
        let guarded = events.first { $0["event"].string == "command-answered" && $0["stage"].string == "face" }?["time"]
        let (from, since) = try (#require(begin), #require(guarded?.double))
        #expect(from > since - 0.5 && from < since + 1.6, "\(from - since)")
        #expect(outcome.error.contains("begin anew") || outcome.output.contains("begin anew"), "\(outcome.error)")
    }

    @Test(.needs(.ffmpeg), .needs(.ffprobe)) func movesChaptersWithTheRangeAndLeavesThemOutOfSegments() throws {
        try makeBase()
        try ffmpeg([
            "-i", "base.mkv", "-i", "chapters.txt", "-map", "0:v", "-map", "0:a", "-c", "copy", "-map_chapters", "1",
            "clip.mkv",
        ])
        let outcome = try record("clip.mkv", to: "out.mp4", decode: true, source: #", "start": 0.2, "duration": 0.6"#)
        #expect(outcome.status == 0, "\(outcome.error)")
        let after = try facts(workspace.path("out.mp4"))
        #expect(after["chapter 1"]?.value == "One at 0.0")
        #expect(after["chapter 2"]?.value == "Two ü at 0.2")
        let cut = try record(
            "clip.mkv", to: "part-{n}.mp4", decode: true, recorder: #", "segmentSeconds": 0.5"#)
        #expect(
            cut.error.contains("the chapters of 'clip.mkv' are not kept"), "\(cut.error)")
        #expect(try facts(workspace.path("part-1.mp4"))["chapter 1"] == nil)
    }

    /// A batch is what makes archives; its parts too.
    @Test(.needs(.ffmpeg), .needs(.ffprobe)) func keepsThemInBatchesAndParts() throws {
        try makeBase()
        try ffmpeg(
            [
                "-f", "lavfi", "-i", "testsrc=s=160x120:r=25:d=5", "-i", "chapters.txt", "-map", "0:v", "-c:v",
                "libx264",
                "-preset", "ultrafast", "-pix_fmt", "yuv420p", "-map_chapters", "1", "-disposition:v:0",
                "default+original",
            ] + Self.film + ["film.mp4"])
        let guardian = #"{ "use": "face-effect", "effect": "pixelate", "privacy": true, "acceptMissedFaces": true },"#
        for (name, between) in [("plain", ""), ("guarded", guardian)] {
            try workspace.write(
                "\(name).json",
                """
                { "stages": [ { "use": "file-source", "path": "${input}" }, \(between)
                              { "use": "x264-encoder", "preset": "ultrafast", "keyframeSeconds": 1 },
                              { "use": "recorder", "path": "${output}" } ] }
                """)
            for more in [[], ["--parts", "2"]] {
                let out = "\(name)-\(more.count)"
                let outcome = try Program.framehost.run(
                    ["batch", "\(name).json", "film.mp4", "--out", out] + more,
                    environment: FaceEffectTests.models.map { ["FRAMEHOST_DATA": $0.path] } ?? [:],
                    folder: workspace.folder.path)
                #expect(outcome.status == 0, "\(outcome.error)\(outcome.output)")
                let after = try facts(workspace.path("\(out)/film.mp4"))
                #expect(after["tag creation_time"]?.value == (between.isEmpty ? "2019-07-14T09:10:11" : nil), "\(out)")
                #expect(after["tag title"]?.value == (between.isEmpty ? "Anna" : nil), "\(out)")
                #expect((after["chapter 2"] != nil) == between.isEmpty, "\(out)")
            }
        }
    }

    @Test(.needs(.ffmpeg), .needs(.ffprobe)) func theReportOfABatchSaysWhatIsLost() throws {
        try makeBase()
        try ffmpeg([
            "-i", "base.mkv", "-map", "0:v", "-map", "0:a", "-c", "copy", "-disposition:a:1", "hearing_impaired",
            "clip.mkv",
        ])
        try workspace.write(
            "chain.json",
            """
            { "stages": [ { "use": "file-source", "path": "${input}", "decode": false },
                          { "id": "file", "use": "recorder", "path": "${output}", "audio": "copy" } ] }
            """)
        let outcome = try Program.framehost.run(
            [
                "batch", "chain.json", "clip.mkv", "--out", "done", "--ending", ".mov", "--report", "report.csv",
            ], folder: workspace.folder.path)
        #expect(outcome.status == 0, "\(outcome.error)")
        let report = try String(contentsOfFile: workspace.path("report.csv"), encoding: .utf8)
        let lost = "a MOV file cannot store the role 'hearing_impaired' of sound 2"
        #expect(report.components(separatedBy: lost).count == 2, "\(report)")
    }

    /// Closed captions (A53) in SEI, one construct beside each picture.
    @Test(.needs(.ffmpeg), .needs(.ffprobe)) func keepsCaptionsThroughTheEncoder() throws {
        try ffmpeg([
            "-f", "lavfi", "-i", "testsrc=s=160x120:r=25:d=1", "-c:v", "libx264", "-bf", "0", "-pix_fmt", "yuv420p",
            "-x264-params", "slices=1", "-f", "h264", "plain.h264",
        ])
        let bytes = [UInt8](try workspace.data("plain.h264"))
        var out: [UInt8] = []
        var begins: [Int] = []
        for index in bytes.indices.dropLast(3) where bytes[index...].starts(with: [0, 0, 1]) {
            begins.append(index + 3)
        }
        var picture: UInt8 = 0
        for (begin, next) in zip(begins, begins.dropFirst() + [bytes.count + 3]) {
            var unit = Array(bytes[begin..<next - 3])
            while unit.last == 0 { unit.removeLast() }
            if unit[0] & 31 == 1 || unit[0] & 31 == 5 {
                let message: [UInt8] = [
                    0xB5, 0, 0x31, 0x47, 0x41, 0x39, 0x34, 3, 0x41, 0xFF, 0xFC, 0x94, 0x20 | picture, 0xFF,
                ]
                out += [0, 0, 0, 1, 6, 4, UInt8(message.count)] + message + [0x80]
                picture = (picture + 1) % 16
            }
            out += [0, 0, 0, 1] + unit
        }
        try workspace.write("captions.h264", Data(out))
        try ffmpeg(["-r", "25", "-i", "captions.h264", "-c", "copy", "clip.mp4"])
        let before = try captions("clip.mp4")
        #expect(before.count == 25)
        for decode in [true, false] {
            let outcome = try record("clip.mp4", to: "out.mp4", decode: decode)
            #expect(outcome.status == 0, "\(outcome.error)")
            #expect(try captions("out.mp4") == before, "decode \(decode)")
        }
        // With stamps beside them.
        try workspace.write(
            "chain.json",
            """
            { "stages": [ { "use": "file-source", "path": "clip.mp4" },
                          { "use": "x264-encoder", "preset": "medium", "stamp": true },
                          { "use": "recorder", "path": "stamped.mp4" } ] }
            """)
        let stamped = try Program.framehost.run(["run", "chain.json"], folder: workspace.folder.path)
        #expect(stamped.status == 0, "\(stamped.error)")
        #expect(try captions("stamped.mp4") == before)
        // What is said names whom the pictures hide.
        try workspace.write(
            "guarded.json",
            """
            { "stages": [ { "use": "file-source", "path": "clip.mp4" },
                          { "use": "face-effect", "effect": "pixelate", "privacy": true, "acceptMissedFaces": true },
                          { "id": "h264", "use": "x264-encoder" },
                          { "use": "recorder", "path": "guarded.mp4" } ] }
            """)
        let guarded = try Program.framehost.run(["guarded.json"], folder: workspace.folder.path)
        #expect(guarded.status == 0 && guarded.error.contains("h264: The closed captions are left out"), "\(guarded)")
        #expect(try captions("guarded.mp4").allSatisfy(\.isEmpty))
    }

    /// What libavcodec finds as captions, in the order of showing: the constructs of each picture.
    private func captions(_ name: String) throws -> [[UInt8]] {
        try ffmpeg(["-i", name, "-c", "copy", "-f", "h264", "-bsf:v", "h264_mp4toannexb", "probe.h264"])
        let bytes = [UInt8](try workspace.data("probe.h264"))
        let mark: [UInt8] = [0xB5, 0, 0x31, 0x47, 0x41, 0x39, 0x34, 3]
        var found: [[UInt8]] = []
        for index in bytes.indices.dropLast(16) where bytes[index] == 0xB5 && bytes[index...].starts(with: mark) {
            let count = Int(bytes[index + 8] & 31)
            found.append(Array(bytes[index + 10..<index + 10 + 3 * count]))
        }
        // The order of decoding is another one with B-frames.
        return found.sorted { $0.lexicographicallyPrecedes($1) }
    }

    /// HDR10: the mastering display and the light levels.
    @Test(.needs(.ffmpeg), .needs(.ffprobe)) func keepsLightLevels() throws {
        try ffmpeg([
            "-f", "lavfi", "-i", "testsrc2=s=320x180:r=25:d=1", "-c:v", "libx265", "-pix_fmt", "yuv420p10le",
            "-x265-params",
            "log-level=0:hdr10=1:colorprim=bt2020:transfer=smpte2084:colormatrix=bt2020nc:master-display=G(13250,34500)B(7500,3000)R(34000,16000)WP(15635,16450)L(10000000,50):max-cll=1000,400",
            "-tag:v", "hvc1", "clip.mp4",
        ])
        let before = try light("clip.mp4", "-show_frames", "-read_intervals", "%+#1")
        #expect(before.contains("max_content=1000.0") && before.contains("red_x=0.68"), "\(before)")
        let passed = try record("clip.mp4", to: "passed.mp4", decode: false)
        #expect(passed.status == 0, "\(passed.error)")
        #expect(try light("passed.mp4", "-show_frames", "-read_intervals", "%+#1") == before)
        // x264-encoder makes 8 bits of them, for ordinary screens: such pictures have no light levels any more.
        for output in ["out.mp4", "out.mkv", "out.mov"] {
            let outcome = try record("clip.mp4", to: output, decode: true)
            #expect(outcome.status == 0, "\(outcome.error)")
            #expect(try light(output, "-show_streams").isEmpty, "\(output): \(outcome.error)")
            #expect(outcome.error.contains("(HDR10) are left out, because the pictures are no longer HDR"))
            // As they are, they keep them.
            let again = try record("passed.mp4", to: "again-\(output)", decode: false)
            #expect(again.status == 0, "\(again.error)")
            #expect(
                try light("again-\(output)", "-show_frames", "-read_intervals", "%+#1") == before, "again \(output)")
        }
    }

    /// What the first picture, or the head, says of its brightness.
    private func light(_ name: String, _ what: String...) throws -> [String] {
        let outcome = try Tool.ffprobe.run(
            ["-v", "error", "-select_streams", "v:0"] + what + [workspace.path(name)])
        let keys = ["red_", "green_", "blue_", "white_", "min_lum", "max_lum", "max_content", "max_average"]
        return outcome.output.split(separator: "\n").compactMap { line in
            let parts = line.split(separator: "=")
            guard parts.count == 2, keys.contains(where: { line.hasPrefix($0) }) else { return nil }
            let numbers = parts[1].split(separator: "/").compactMap { Double($0) }
            return "\(parts[0])=\(numbers.count == 2 ? numbers[0] / numbers[1] : numbers.first ?? -1)"
        }.sorted()
    }
}
