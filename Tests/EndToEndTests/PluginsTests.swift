// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

/// `plugins`, `describe` and `schema`.
@Suite struct PluginsTests {
    let workspace: Workspace
    let framehost: Program

    init() throws {
        workspace = try Workspace()
        framehost = try Program.framehost
    }

    @Test func listsWhatIsThereAndFromWhere() throws {
        let folder = try Repository.programFolder.path
        let outcome = try framehost.run("plugins")
        #expect(outcome.status == 0)
        #expect(outcome.error == "")
        #expect(outcome.output.contains("\nSearched: \(folder)\n"))
        #expect(!outcome.output.contains("Skipped"))
        let list = try JSON(parsing: try framehost.run("plugins", "--json").output)
        #expect(
            list["plugins"].list.compactMap { $0["id"].string }.sorted()
                == (ShippedPlugins.ids + ShippedPlugins.others).sorted())
        #expect(list["skipped"].list.isEmpty)
        #expect(list["folders"].list.map { $0.string } == [folder])
        for plugin in list["plugins"].list {
            #expect(plugin["path"].string?.hasPrefix(folder + "/lib") == true)
            #expect(plugin["summary"].string?.hasSuffix(".") == true)
            let kinds = ["source", "filter", "transform", "join", "sink", "service", "encoder"]
            #expect(kinds.contains(plugin["kind"].string ?? ""))
            let row = outcome.lines.first { $0.hasPrefix("  \(plugin["id"].string!) ") } ?? ""
            // framehost's own files are named without their folder.
            let file = plugin["path"].string!.dropFirst(folder.utf8.count + 1)
            #expect(row.contains("  \(plugin["summary"].string!) ") && row.hasSuffix(" \(file)"), "\(row)")
        }
    }

    @Test func describesAKindOfStageForPeople() throws {
        let outcome = try framehost.run("describe", "misbehave", "--plugin-path", PluginBuild.misbehave().path)
        #expect(outcome.status == 0)
        #expect(
            outcome.output == """
                misbehave: Goes wrong on purpose.

                  kind    filter
                  takes   raw video: i420, nv12
                  gives   what it takes
                  pixels  are read
                  keeps   no input buffers after a call

                Options
                  fault: "none", "pause", "throw", "keep"; default "none"
                      What goes wrong.
                  at: integer, 0...1000000; default 0
                      From which frame on.
                  inStart: true or false; default false
                      Blocks in start() instead.
                  level: integer, 0...100 %, live; default 50
                      A number that does nothing.

                """)
    }

    @Test(arguments: ShippedPlugins.ids) func describesEachPluginForPrograms(id: String) throws {
        let outcome = try framehost.run("describe", id, "--json")
        #expect(outcome.status == 0)
        let stage = try JSON(parsing: outcome.output)
        #expect(stage["id"].string == id)
        #expect(
            stage.keys.isSuperset(of: [
                "id", "summary", "kind", "input", "output", "access", "hold", "delay", "workers", "service", "options",
                "commands", "events",
            ]))
        for event in stage["events"].list {
            #expect(event["summary"].string?.hasSuffix(".") == true, "\(event)")
            #expect(event["members"].list.allSatisfy { $0.keys == ["name", "type", "summary", "words"] }, "\(event)")
        }
        for option in stage["options"].list {
            #expect(
                option.keys.isSuperset(of: ["name", "type", "default", "minimum", "maximum", "unit", "live", "help"]))
            #expect(option["help"].string?.hasSuffix(".") == true, "\(option)")
        }
        #expect(try framehost.run("describe", id).status == 0)
    }

    @Test func suggestsANearName() throws {
        let outcome = try framehost.run("describe", "nul-sink")
        #expect(outcome.status == 2)
        #expect(outcome.errorLines == ["nul-sink: no such stage type or service. Did you mean 'null-sink'?"])
    }

    @Test func saysThatPluginsSayWhatWasSkipped() throws {
        try workspace.write("plugins/no.so", "no")
        let outcome = try framehost.run("describe", "quux-blorp", "--plugin-path", workspace.path("plugins"))
        #expect(outcome.status == 2)
        #expect(
            outcome.errorLines == [
                "quux-blorp: no such stage type or service. If a plugin of yours has 'quux-blorp', name the plugin's folder with --plugin-path. `framehost plugins --plugin-path \(workspace.path("plugins"))` lists the types that were found, and why 1 file was skipped."
            ])
    }

    // MARK: What is no stage

    @Test func describesServicesAndThePictureEncoder() throws {
        let service = try framehost.run("describe", "control-server")
        #expect(service.status == 0, "\(service.error)")
        #expect(service.output.hasPrefix("control-server: Serves the chain's state"))
        #expect(service.output.contains("Write \"control\": { … } beside \"stages\" in the chain file."))
        #expect(service.output.contains("  listen: string; default \"127.0.0.1:8080\""), "\(service.output)")
        let json = try JSON(parsing: framehost.run("describe", "control-server", "--json").output)
        let options = Set(json["options"].list.compactMap { $0["name"].string })
        #expect(json["kind"].string == "service" && options.isSuperset(of: ["listen", "token", "users", "hosts"]))
        let encoder = try framehost.run("describe", "picture-encoder")
        #expect(encoder.status == 0 && encoder.output.hasPrefix("picture-encoder: "), "\(encoder.output)")
        let wrong = try framehost.run("describe", "control-servr")
        #expect(wrong.errorLines == ["control-servr: no such stage type or service. Did you mean 'control-server'?"])
    }

    @Test(arguments: ShippedPlugins.ids + ["chain", "control-server"]) func foldsWhatItDescribes(id: String) throws {
        let outcome = try framehost.run("describe", id)
        // A word that is longer stands alone.
        let long = outcome.lines.filter { $0.count > 80 && $0.trimmingCharacters(in: .whitespaces).contains(" ") }
        #expect(long.isEmpty, "\(long)")
    }

    @Test func saysThatAStageHasNoTopics() throws {
        let outcome = try framehost.run("describe", "text", "nope")
        #expect(outcome.status == 2)
        #expect(
            outcome.errorLines == [
                "text: has no topic 'nope': this stage type has no topics. Write only `framehost describe text`."
            ])
    }

    // MARK: A package that cannot be made

    @Test func saysWhyAPackageCannotBeMade() throws {
        func new(_ name: String) throws -> Outcome {
            try framehost.run(["new", "filter", name], folder: workspace.folder.path)
        }
        let odd = try new("3d")
        #expect(odd.status == 2)
        #expect(
            odd.errorLines == [
                "'3d': must be an id in kebab-case: at most 40 lowercase letters, digits and single '-', with a letter first. Write for example night-mode."
            ])
        let first = try new("night-mode")
        #expect(first.status == 0)
        // Both columns of the farewell begin where those of the other lines do.
        let starts = first.lines.filter { $0.hasPrefix("  ") }.compactMap {
            $0.firstRange(of: #/  (runs|builds)/#)?.lowerBound.utf16Offset(in: $0)
        }
        #expect(starts.count == 3 && Set(starts).count == 1, "\(first.output)")
        let again = try new("night-mode")
        #expect(again.status == 2)
        #expect(
            again.errorLines == [
                "night-mode: is already in this folder. Choose another name, or move it away. Nothing was written."
            ])
    }
}

