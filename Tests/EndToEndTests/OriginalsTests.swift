// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

/// What `mask` with `privacy` hides comes out nowhere else: of each stage type, by each command, in each file.
/// docs/design/047-originals.md.
@Suite struct OriginalsTests {
    let workspace: Workspace
    let framehost: Program

    init() throws {
        workspace = try Workspace()
        framehost = try Program.framehost
    }

    /// Covers the whole picture.
    private static let mask =
        #"{ "id": "hide", "use": "mask", "privacy": true, "from": "camera", "areas": [{ "polygon": [[0, 0], [1, 0], [1, 1], [0, 1]] }] }"#

    /// Colour bars, of which the mask leaves nothing.
    private static func chain(_ more: String, top: String = "") -> String {
        """
        { \(top) "spare": 24, "stages": [
          { "id": "camera", "use": "test-source", "number": false, "size": "160x120", "rate": 30, "live": true },
          \(mask), { "id": "covered", "use": "null-sink" }\(more.isEmpty ? "" : ",") \(more)
        ] }
        """
    }

    private func check(_ more: String, top: String = "") throws -> (status: Int, faults: [JSON]) {
        try workspace.write("chain.json", Self.chain(more, top: top))
        let outcome = try framehost.run(["check", "chain.json", "--json"], folder: workspace.folder.path)
        return (outcome.status, try JSON(parsing: outcome.output)["faults"].list)
    }

    /// The kinds of stages that take pictures or access units of pictures, with what they need; nil for those that take
    /// neither, or that a person cannot name in a chain.
    private static let known: [String: String?] = [
        // Sinks of pictures.
        "image-sink": #""path": "a-{nnnn}.png""#, "null-sink": #""dump": "dump.raw""#,
        "v4l2-sink": #""device": "/dev/video99""#,
        "window-preview": "", "y4m-sink": #""path": "a.y4m""#,
        // Sinks of access units.
        "recorder": #""path": "a.mp4""#, "rtsp-sink": #""port": 8599"#,
        "part-sink": nil,
    ]

