// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

/// Bad chain files: every fault with its place, status 2, nothing made.
@Suite struct BadChainTests {
    let workspace: Workspace
    let framehost: Program

    init() throws {
        workspace = try Workspace()
        framehost = try Program.framehost
    }

    /// The lines that `check` and `run` both print for a chain file, without the file's name in front.
    private func faults(_ chain: String, environment: [String: String] = [:]) throws -> [String] {
        try workspace.write("chain.json", chain)
        let before = workspace.names
        var results: [[String]] = []
        for command in ["check", "run"] {
            let outcome = try framehost.run(
                [command, "chain.json"], environment: environment, folder: workspace.folder.path)
            #expect(outcome.status == 2, "\(command): \(outcome.error)")
            #expect(outcome.output == "")
            results.append(outcome.errorLines)
        }
        #expect(results[0] == results[1])
        #expect(workspace.names == before, "something was made")
        // Nor does any of it depend on the words of a sentence.
        #expect(
            try places([:].merging(environment) { $1 })
                == places(["FRAMEHOST_SENTENCES": "x"].merging(environment) { $1 }))
        return results[0].map { $0.hasPrefix("chain.json:") ? String($0.dropFirst("chain.json:".count)) : $0 }
    }

    /// What programs read of the faults: all but the sentences, each once, in order.
    private func places(_ environment: [String: String]) throws -> [String] {
        let outcome = try framehost.run(
            ["check", "--json", "chain.json"], environment: environment, folder: workspace.folder.path)
        #expect(outcome.status == 2)
        let members = ["code", "place", "file", "line", "column", "path", "argument", "stage", "reason", "option"]
        let faults = try JSON(parsing: outcome.output)["faults"].list
        #expect(!faults.isEmpty)
        if environment["FRAMEHOST_SENTENCES"] != nil {
            #expect(faults.allSatisfy { ["x", "x."].contains($0["what"].string) }, "a sentence was not replaced")
        }
        var found: [String] = []
        for fault in faults {
            let text = members.map { "\($0)=\(fault[$0])" }.joined(separator: " ")
            if found.last != text { found.append(text) }
        }
        return found
    }

    // MARK: Devices

    /// What only the kernel says, nothing was run for.
    @Test(arguments: [("clip.mp4", "Inappropriate ioctl for device"), ("folder", "Is a directory")])
    func saysThatAPathIsNoVideoDevice(name: String, cause: String) throws {
        try workspace.write("clip.mp4", "nothing")
        try FileManager.default.createDirectory(atPath: workspace.path("folder"), withIntermediateDirectories: true)
        let path = workspace.path(name)
        let found = try faults(
            """
            { "stages": [ { "use": "test-source" },
              { "use": "v4l2-sink", "device": "\(path)" } ] }
            """)
        #expect(
            found.first?.hasPrefix("2:25: stages[1].device: '\(path)' is not a video device. Name one, such as")
                == true, "\(found)")
        #expect(found.last?.hasSuffix(cause) == true, "\(found)")
    }

    // MARK: The text

    @Test func pointsAtMalformedJSON() throws {
        let chain = """
            {
              "stages": [
                { "use": "test-source" "frames": 3 },
                { "use": "null-sink" }
              ]
            }
            """
        #expect(
            try faults(chain) == ["3:28: expected ',' or '}' after a value, found '\"'. Put a comma between members."])
        #expect(
            try faults(#"{ "stages": [ { "use": "test-source" } "#) == [
                "1:40: expected ',' or ']' after a value, found the end of the text. Close the list that starts at 1:13 with ']'."
            ])
        #expect(
            try faults("{ 'stages': [] }") == [
                "1:3: expected a key or '}', found \"'\". Use double quotes (\")."
            ])
        #expect(
            try faults(#"{ "stages": [] } x"#) == [
                "1:18: expected the end of the text, found 'x'. Remove the rest: a JSON text is only one value."
            ])
    }

    @Test func findsEveryDuplicateKey() throws {
        let chain = """
            {
              "stages": [
                { "use": "test-source", "frames": 3, "frames": 4 },
                { "use": "null-sink", "use": "recorder" }
              ]
            }
            """
        #expect(
            try faults(chain) == [
                "3:42: stages[0].frames: the key appears twice, first at 3:29. Keep one of the two.",
                "4:27: stages[1].use: the key appears twice, first at 4:7. Keep one of the two.",
            ])
    }

    @Test func saysWhatAFileHolds() throws {
        #expect(try faults("") == [#" is empty. Start with { "stages": [ … ] }."#])
        #expect(
            try faults("  // only a comment\n") == [#" contains only comments. Start with { "stages": [ … ] }."#])
        #expect(
            try faults("stages") == [#"1:1: expected a value, found 'stages'. Start with { "stages": [ … ] }."#])
        #expect(try faults("[]") == [#"1:1: expected an object, found a list. Start with { "stages": [ … ] }."#])
        #expect(
            try faults("{}") == [#"1:1: stages: 'stages' is missing. Add "stages": [ { "use": "test-source" }, … ]."#])
        #expect(
            try faults(#"{"stages":[]}"#) == [
                "1:11: stages: the list is empty. Write at least a source and a sink."
            ])
        #expect(
            try faults(#"{"stages":{}}"#) == [
                "1:11: stages: expected a list of stages, found an object. Write at least a source and a sink."
            ])
    }

    @Test func refusesWhatIsNotText() throws {
        try workspace.write("chain.json", Data("{\"stages\":[\"".utf8) + [0xff, 0xfe] + Data("\"]}".utf8))
        let outcome = try framehost.run(["check", "chain.json"], folder: workspace.folder.path)
        #expect(outcome.status == 2)
        #expect(outcome.errorLines == ["chain.json:1:13: byte 0xFF is not UTF-8. Write the text in UTF-8."])
    }

    @Test func refusesDeepNestingWithoutFalling() throws {
        let deep = String(repeating: "[", count: 1_000_000)
        #expect(
            try faults(#"{"stages": "# + deep) == [
                "1:75: the text has more than 64 levels of nested lists and objects. Nest them less deeply."
            ])
        #expect(try faults(String(repeating: #"{"a":"#, count: 100_000)).count == 1)
    }

    // MARK: Keys, plugins, options

    @Test func listsAllFaultsInTheOrderOfTheFile() throws {
        let chain = """
            {
              "stagez": 1,
              "stages": [
                { "use": "test-source", "framez": 3, "size": "10" },
                { "use": "null-sinc" },
                { "use": "quux-blorp", "from": "nobody" },
                { "use": "null-sink", "from": "test-sorce", "link": { "que": 1, "whenFull": "latst", "queue": -1 } },
                { "id": "a b", "use": 3 },
                { "type": "null-sink" },
                7,
                { "use": "null-sink", "onError": "explode", "id": "x", "from": [] },
                { "use": "null-sink", "id": "x" }
              ],
              "drainSeconds": -1,
              "buffers": { "test-sorce": 3, "test-source": 0 },
              "spare": -1
            }
            """
        let found = try faults(chain)
        let expected = [
            "2:3: stagez: no such key. Did you mean 'stages'?",
            "4:29: stages[0].framez: no such option. Did you mean 'frames'?",
            "4:50: stages[0].size: \"10\" must be a size in pixels. Write it as \"1280x720\", with each side from 1 to 16384.",
            "5:14: stages[1].use: no stage type 'null-sinc'. Did you mean 'null-sink'?",
            "6:14: stages[2].use: no stage type 'quux-blorp'. If a plugin of yours has 'quux-blorp', name the plugin's folder with --plugin-path. `framehost plugins` lists the types that were found.",
            "6:36: stages[2].from: no stage 'nobody'. Name one of the chain's stages: 'test-source', 'null-sinc', 'quux-blorp', 'null-sink', 'a b', 'stage5', 'stage6' or 'x'.",
            "7:35: stages[3].from: no stage 'test-sorce'. Did you mean 'test-source'?",
            "7:59: stages[3].link.que: no such key. A link has 'queue', 'whenFull', 'seconds', 'megabytes' and 'copy'.",
            "7:81: stages[3].link.whenFull: 'latst' must be one of 'wait', 'dropOldest', 'dropNewest', 'latest' or 'dropToKeyframe'. Did you mean 'latest'?",
            "7:99: stages[3].link.queue: -1 must be from 0 to 4096. Use 0 or more, or leave the key out.",
            "8:13: stages[4].id: 'a b' must consist of 1 to 64 letters (a to z, A to Z), digits, '-' or '_'. Choose another id.",
            "8:27: stages[4].use: expected a string, found a number. Name a stage type: `framehost plugins` lists them.",
            "9:5: stages[5]: 'use' is missing. Write 'use' instead of 'type'.",
            "10:5: stages[6]: expected an object, found a number. Write { \"use\": \"…\" }.",
            "11:38: stages[7].onError: 'explode' must be one of 'stop', 'continue', 'bypass' or 'restart'. Correct the value, or leave the key out.",
            "11:68: stages[7].from: expected a stage's id or a list of ids, found []. Write \"from\": \"id\".",
            "12:33: stages[8].id: 'x' is already the id of stages[7]. Give each stage an id of its own.",
            "14:19: drainSeconds: -1 must be from 0 to 3600 s. Use 0 or more, or leave the key out for 10.",
            "15:16: buffers[\"test-sorce\"]: no such stage. Did you mean 'test-source'?",
            "15:48: buffers[\"test-source\"]: 0 must be from 1 to 4096. Use 1 or more, or leave the key out.",
            "16:12: spare: -1 must be from 0 to 4096. Use 0 or more, or leave the key out.",
        ]
        for (index, text) in expected.enumerated() { #expect(index < found.count && found[index] == text) }
        #expect(found.count == expected.count)
    }

    @Test func findsTwoFaultsInEachStage() throws {
        let chain = """
            {
              "stages": [
                { "use": "test-source", "frames": "many", "rate": 0, "live": 1, "format": "i42", "color": "red" },
                { "use": "x264-encoder", "bitrateKbps": 20, "presett": "fast" },
                { "use": "recorder", "path": "never.mp4", "overwrit": true, "overwrite": "yes" }
              ]
            }
            """
        #expect(
            try faults(chain) == [
                "3:39: stages[0].frames: expected a whole number, found a string. Write only a number, without quotes and without a unit.",
                "3:55: stages[0].rate: 0 must be a frame rate of at least 0.001 frames per second. Use a number such as 30, or a fraction such as \"30000/1001\".",
                "3:66: stages[0].live: expected true or false, found 1.",
                "3:79: stages[0].format: 'i42' must be one of 'i420', 'nv12', 'yuyv', 'bgra', 'rgb24', 'gray8', 'i010' or 'p010'. Did you mean 'i420'?",
                "3:95: stages[0].color: \"red\" must be a colour in the form \"#rrggbb\". Write two hex digits each for red, green and blue, such as \"#20a0ff\".",
                "4:45: stages[1].bitrateKbps: 20 must be from 64 to 300000. Use 64 or more.",
                "4:49: stages[1].presett: no such option. Did you mean 'preset'?",
                "5:47: stages[2].overwrit: no such option. Did you mean 'overwrite'?",
                "5:78: stages[2].overwrite: expected true or false, found a string. Write true or false, without quotes.",
            ])
    }

    /// Those of its link too, as they are written.
    @Test func suggestsTheKeysThatEveryStageHas() throws {
        let chain = """
            {
              "stages": [
                { "id": "s", "use": "test-source" },
                { "id": "n", "use": "null-sink", "form": "s", "whenFul": "latest", "onEror": "stop" }
              ]
            }
            """
        #expect(
            try faults(chain) == [
                "4:38: stages[1].form: no such option. Did you mean 'from'?",
                #"4:51: stages[1].whenFul: no such option. Did you mean "link": { "whenFull": … }?"#,
                "4:72: stages[1].onEror: no such option. Did you mean 'onError'?",
            ])
    }

    @Test func saysWhatTheEnvironmentLacks() throws {
        let chain = """
            {
              "stages": [
                { "use": "test-source", "size": "${FH_SIZE}", "pattern": "${FH_PATTERN:-brs}", "rate": 0 },
                { "use": "null-sink", "dump": "${FH_DUMP}/$$x" }
              ]
            }
            """
        #expect(
            try faults(chain) == [
                "3:37: stages[0].size: the environment variable 'FH_SIZE' is not set. Set it, or write ${FH_SIZE:-default}.",
                "3:62: stages[0].pattern: 'brs' must be one of 'bars', 'gradient', 'balls', 'checker', 'solid', 'flash' or 'none'. Did you mean 'bars'?",
                "3:92: stages[0].rate: 0 must be a frame rate of at least 0.001 frames per second. Use a number such as 30, or a fraction such as \"30000/1001\".",
                "4:35: stages[1].dump: the environment variable 'FH_DUMP' is not set. Set it, or write ${FH_DUMP:-default}.",
            ])
    }

    @Test func saysWhatToWriteForWhatStandsInTheWrongPlace() throws {
        let service = try faults(#"{ "stages": [ { "use": "test-source" }, { "use": "control-server" } ] }"#)
        #expect(
            service == [
                #"1:50: stages[1].use: 'control-server' is a service, not a stage. Write "control": { … } beside "stages"."#
            ])
        let address = try faults(
            #"{ "control": "127.0.0.1:8090", "stages": [ { "use": "test-source" }, { "use": "null-sink" } ] }"#)
        #expect(
            address == [
                #"1:14: control: expected an object, found a string. Write { "listen": "127.0.0.1:8090" }."#
            ])
        let batch = try faults(
            #"{ "stages": [ { "use": "file-source", "path": "${input}" }, { "use": "null-sink" } ] }"#)
        #expect(
            batch == [
                "1:47: stages[0].path: the environment variable 'input' is not set. Set it, write ${input:-default}, or run the chain with `framehost batch`."
            ])
    }

    // MARK: Links

    @Test func refusesACircle() throws {
        let chain = """
            {
              "stages": [
                { "id": "s", "use": "test-source" },
                { "id": "a", "use": "fps-meter", "from": "b" },
                { "id": "b", "use": "fps-meter", "from": "a" },
                { "id": "n", "use": "null-sink", "from": "s" }
              ]
            }
            """
        #expect(
            try faults(chain) == [
                "4:46: stages[1].from: 'a' and 'b' feed each other in a circle. In 'from' of 'a' or 'b', name a stage outside the circle."
            ])
    }

    /// Only the stage that cannot take its input is at fault, not those behind it, and a source that names an input makes no circle.
    @Test func reportsACauseOnce() throws {
        let sound = """
            {
              "stages": [
                { "id": "tone", "use": "tone-source" },
                { "id": "a", "use": "fps-meter" },
                { "id": "b", "use": "fps-meter" },
                { "id": "n", "use": "null-sink" }
              ]
            }
            """
        #expect(
            try faults(sound) == [
                "4:5: stages[1]: 'a' takes raw video, but 'tone', the stage before it, gives sound. In 'from', name a stage that gives raw video."
            ])
        let source = """
            {
              "stages": [
                { "id": "s", "use": "test-source", "from": "a" },
                { "id": "a", "use": "fps-meter" },
                { "id": "n", "use": "null-sink" }
              ]
            }
            """
        #expect(
            try faults(source) == [
                "3:48: stages[0].from: 's' is a source (test-source) and takes no input. Leave 'from' out."
            ])
    }

    @Test func namesEachCircleAlone() throws {
        let chain = """
            {
              "stages": [
                { "id": "s", "use": "test-source" },
                { "id": "a", "use": "fps-meter", "from": "b" },
                { "id": "b", "use": "fps-meter", "from": "a" },
                { "id": "c", "use": "fps-meter", "from": "c" },
                { "id": "n", "use": "null-sink", "from": "s" }
              ]
            }
            """
        #expect(
            try faults(chain).map { $0.replacing(/\. In 'from'.*/, with: "") } == [
                "4:46: stages[1].from: 'a' and 'b' feed each other in a circle",
                "6:46: stages[3].from: 'c' takes its input from itself",
            ])
    }

    /// Of every step of the check: text, keys, options, media, circles.
    @Test func listsFaultsOfEveryKindTogether() throws {
        let chain = """
            {
              "stages": [
                { "id": "s", "use": "test-source", "framez": 1 },
                { "id": "enc", "use": "x264-encoder", "link": { "que": 1 } },
                { "id": "fps", "use": "fps-meter" },
                { "id": "a", "use": "fps-meter", "from": "b" },
                { "id": "b", "use": "fps-meter", "from": "a", "draw": 1 },
                { "id": "rec", "use": "recorder", "from": "enc", "path": "never.mp4" }
              ]
            }
            """
        let found = try faults(chain)
        #expect(
            found.map { $0.components(separatedBy: ": ")[...1].joined(separator: ": ") } == [
                "3:40: stages[0].framez", "4:53: stages[1].link.que", "5:5: stages[2]", "6:46: stages[3].from",
                "7:59: stages[4].draw",
            ], "\(found)")
    }

    @Test func refusesEncodedIntoRawAndRawIntoEncoded() throws {
        let chain = """
            {
              "stages": [
                { "id": "s", "use": "test-source" },
                { "id": "enc", "use": "x264-encoder" },
                { "id": "crop", "use": "crop-orient" },
                { "id": "rec", "use": "recorder", "from": "s", "path": "never.mp4" }
              ]
            }
            """
        let found = try faults(chain)
        #expect(found.count == 2)
        #expect(found.first?.hasPrefix("5:5: stages[2]: 'crop' takes raw video (") == true)
        #expect(
            found.first?.hasSuffix(
                "), but 'enc', the stage before it, gives H.264. Put 'crop' before 'enc', or name in 'from' a stage that gives raw video."
            ) == true)
        #expect(
            found.last
                == "6:47: stages[3].from: 'rec' takes H.264 or H.265 or MJPEG or AV1, but 's' gives raw video. Put an encoder between them, or name one in 'from'."
        )
    }

    @Test func refusesSourcesWithInputsAndSinksWithout() throws {
        #expect(
            try faults(#"{"stages":[{"use":"null-sink"}]}"#) == [
                "1:12: stages[0]: 'null-sink' (null-sink) has no input. Put a source before it, or name one with 'from'."
            ])
        #expect(
            try faults(
                #"{"stages":[{"id":"a","use":"test-source"},{"use":"test-source","from":"a"},{"use":"null-sink"}]}"#)
                == [
                    "1:71: stages[1].from: 'test-source' is a source (test-source) and takes no input. Leave 'from' out."
                ])
        #expect(
            try faults(#"{"stages":[{"use":"test-source"},{"id":"n","use":"null-sink"},{"id":"m","use":"null-sink"}]}"#)
                == [
                    #"1:63: stages[2]: 'm' takes its input from the stage before it, but 'n' (null-sink) has no output. Name the stage whose output 'm' takes: "from": "test-source"."#
                ])
        #expect(
            try faults(
                #"{"stages":[{"id":"a","use":"test-source"},{"id":"b","use":"test-source"},{"use":"null-sink","from":["a","b"]}]}"#
            )
                == ["1:100: stages[2].from: 'null-sink' (null-sink) takes one input, but 2 are named. Name one stage."])
        #expect(
            try faults(#"{"stages":[{"id":"a","use":"test-source"},{"use":"null-sink","from":"a.audio"}]}"#) == [
                "1:69: stages[1].from: 'a' has no output 'audio'. Write \"from\": \"a\"."
            ])
    }

    // MARK: Size

    private func manyStages(_ count: Int) -> String {
        let filters = (0..<count - 2).map { #"{ "id": "f\#($0)", "use": "fps-meter" }"# }
        let all =
            [#"{ "id": "s", "use": "test-source", "size": "16x16", "frames": 2 }"#] + filters + [
                #"{ "use": "null-sink" }"#
            ]
        return "{ \"stages\": [\n" + all.joined(separator: ",\n") + "\n] }"
    }

    @Test(arguments: [1001, 10_000]) func refusesTooManyStages(count: Int) throws {
        #expect(
            try faults(manyStages(count)) == [
                "1:13: stages: \(count) stages are more than the limit of 1000. Split the chain."
            ])
    }

    @Test func runsAThousandStages() throws {
        try workspace.write("chain.json", manyStages(1000))
        let outcome = try framehost.run(["chain.json"], folder: workspace.folder.path, timeout: 600)
        #expect(outcome.status == 0, "\(outcome.error.suffix(1000))")
    }

    @Test func listsTenThousandFaultsOfOneFileInTime() throws {
        let stages = (0..<990).map { _ in #"{ "use": "test-sourc", "a": 1, "b": 2, "c": 3 }"# }
        let found = try faults("{ \"stages\": [\n" + stages.joined(separator: ",\n") + "\n] }")
        #expect(found.count >= 990)
    }

    @Test func refusesAHundredMegabytesAtOnce() throws {
        let path = workspace.path("huge.json")
        try workspace.write("huge.json", "")
        let file = try FileHandle(forWritingTo: URL(fileURLWithPath: path))
        try file.write(contentsOf: Data(repeating: UInt8(ascii: " "), count: 100_000_000))
        try file.close()
        for command in ["check", "run"] {
            let outcome = try framehost.run([command, path])
            #expect(outcome.status == 2)
            #expect(
                outcome.errorLines == [
                    "\(path): 100000000 bytes exceed the limit of 16777216. Check that this is the chain file you mean."
                ])
        }
    }

    // MARK: Files

    @Test func saysWhyAFileCannotBeRead() throws {
        for (path, sentence) in [
            ("nofile.json", "nofile.json: cannot be opened: No such file or directory. Check the path."),
            ("/sys", "/sys: is a folder without chain files (*.json). Name a chain file, or a folder that has some."),
            ("/dev/null", "/dev/null: must be a file or a pipe. Name a chain file."),
            ("/dev/zero", "/dev/zero: must be a file or a pipe. Name a chain file."),
        ] {
            for command in ["check", "run"] {
                let outcome = try framehost.run([command, path], folder: workspace.folder.path)
                #expect(outcome.status == 2)
                #expect(outcome.errorLines == [sentence])
            }
        }
    }

    @Test func givesTheFaultsAsJSON() throws {
        try workspace.write(
            "chain.json", #"{ "stages": [ { "use": "test-source", "framez": 1 }, { "use": "nul-sink" } ] }"#)
        let outcome = try framehost.run(["check", "--json", "chain.json"], folder: workspace.folder.path)
        #expect(outcome.status == 2)
        #expect(outcome.errorLines.isEmpty, "\(outcome.error)")
        let faults = try JSON(parsing: outcome.output)["faults"]
        #expect(
            faults.list.map { $0["place"].string } == [
                "chain.json:1:39: stages[0].framez", "chain.json:1:63: stages[1].use",
            ])
        #expect(faults[0]["what"].string == "no such option")
        #expect(faults[0]["remedy"].string == "Did you mean 'frames'?")
        #expect(faults[0]["code"].string == "invalid-configuration")
        #expect(faults[0]["file"].string == "chain.json")
        #expect(faults[0]["line"].int == 1 && faults[0]["column"].int == 39)
        #expect(faults[0]["path"].string == "stages[0].framez" && faults[0]["argument"].isNull)
    }
}