/// `framehost schema`, judged by Python's jsonschema.
@Suite(.needs(.python)) struct SchemaTests {
    let workspace: Workspace
    let schema: String

    init() throws {
        workspace = try Workspace()
        let outcome = try Program.framehost.run("schema")
        #expect(outcome.status == 0)
        #expect(outcome.error == "")
        schema = try workspace.write("schema.json", outcome.output)
    }

    /// Faults that the validator finds in each of these chain files (comments and trailing commas taken out), in their
    /// order.
    ///
    /// - Parameter checksSchema: Whether the schema itself is judged too, which takes two seconds.
    private func faults(_ chains: [String], checksSchema: Bool = false) throws -> [Int] {
        let script = """
            import json, re, sys
            try:
                from jsonschema import Draft202012Validator
            except ImportError:
                sys.exit("python3 has no jsonschema: make test-packages")
            schema = json.load(open(sys.argv[1]))
            if sys.argv[2] == "true": Draft202012Validator.check_schema(schema)
            assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
            validator = Draft202012Validator(schema)
            for path in sys.argv[3:]:
                text = re.sub(r'("(?:[^"\\\\\\\\]|\\\\\\\\.)*")|//[^\\n]*|/\\*.*?\\*/', lambda m: m[1] or "", open(path).read(), flags=re.S)
                text = re.sub(r',(\\s*[}\\]])', r'\\1', text)
                faults = list(validator.iter_errors(json.loads(text)))
                for fault in faults:
                    print(path, fault.json_path, fault.message, file=sys.stderr)
                print(len(faults))
            """
        let outcome = try Tool.python.run(["-c", script, schema, "\(checksSchema)"] + chains)
        #expect(outcome.status == 0, "\(outcome.error)")
        return outcome.lines.compactMap { Int($0) }
    }

    private func faults(inStage stage: String) throws -> Int {
        let path = try workspace.write(
            "\(UUID().uuidString).json", #"{ "stages": [ \#(stage), { "use": "null-sink" } ] }"#)
        return try #require(try faults([path]).first)
    }

    @Test func isASchemaThatTakesEveryExample() throws {
        let folder = Repository.root.appending(path: "examples")
        let names = try FileManager.default.contentsOfDirectory(atPath: folder.path).filter { $0.hasSuffix(".json") }
        #expect(names.count >= 3)
        let paths = names.map { folder.appending(path: $0).path }
        #expect(try faults(paths, checksSchema: true) == names.map { _ in 0 })
    }

    @Test(arguments: [
        #"{ "use": "test-source" }"#,
        #"{ "id": "a-b_C", "use": "test-source", "size": "640x480", "rate": 29.97, "live": true, "note": 3, "onError": "continue" }"#,
        #"{ "use": "test-source", "rate": "30000/1001", "size": "${SIZE:-640x480}", "pattern": "${PATTERN}" }"#,
        #"{ "use": "x264-encoder", "from": ["a"], "link": { "queue": 3, "whenFull": "dropOldest" }, "bitrateKbps": 64 }"#,
    ]) func takesWhatTheProgramTakes(stage: String) throws {
        #expect(try faults(inStage: stage) == 0)
    }

    @Test(arguments: [
        #"{ "use": "test-sourc" }"#, #"{ "id": "x" }"#, #"{ "use": "test-source", "framez": 3 }"#,
        #"{ "use": "test-source", "frames": 0 }"#,
        #"{ "use": "test-source", "frames": "3" }"#, #"{ "use": "test-source", "size": "big" }"#,
        #"{ "use": "test-source", "id": "a b" }"#,
        #"{ "use": "test-source", "pattern": "brs" }"#, #"{ "use": "x264-encoder", "bitrateKbps": 20 }"#, #"7"#,
        #"{ "use": "null-sink", "link": { "que": 1 } }"#, #"{ "use": "null-sink", "onError": "explode" }"#,
    ]) func refusesWhatTheProgramRefuses(stage: String) throws {
        #expect(try faults(inStage: stage) > 0)
        // Of the same mind: the program, with the same stage.
        let path = try workspace.write("chain.json", #"{ "stages": [ \#(stage), { "use": "null-sink" } ] }"#)
        #expect(try Program.framehost.run("check", path).status == 2)
    }

    /// Each key of the chain file that has a range, at both ends and beside them; and null, which is no value of any key.
    @Test func isOfTheProgramsMindAboutEveryKey() throws {
        let whole = try JSON(file: schema)
        let (stage, rule) = (whole["$defs"]["stage"]["properties"], whole["$defs"]["rule"]["properties"])
        let base = #""event": "state", "when": { "state": "draining" }, "do": { "command": "drain" }"#
        /// A chain with `member` in one of its objects.
        func chain(_ member: String, in object: String) -> String {
            let stage =
                switch object {
                case "stages[1]": ", \(member)"
                case "stages[1].link": #", "link": { \#(member) }"#
                case "stages[1].join": #", "join": { \#(member) }"#
                default: ""
                }
            let other =
                switch object {
                case "": ", \(member)"
                case "on[0]": #", "on": [ { \#(base), \#(member) } ]"#
                case "on[0].otherwise":
                    #", "on": [ { \#(base), "otherwise": { "do": { "command": "drain" }, \#(member) } } ]"#
                default: ""
                }
            return #"{ "stages": [ { "use": "test-source" }, { "use": "null-sink"\#(stage) } ]\#(other) }"#
        }
        var cases: [(file: String, path: String, value: String, isValid: Bool)] = []
        for (object, keys) in [
            ("", whole["properties"]), ("stages[1]", stage), ("stages[1].link", stage["link"]["properties"]),
            ("stages[1].join", stage["join"]["properties"]), ("on[0]", rule),
            ("on[0].otherwise", rule["otherwise"]["properties"]),
        ] {
            // Those of the chain that each case is made of, and those that nobody reads.
            for key in keys.keys.subtracting(["stages", "use", "event", "when", "do", "note", "$schema"]).sorted() {
                var values = [("null", false)]
                if let most = keys[key]["maximum"].double {
                    let least = try #require(keys[key]["minimum"].double ?? keys[key]["exclusiveMinimum"].double)
                    values += [
                        (least - 1, false), (least, keys[key]["minimum"].double != nil), (most, true),
                        (most + 1, false),
                    ].map { ($0 == $0.rounded() ? "\(Int($0))" : "\($0)", $1) }
                }
                for (value, isValid) in values {
                    let file = try workspace.write(
                        "case\(cases.count).json", chain(#""\#(key)": \#(value)"#, in: object))
                    cases.append((file, object.isEmpty ? key : "\(object).\(key)", value, isValid))
                }
            }
        }
        #expect(
            Set(cases.filter(\.isValid).map(\.path)) == [
                "drainSeconds", "spare", "stages[1].link.queue", "stages[1].link.seconds", "stages[1].link.megabytes",
                "on[0].for", "on[0].every", "on[0].otherwise.for",
            ])
        #expect(cases.filter { $0.value == "null" }.count > 25)
        for (one, count) in zip(cases, try faults(cases.map(\.file))) {
            #expect((count == 0) == one.isValid, "schema: \(one.path): \(one.value)")
            let check = try JSON(parsing: Program.framehost.run("check", "--json", one.file).output)
            let refused = check["faults"].list.contains {
                let what = $0["what"].string ?? ""
                return $0["path"].string == one.path
                    && (what.hasPrefix("\(one.value) must be ") || what.hasSuffix(", found null"))
            }
            #expect(refused != one.isValid, "program: \(one.path): \(one.value)")
        }
    }

    @Test func knowsPluginsOfOtherFolders() throws {
        let outcome = try Program.framehost.run("schema", "--plugin-path", PluginBuild.mirror().path)
        let schema = try JSON(parsing: outcome.output)
        #expect(schema["$defs"]["mirror"]["properties"]["lumaOnly"]["type"].string == "boolean")
    }
}
