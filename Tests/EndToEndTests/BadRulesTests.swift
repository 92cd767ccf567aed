// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

/// Faults of `on`: each with its place and a whole sentence, status 2, nothing made.
@Suite struct BadRulesTests {
    let workspace: Workspace
    let framehost: Program

    init() throws {
        workspace = try Workspace()
        framehost = try Program.framehost
    }

    /// The lines that `check` prints for these rules, from the path on.
    private func faults(_ rules: String, command: String = "check") throws -> [String] {
        try workspace.write(
            "chain.json",
            """
            { "stages": [
                { "id": "cam", "use": "test-source", "frames": 30, "live": true },
                { "id": "other", "use": "test-source", "frames": 30, "live": true },
                { "id": "sw", "use": "source-switch", "from": ["cam", "other"] },
                { "id": "meter", "use": "fps-meter" },
                { "id": "title", "use": "text" },
                { "id": "h264", "use": "x264-encoder" },
                { "id": "rec", "use": "recorder", "path": "out.mp4", "record": "onCommand" }
              ],
              "on": \(rules)
            }
            """)
        let outcome = try framehost.run([command, "chain.json"], folder: workspace.folder.path)
        #expect(outcome.status == 2, "\(outcome.output)")
        #expect(outcome.output == "")
        #expect(!workspace.exists("out.mp4"))
        return outcome.errorLines.map { line in
            // chain.json:LINE:COLUMN: the places are looked at below.
            let parts = line.split(separator: ":", maxSplits: 3)
            return parts.count == 4 && parts[0] == "chain.json" ? String(parts[3].dropFirst()) : line
        }
    }

    private static let start = #""do": { "stage": "rec", "command": "start" }"#