    /// Each sink of the program, behind an encoder where it takes access units.
    @Test func refusesEachSinkBesideTheMask() throws {
        let plugins = try JSON(parsing: try framehost.run(["plugins", "--json"]).output)["plugins"].list
        let sinks = plugins.filter { $0["kind"].string == "sink" }.compactMap { $0["id"].string }
        #expect(Set(sinks) == Set(Self.known.keys), "a sink is new or gone: say in this test what it needs")
        for (sink, options) in Self.known.sorted(by: { $0.key < $1.key }) {
            guard let options else { continue }
            let takesUnits = ["recorder", "rtsp-sink"].contains(sink)
            let encoder = #"{ "id": "h264", "use": "x264-encoder", "from": "camera" },"#
            func stage(_ own: String) -> String {
                (takesUnits ? encoder : "")
                    + #"{ "id": "out", "use": "\#(sink)", "from": "\#(takesUnits ? "h264" : "camera")"\#(own)\#(options.isEmpty ? "" : ", \(options)") }"#
            }
            let (status, faults) = try check(stage(""))
            #expect(status == 2, "\(sink)")
            // Without its device a sink is refused before.
            let isMissing = sink == "v4l2-sink" && faults.map { $0["code"].string } == ["unavailable"]
            #expect(
                isMissing || faults.contains { $0["reason"].string == "shows-originals" }, "\(sink): \(faults)")
            let allowed = try check(stage(#", "original": true"#)).faults
            #expect(!allowed.contains { $0["reason"].string == "shows-originals" }, "\(sink): \(allowed)")
        }
        // Without 'dump' nothing leaves.
        #expect(try check(#"{ "id": "out", "use": "null-sink", "from": "camera" }"#).status == 0)
    }

    /// Each filter of pictures that the program has, between the camera and a sink.
    @Test func refusesEachFilterBesideTheMask() throws {
        let plugins = try JSON(parsing: try framehost.run(["plugins", "--json"]).output)["plugins"].list
        let needs = [
            "text": #", "text": "a""#, "frei0r": #", "effect": "cartoon""#, "face-effect": #", "effect": "box""#,
            "mask": #", "areas": []"#, "picture-overlay": #", "path": "logo.png""#, "convert": #", "format": "nv12""#,
            "rate": #", "rate": 10"#, "frei0r-mixer": #", "effect": "addition""#, "replicate": #", "count": 2"#,
        ]
        var tried = 0
        for plugin in plugins where ["filter", "transform", "join"].contains(plugin["kind"].string ?? "") {
            let id = plugin["id"].string ?? ""
            let input = plugin["kind"].string == "join" ? #"["camera", "hide"]"# : #""camera""#
            let (_, faults) = try check(
                #"{ "id": "middle", "use": "\#(id)", "from": \#(input)\#(needs[id] ?? "") }, { "id": "out", "use": "null-sink", "dump": "a.raw", "from": "middle" }"#
            )
            let reasons = Set(faults.compactMap { $0["reason"].string })
            // What takes no pictures, or lacks something else, is refused before; nothing is planned.
            #expect(!faults.isEmpty, "\(id)")
            if reasons.contains("shows-originals") { tried += 1 }
        }
        #expect(tried >= 10, "\(tried)")
    }

    @Test func refusesSnapshotsOfRules() throws {
        func rule(_ own: String) -> String {
            #""on": [ { "event": "state", "do": { "stage": "camera", "command": "snapshot", "path": "a-%S.png"\#(own) } } ],"#
        }
        let (status, faults) = try check("", top: rule(""))
        #expect(status == 2 && faults.map { $0["reason"].string } == ["shows-originals"], "\(faults)")
        #expect(faults.first?["place"].string?.contains("on[0].do.stage") == true)
        #expect(try check("", top: rule(#", "original": true"#)).status == 0)
    }

    /// Commands that would show what is hidden are refused, and the pictures of all others are covered.
    @Test(.needs(.ffprobe), .needs(.ffmpeg)) func refusesCommandsThatShowWhatIsHidden() throws {
        try workspace.write(
            "chain.json",
            Self.chain(
                #"{ "id": "next", "use": "fps-meter", "from": "hide" }, { "id": "file", "use": "null-sink", "dump": "covered.raw", "from": "next" }"#
            ))
        let program = try framehost.start(["chain.json", "--commands", "--events"], folder: workspace.folder.path)
        try program.waitForOutput(#""state":"streaming""#)
        try program.waitForFrames(2)
        let raw = #"{ "id": "raw", "use": "null-sink", "dump": "raw.raw" }"#
        let whole = #"[{ "polygon": [[0, 0], [1, 0], [1, 1], [0, 1]] }]"#
        for refused in [
            #"{ "command": "attach", "at": "camera", "stages": [ \#(raw) ] }"#,
            #"{ "command": "attach", "at": "camera", "copy": true, "stages": [ \#(raw) ] }"#,
            #"{ "command": "attach", "at": "camera", "stages": [ { "use": "x264-encoder" }, { "use": "recorder", "path": "raw.mp4" } ] }"#,
            #"{ "stage": "hide", "command": "replace", "with": { "use": "fps-meter" } }"#,
            #"{ "stage": "hide", "command": "replace", "with": { "use": "mask", "areas": \#(whole) } }"#,
            #"{ "stage": "camera", "command": "snapshot", "path": "raw.png" }"#,
            #"{ "stage": "hide", "set": { "areas": [] } }"#,
        ] {
            let answer = try program.sendPatiently(refused)
            #expect(answer["ok"].bool == false, "\(refused): \(answer)")
        }
        for done in [
            #"{ "stage": "next", "command": "snapshot", "path": "next.png" }"#,
            #"{ "stage": "hide", "command": "snapshot", "path": "hide.png" }"#,
            #"{ "command": "attach", "at": "hide", "stages": [ { "id": "late", "use": "null-sink", "dump": "late.raw" } ] }"#,
            #"{ "stage": "hide", "command": "pause" }"#, #"{ "stage": "hide", "command": "resume" }"#,
            #"{ "stage": "hide", "command": "replace", "with": { "use": "mask", "privacy": true, "areas": \#(whole) } }"#,
            #"{ "stage": "camera", "command": "snapshot", "path": "meant.png", "original": true }"#,
            #"{ "command": "attach", "at": "camera", "stages": [ { "id": "meant", "use": "null-sink", "dump": "meant.raw", "original": true } ] }"#,
        ] {
            let answer = try program.sendPatiently(done)
            #expect(answer["ok"].bool == true, "\(done): \(answer)")
        }
        program.listen(seconds: 0.5)
        program.send(SIGINT)
        let outcome = try program.finish()
        #expect(outcome.isDoneOrBusy, "\(outcome.error)")
        for file in ["raw.raw", "raw.mp4", "raw.png"] { #expect(!workspace.exists(file), "\(file)") }
        for picture in ["next.png", "hide.png"] { #expect(try isCovered(picture), "\(picture)") }
        #expect(try !isCovered("meant.png"))
        for dump in ["covered.raw", "late.raw"] {
            let bytes = try workspace.data(dump)
            #expect(bytes.count > 0 && bytes.allSatisfy { $0 == bytes[bytes.startIndex] || $0 == 128 }, "\(dump)")
        }
        #expect(Set(try workspace.data("meant.raw").prefix(160 * 120)).count > 2)
    }

    /// Whether all pixels of a picture are alike.
    private func isCovered(_ name: String) throws -> Bool {
        let raw = workspace.path("\(name).gray")
        _ = try Tool.ffmpeg.run(
            "-v", "error", "-y", "-i", workspace.path(name), "-f", "rawvideo", "-pix_fmt", "gray", raw)
        return Set(try workspace.data("\(name).gray")).count == 1
    }

    /// Who may control the chain, and not see originals, can neither look past the mask nor move it, nor what is before it.
    @Test(.needs(.curl)) func keepsControlAloneFromWhatDecides() throws {
        let users = "bert:watch,control:of bert\nanna:watch,control,originals:of anna"
        let run = try ControlledRun(
            control: #""users": "env:CONTROL_USERS""#,
            stages: """
                { "id": "cam", "use": "test-source", "number": false, "size": "160x120", "rate": 30, "live": true },
                { "id": "turn", "use": "crop-orient", "mirror": false },
                { "id": "hide", "use": "mask", "privacy": true, "areas": [{ "polygon": [[0, 0], [1, 0], [1, 1], [0, 1]] }] },
                { "id": "rate", "use": "fps-meter" }, { "id": "out", "use": "null-sink" }
                """, environment: ["CONTROL_USERS": users])
        func send(_ user: String, _ method: String, _ path: String, _ body: String? = nil) throws -> Int {
            let data = body.map { ["-H", "Content-Type: application/json", "-d", $0] } ?? []
            return try run.curl(
                "/api/v1/\(path)", arguments: ["--user", "\(user):of \(user)", "-X", method, "-o", "/dev/null"] + data
            )
            .status
        }
        let tiny = #"[{ "polygon": [[0.98, 0.98], [1, 0.98], [1, 1]] }]"#
        for (method, path, body) in [
            (
                "POST", "branches",
                #"{ "at": "cam", "copy": true, "stages": [{ "use": "mask", "privacy": true, "areas": \#(tiny) }, { "use": "null-sink" }] }"#
            ),
            ("POST", "branches", #"{ "at": "cam", "copy": true, "stages": [{ "use": "null-sink" }] }"#),
            (
                "POST", "branches",
                #"{ "at": "hide", "copy": true, "stages": [{ "use": "mask", "areasFile": "a.json" }, { "use": "null-sink" }] }"#
            ),
            ("PUT", "stages/turn", #"{ "use": "crop-orient", "mirror": true }"#),
            ("PUT", "stages/turn", #"{ "use": "mask", "privacy": true, "areas": \#(tiny) }"#),
            ("PUT", "stages/hide", #"{ "use": "mask", "privacy": true, "areas": \#(tiny) }"#),
            ("PATCH", "stages/hide/options", #"{ "areas": \#(tiny) }"#), ("DELETE", "stages/cam", nil),
            ("DELETE", "stages/turn", nil), ("DELETE", "stages/hide", nil), ("GET", "stages/cam/picture", nil),
            ("GET", "stages/turn/picture", nil),
        ] as [(String, String, String?)] {
            #expect(try send("bert", method, path, body) == 403, "\(method) \(path) \(body ?? "")")
        }
        #expect(try send("bert", "GET", "stages/hide/picture") == 200)
        #expect(
            try send("bert", "POST", "branches", #"{ "at": "rate", "copy": true, "stages": [{ "use": "null-sink" }] }"#)
                == 200)
        #expect(try send("anna", "GET", "stages/cam/picture") == 200)
        #expect(try send("anna", "PATCH", "stages/hide/options", #"{ "areas": \#(tiny) }"#) == 200)
        try run.finish()
    }

    /// The file is the author's word: read again, it forgets what was hidden.
    @Test func letsTheChainFileSayItAnew() throws {
        try workspace.write("chain.json", Self.chain(""))
        let program = try framehost.start(["chain.json", "--commands", "--events"], folder: workspace.folder.path)
        try program.waitForOutput(#""state":"streaming""#)
        try program.waitForFrames(2)
        let open = Self.chain(#"{ "id": "raw", "use": "null-sink", "from": "camera", "dump": "raw.raw" }"#)
        try workspace.write("chain.json", open)
        let refused = try program.sendPatiently(#"{ "command": "reload" }"#)
        #expect(refused["ok"].bool == false, "\(refused)")
        try workspace.write("chain.json", open.replacingOccurrences(of: #""privacy": true, "#, with: ""))
        let answer = try program.sendPatiently(#"{ "command": "reload" }"#)
        #expect(answer["ok"].bool == true, "\(answer)")
        program.send(SIGINT)
        #expect(try program.finish().isDoneOrBusy)
    }
}