    @Test func listsAllFaultsOfARuleWithTheirPlaces() throws {
        try workspace.write(
            "chain.json",
            """
            {
              "stages": [
                { "id": "cam", "use": "test-source", "frames": 3 },
                { "id": "meter", "use": "fps-meter" },
                { "use": "null-sink" }
              ],
              "on": [
                { "event": "fps", "when": { "fpsByPTS": { "abov": 3 } }, "do": { "stage": "cam", "command": "pause" } },
                { "event": "fps", "whne": 1,
                  "do": { "stage": "came", "command": "pause" } }
              ]
            }
            """)
        for command in ["check", "run"] {
            let outcome = try framehost.run([command, "chain.json"], folder: workspace.folder.path)
            #expect(outcome.status == 2)
            #expect(
                outcome.errorLines == [
                    "chain.json:8:47: on[0].when.fpsByPTS.abov: no such condition. Did you mean 'above'?",
                    "chain.json:9:23: on[1].whne: no such key. Did you mean 'when'?",
                    "chain.json:10:24: on[1].do.stage: no stage 'came'. Did you mean 'cam'?",
                ])
        }
        let json = try JSON(
            parsing: framehost.run(["check", "chain.json", "--json"], folder: workspace.folder.path).output)
        #expect(
            json["faults"].list.map { $0["path"].string } == [
                "on[0].when.fpsByPTS.abov", "on[1].whne", "on[1].do.stage",
            ])
    }

    @Test(
        arguments: [
            ("{}", [#"on: expected a list of rules, found an object. Write "on": [ { "event": "…", "do": { … } } ]."#]),
            ("[3]", [#"on[0]: expected an object, found a number. Write { "event": "…", "do": { … } }."#]),
            (
                "[{}]",
                [
                    #"on[0]: 'event' is missing. Add "event": "…"."#,
                    #"on[0]: 'do' is missing. Add "do": { "stage": "…", "command": "…" }."#,
                ]
            ),
            (
                "[{ \"event\": 3, START }]",
                ["on[0].event: expected a string, found a number. Write the name of an event."]
            ),
            (
                "[{ \"event\": \"state\", \"colour\": 3, START }]",
                [
                    "on[0].colour: no such key. A rule has 'event', 'stage', 'when', 'for', 'every', 'do', 'otherwise' and 'note'. Options of commands go in 'do'."
                ]
            ),
        ] as [(String, [String])]) func saysWhatARuleIs(rules: String, texts: [String]) throws
    {
        #expect(try faults(rules.replacingOccurrences(of: "START", with: Self.start)) == texts)
    }

    @Test(arguments: [
        (#""event": "fsp""#, "on[0].event: no stage of this chain posts 'fsp'. Did you mean 'fps'?"),
        (
            #""event": "quux-blorp""#,
            "on[0].event: no stage of this chain posts 'quux-blorp'. `framehost describe TYPE` lists the events of a stage type, `framehost describe chain` those that every stage posts."
        ),
        (
            #""event": "late""#,
            #"on[0].event: several stages post 'late': 'cam' and 'other'. Name one of them in "stage"."#
        ),
        (#""event": "fps", "stage": "metre""#, "on[0].stage: no stage 'metre'. Did you mean 'meter'?"),
        (
            #""event": "fps", "stage": "cam""#,
            "on[0].event: 'cam' (test-source) posts no event 'fps'. It posts 'late'; `framehost describe chain` lists what every stage posts."
        ),
        (
            #""event": "fps", "stage": "title""#,
            "on[0].event: 'title' (text) posts no event 'fps'. `framehost describe chain` lists what every stage posts."
        ),
        (
            #""event": "stage-fails", "stage": "title""#,
            "on[0].event: 'title' (text) posts no event 'stage-fails'. Did you mean 'stage-failed'?"
        ),
        (
            #""event": "structure-changed", "stage": "cam""#,
            "on[0].stage: 'structure-changed' is an event of the chain, not of a stage. Leave 'stage' out."
        ),
        (#""event": "fps", "stage": 3"#, "on[0].stage: expected a string, found a number. Write the id of a stage."),
    ]) func knowsTheEvents(event: String, text: String) throws {
        #expect(try faults("[{ \(event), \(Self.start) }]") == [text])
    }

    @Test(arguments: [
        ("[]", #"on[0].when: expected an object, found a list. Write { "MEMBER": { "above": 0 } }."#),
        ("{}", #"on[0].when: is empty. Write { "MEMBER": { "above": 0 } }, or leave 'when' out."#),
        (
            #"{ "frames": 3 }"#,
            "on[0].when.frames: the event 'recording-did-start' has no member 'frames'. It has 'path', 'startSeconds' and 'startTime'."
        ),
        (
            #"{ "startSecond": 3 }"#,
            "on[0].when.startSecond: the event 'recording-did-start' has no member 'startSecond'. Did you mean 'startSeconds'?"
        ),
        (
            #"{ "odd key": 3 }"#,
            #"on[0].when["odd key"]: the event 'recording-did-start' has no member 'odd key'. It has 'path', 'startSeconds' and 'startTime'."#
        ),
        (
            #"{ "startSeconds": {} }"#,
            #"on[0].when.startSeconds: is empty. Write a value, or a condition such as { "not": … }."#
        ),
        (
            #"{ "startSeconds": "3" }"#,
            #"on[0].when.startSeconds: 'startSeconds' is a number, so it cannot be "3". Write a number."#
        ),
        (
            #"{ "startSeconds": null }"#,
            "on[0].when.startSeconds: 'startSeconds' is a number, so it cannot be null. Write a number."
        ),
        (
            #"{ "startSeconds": { "above": true } }"#,
            "on[0].when.startSeconds.above: expected a number, found true."
        ),
        (
            #"{ "startSeconds": { "above": 1e999 } }"#,
            "on[0].when.startSeconds.above: expected a number, found 1e999."
        ),
        (
            #"{ "startSeconds": { "in": [] } }"#,
            #"on[0].when.startSeconds.in: the list is empty. Write "in": [ … ]."#
        ),
        (
            #"{ "startSeconds": { "in": [1, "2"] } }"#,
            #"on[0].when.startSeconds.in[1]: 'startSeconds' is a number, so it cannot be "2". Write a number."#
        ),
        (
            #"{ "path": { "above": "a" } }"#,
            "on[0].when.path.above: 'path' is a string, and 'above' needs a number. Use 'equals', 'not' or 'in'."
        ),
        (
            #"{ "path": { "contains": "a" } }"#,
            "on[0].when.path.contains: no such condition. The conditions are 'above', 'below', 'atLeast', 'atMost', 'equals', 'not' and 'in'."
        ),
    ]) func knowsTheMembers(when: String, text: String) throws {
        #expect(try faults(#"[{ "event": "recording-did-start", "when": \#(when), \#(Self.start) }]"#) == [text])
    }

    @Test func knowsTheWordsOfAMember() throws {
        #expect(
            try faults(#"[{ "event": "state", "when": { "state": "streming" }, \#(Self.start) }]"#) == [
                #"on[0].when.state: 'state' cannot be "streming". Did you mean 'streaming'?"#
            ])
        #expect(
            try faults(#"[{ "event": "input-switched", "when": { "reason": { "not": "x" } }, \#(Self.start) }]"#) == [
                #"on[0].when.reason.not: 'reason' cannot be "x". Use 'command', 'lost' or 'back'."#
            ])
        #expect(
            try faults(#"[{ "event": "out-of-buffers", "when": { "holders": 3 }, \#(Self.start) }]"#) == [
                "on[0].when.holders: 'holders' is a list, and a condition needs a number, a string, or true or false. Leave it out."
            ])
    }

    @Test(arguments: [
        (#""for": -1"#, "on[0].for: -1 must be from 0 to 86400 s. Use 0 or more, or leave the key out."),
        (
            #""for": "1""#,
            "on[0].for: expected a number, found a string. Write it without quotes."
        ),
        (#""every": 0"#, "on[0].every: 0 must be from 0.1 to 86400 s. Use 0.1 or more, or leave the key out."),
        (#""otherwise": true"#, #"on[0].otherwise: expected an object, found true. Write { "for": 5, "do": { … } }."#),
        (#""otherwise": {}"#, #"on[0].otherwise: 'do' is missing. Add "do": { "stage": "…", "command": "…" }."#),
        (
            #""otherwise": { "after": 3, "do": { "stage": "rec", "command": "stop" } }"#,
            "on[0].otherwise.after: no such key. 'otherwise' has 'for' and 'do'."
        ),
        (
            #""otherwise": { "for": 1e9, "do": { "stage": "rec", "command": "stop" } }"#,
            "on[0].otherwise.for: 1000000000 must be from 0 to 86400 s. Use 86400 or less, or leave the key out."
        ),
    ]) func boundsTimes(key: String, text: String) throws {
        #expect(
            try faults(#"[{ "event": "fps", "when": { "fpsByPTS": { "below": 20 } }, \#(key), \#(Self.start) }]"#) == [
                text
            ])
    }

    @Test func wantsAConditionWhereSomethingMustHold() throws {
        #expect(
            try faults(#"[{ "event": "fps", "for": 1, "otherwise": { \#(Self.start) }, \#(Self.start) }]"#) == [
                "on[0].for: 'for' needs 'when', which is missing. Add 'when', or leave 'for' out.",
                "on[0].otherwise: 'otherwise' needs 'when', which is missing. Add 'when', or leave 'otherwise' out.",
            ])
    }

    @Test(arguments: [
        (
            "3",
            #"on[0].do: expected a command or a list of commands, found a number. Write { "stage": "…", "command": "…" }, or a list of commands."#
        ),
        ("[]", #"on[0].do: the list is empty. Write { "stage": "…", "command": "…" }, or a list of commands."#),
        ("[7]", #"on[0].do[0]: expected a command, found a number. Write { "stage": "…", "command": "…" }."#),
        ("{}", #"on[0].do: 'stage' is missing. Write { "stage": "…", "command": "…" }."#),
        (#"{ "set": { "text": "a" } }"#, #"on[0].do: 'stage' is missing. Add "stage": "…"."#),
        (
            #"{ "stage": "rec" }"#,
            #"on[0].do: neither 'command' nor 'set' is given. Write "command": "name" or "set": { "option": value }."#
        ),
        (
            #"{ "stage": "rec", "command": "start", "set": {} }"#,
            #"on[0].do: 'command' and 'set' contradict each other. Write "command": "name" or "set": { "option": value }."#
        ),
        (#"{ "stage": "rce", "command": "start" }"#, "on[0].do.stage: no stage 'rce'. Did you mean 'rec'?"),
        (
            #"{ "stage": 3, "command": "start" }"#,
            #"on[0].do.stage: expected a string, found a number. Write "stage": "…"."#
        ),
        (
            #"{ "stage": "rec", "command": "strat" }"#,
            "on[0].do.command: recorder has no command 'strat'. Did you mean 'start'?"
        ),
        (
            #"{ "stage": "title", "command": "go" }"#,
            "on[0].do.command: text has no command 'go'. It has 'pause', 'resume' and 'snapshot'."
        ),
        (
            #"{ "command": "start" }"#,
            #"on[0].do: 'stage' is missing. Name the stage that has the command 'start': "stage": "…"."#
        ),
        (#"{ "command": "drian" }"#, "on[0].do.command: the chain has no command 'drian'. Did you mean 'drain'?"),
        (
            #"{ "stage": "rec", "command": "start", "colour": 3 }"#,
            #"on[0].do.colour: 'colour' is not a key of a command. Write { "stage": "…", "set": { … } } to set options, or { "stage": "…", "command": "…", "arguments": { … } }."#
        ),
        (
            #"{ "stage": "rec", "command": "start", "tag": 3 }"#,
            "on[0].do.tag: 'tag' has no effect, because nothing reads the answer to a rule's command. Leave 'tag' out."
        ),
        (
            #"{ "stage": "cam", "command": "pause", "drop": 3 }"#,
            #"on[0].do.drop: expected true or false, found a number. Write "drop": true or false."#
        ),
        (
            #"{ "stage": "rec", "command": "start", "arguments": { "path": "x" } }"#,
            "on[0].do.arguments.path: the command 'start' has no argument 'path'. Leave 'path' out: the command has no arguments."
        ),
        (
            #"{ "stage": "sw", "command": "switch" }"#,
            #"on[0].do: the command 'switch' needs 'to'. Write "arguments": { "to": … }, where 'to' is: Id of the input."#
        ),
        (
            #"{ "stage": "sw", "command": "switch", "arguments": { "to": 3 } }"#,
            "on[0].do.arguments.to: expected a string, found 3."
        ),
    ]) func knowsTheCommands(command: String, text: String) throws {
        #expect(try faults(#"[{ "event": "fps", "do": \#(command) }]"#) == [text])
    }

    @Test(arguments: [
        #"{ "stage": "cam", "command": "detach" }"#, #"{ "stage": "cam", "command": "replace", "with": {} }"#,
        #"{ "command": "reload" }"#, #"{ "command": "figures" }"#,
    ]) func sendsNothingThatChangesTheChainOrAsks(command: String) throws {
        let found = try faults(#"[{ "event": "fps", "do": \#(command) }]"#)
        #expect(
            found.count == 1
                && found[0].hasSuffix(
                    " is not a command for a rule. Use a command of a stage type, 'set', 'pause', 'resume', 'snapshot' or 'drain': a rule cannot send any other command."
                ) && found[0].hasPrefix("on[0].do.command: '"), "\(found)")
    }

    @Test(arguments: [
        ("{}", #"on[0].do.set: is empty. Write "set": { "option": value }."#),
        (#"{ "txet": "a" }"#, "on[0].do.set.txet: text has no option 'txet'. Did you mean 'text'?"),
        (
            #"{ "font": "a" }"#,
            "on[0].do.set.font: cannot change while the chain runs. Set another option, or remove this command: only 'text', 'name', 'utc', 'position', 'margin', 'size', 'align', 'color', 'opacity', 'outline', 'outlineColor', 'box', 'boxColor', 'boxOpacity' and 'boxPadding' can change."
        ),
        (
            #"{ "opacity": 2 }"#,
            "on[0].do.set.opacity: 2 must be from 0 to 1. Use 1 or less, or leave the key out for 1."
        ),
        (##"{ "color": "#12" }"##, ""),
    ]) func checksOptionsThatAreSet(set: String, text: String) throws {
        let found = try faults(#"[{ "event": "fps", "do": { "stage": "title", "set": \#(set) } }]"#)
        #expect(
            found.count == 1 && (text.isEmpty ? found[0].hasPrefix("on[0].do.set.color: ") : found[0] == text),
            "\(found)")
    }

    @Test(arguments: [
        (#""stage": "title""#, #"on[0].do: 'path' is missing. Write "path": "picture-%Y%m%d-%H%M%S.jpg"."#),
        (
            #""stage": "h264", "path": "a.jpg""#,
            "on[0].do.stage: 'h264' gives no pictures. Name a stage that gives raw video."
        ),
        (
            #""stage": "title", "path": "a.gif""#,
            "on[0].do.path: 'a.gif' must end in .jpg, .jpeg or .png. Write the ending of the format that you want."
        ),
        (
            #""stage": "title", "path": "a-%q.jpg""#,
            "on[0].do.path: '%q' is not a time field. Use %Y, %m, %d, %H, %M, %S, %j, or %% for a percent sign."
        ),
        (
            #""stage": "title", "path": "a.jpg", "width": 0"#,
            "on[0].do.width: 0 must be a whole number from 1 to 16384. Write a number in this range, or leave the key out."
        ),
        (
            #""stage": "title", "path": "a.jpg", "rotate": 1"#,
            "on[0].do.rotate: 1 must be 0, 90, 180 or 270. Write how many degrees to rotate clockwise, or leave the key out."
        ),
    ]) func checksSnapshots(members: String, text: String) throws {
        #expect(try faults(#"[{ "event": "fps", "do": { "command": "snapshot", \#(members) } }]"#) == [text])
    }

    @Test func boundsHowManyThereAre() throws {
        let rule = #"{ "event": "fps", \#(Self.start) }"#
        let many = "[" + Array(repeating: rule, count: 101).joined(separator: ",") + "]"
        #expect(try faults(many) == ["on: 101 rules are more than the limit of 100. Leave some out."])
        let command = #"{ "stage": "rec", "command": "start" }"#
        let commands = "[" + Array(repeating: command, count: 21).joined(separator: ",") + "]"
        #expect(
            try faults(#"[{ "event": "fps", "do": \#(commands) }]"#) == [
                "on[0].do: 21 commands are more than the limit of 20. Leave some out, or write a second rule."
            ])
    }

    /// A stage whose plugin is not known says nothing of rules.
    @Test func doesNotGuessWhereAPluginIsUnknown() throws {
        try workspace.write(
            "chain.json",
            """
            { "stages": [ { "id": "cam", "use": "test-source", "frames": 3 }, { "id": "motion", "use": "quux-blorp" },
                          { "id": "end", "use": "null-sink" } ],
              "on": [ { "event": "moves", "do": { "stage": "motion", "command": "shout" } },
                      { "event": "moves", "stage": "motion", "do": { "stage": "cam", "command": "pause" } } ] }
            """)
        let outcome = try framehost.run(["check", "chain.json"], folder: workspace.folder.path)
        #expect(
            outcome.errorLines.count == 1 && outcome.error.contains("stages[1].use: no stage type 'quux-blorp'"),
            "\(outcome.error)")
    }

    /// The sound of a stage is a stage of its own, and no sign of an unknown plugin.
    @Test func knowsTheEventsOfAChainWithSound() throws {
        try workspace.write(
            "chain.json",
            """
            { "stages": [
                { "id": "clip", "use": "file-source", "path": "clip.mp4" },
                { "id": "h264", "use": "x264-encoder" },
                { "id": "aac", "use": "audio-encoder", "from": "clip.audio" },
                { "id": "rec", "use": "recorder", "path": "out.mp4", "from": ["h264", "aac"] }
              ],
              "on": [ { "event": "recording-started", "do": { "stage": "rec", "command": "stop" } } ]
            }
            """)
        let outcome = try framehost.run(["check", "chain.json"], folder: workspace.folder.path)
        #expect(outcome.status == 2)
        #expect(
            outcome.errorLines == [
                "chain.json:7:22: on[0].event: no stage of this chain posts 'recording-started'. Did you mean 'recording-did-start'?"
            ])
    }

    @Test func theSchemaKnowsRules() throws {
        let schema = try JSON(parsing: framehost.run("schema").output)
        let rule = schema["$defs"]["rule"]
        let events = Set(rule["properties"]["event"]["enum"].list.compactMap(\.string))
        #expect(events.isSuperset(of: ["faces", "state", "camera-lost", "fps", "recording-did-start"]))
        let fps = rule["allOf"].list.first { $0["if"]["properties"]["event"]["const"].string == "fps" }
        #expect(
            fps?["then"]["properties"]["when"]["properties"].keys == [
                "fpsByPTS", "fpsByArrival", "jitterMs", "latencyMs",
            ])
    }

    // MARK: Conditions that contradict each other

    @Test(arguments: [
        #""fpsByPTS": { "above": 30, "below": 20 }"#, #""fpsByPTS": { "above": 30, "below": 30 }"#,
        #""fpsByPTS": { "atLeast": 30, "below": 30 }"#, #""fpsByPTS": { "equals": 25, "above": 30 }"#,
        #""fpsByPTS": { "in": [10, 20], "above": 30 }"#, #""fpsByPTS": { "atLeast": 5, "atMost": 5, "not": 5 }"#,
    ])
    func refusesConditionsThatNoValueMeets(condition: String) throws {
        let found = try faults("[ { \"event\": \"fps\", \"when\": { \(condition) }, \(Self.start) } ]")
        #expect(
            found == [
                "on[0].when.fpsByPTS: no value of 'fpsByPTS' meets all of these conditions, so the rule does nothing. Leave one of them out, or write a second rule: conditions of one rule must hold together."
            ])
    }

    @Test func refusesWordsThatRuleEachOtherOut() throws {
        let found = try faults(
            "[ { \"event\": \"state\", \"when\": { \"state\": { \"equals\": \"draining\", \"not\": \"draining\" } }, \(Self.start) } ]"
        )
        #expect(found.count == 1 && found[0].hasPrefix("on[0].when.state: no value of 'state' meets all"), "\(found)")
    }

    @Test func takesConditionsThatSomeValueMeets() throws {
        for condition in [
            #"{ "above": 20, "below": 30 }"#, #"{ "atLeast": 5, "atMost": 5 }"#, #"{ "in": [10, 40], "above": 30 }"#,
            #"{ "not": 5, "above": 1 }"#, #"{ "above": 20, "atLeast": 30 }"#,
        ] {
            try workspace.write(
                "chain.json",
                """
                { "stages": [ { "use": "test-source", "frames": 3 }, { "use": "fps-meter" }, { "id": "end", "use": "null-sink" } ],
                  "on": [ { "event": "fps", "when": { "fpsByPTS": \(condition) }, "do": { "command": "drain" } } ] }
                """)
            let outcome = try framehost.run(["check", "chain.json"], folder: workspace.folder.path)
            #expect(outcome.status == 0, "\(condition): \(outcome.error)")
        }
    }

    // MARK: Pictures of one name

    @Test(arguments: [
        (
            #""path": "now.jpg""#,
            "'now.jpg' takes one picture, and every further one is refused; the exit status of the run is then 1"
        ),
        (#""path": "now.jpg", "overwrite": true"#, "each picture replaces the one before it in 'now.jpg'"),
        (#""path": "%Y-%j.jpg""#, nil),
    ])
    func checkSaysWhatBecomesOfPicturesOfOneName(members: String, sentence: String?) throws {
        try workspace.write(
            "chain.json",
            """
            { "stages": [ { "id": "cam", "use": "test-source", "frames": 3 }, { "use": "fps-meter" }, { "id": "end", "use": "null-sink" } ],
              "on": [ { "event": "fps", "do": { "stage": "cam", "command": "snapshot", \(members) } } ] }
            """)
        let text = try framehost.run(["check", "chain.json"], folder: workspace.folder.path)
        #expect(text.status == 0)
        #expect(text.output.contains("note: on[0].do") == (sentence != nil), "\(text.output)")
        if let sentence {
            #expect(text.output.contains("note: on[0].do: \(sentence). A time in the name"), "\(text.output)")
        }
        let json = try JSON(
            parsing: framehost.run(["check", "--json", "chain.json"], folder: workspace.folder.path).output)
        #expect(json["rules"][0]["notes"].list.count == (sentence == nil ? 0 : 1))
    }
}
