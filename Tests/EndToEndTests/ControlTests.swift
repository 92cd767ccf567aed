// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import Testing

/// A live chain with a control server.
final class ControlledRun {
    let program: RunningProgram
    let workspace: Workspace
    let url: String

    /// - Parameters:
    ///   - control: Further members of `control`.
    ///   - stages: In the place of a test picture with text.
    ///   - arguments: Further ones of the program.
    init(
        control: String = "", stages: String = ControlledRun.stages, environment: [String: String] = [:],
        arguments: [String] = []
    ) throws {
        workspace = try Workspace()
        let members = [#""listen": "127.0.0.1:0""#, control].filter { !$0.isEmpty }.joined(separator: ", ")
        try workspace.write("chain.json", #"{ "control": { \#(members) }, "stages": [ \#(stages) ] }"#)
        program = try Program.framehost.start(
            ["chain.json", "--events"] + arguments, environment: environment, folder: workspace.folder.path)
        program.closeInput()
        try program.waitForOutput(#""state":"streaming""#)
        let line = program.output.split(separator: "\n").first { $0.contains(#""event":"control-listening""#) }
        guard let line, let url = try JSON(parsing: String(line))["url"].string else {
            throw TestFault("no control-listening in \(program.output)\n\(program.error)")
        }
        self.url = url.hasSuffix("/") ? String(url.dropLast()) : url
        // The status is looked at four times a second: a moment ago the chain was starting.
        let deadline = Date() + 120
        while Date() < deadline, try curl("/healthz").status == 503 { program.listen(seconds: 0.05) }
    }

    static let stages = """
        { "id": "cam", "use": "test-source", "size": "320x240", "rate": 50, "live": true },
        { "id": "text", "use": "text", "text": "one" },
        { "id": "sink", "use": "null-sink" }
        """

    /// What curl brings, with the status on the last line.
    func curl(_ path: String, _ arguments: String...) throws -> (status: Int, text: String) {
        try curl(path, arguments: arguments)
    }

    func curl(_ path: String, arguments: [String]) throws -> (status: Int, text: String) {
        let outcome = try patiently {
            try Tool.curl.run(["-sS", "--max-time", "150", "-w", "\n%{http_code}"] + arguments + [url + path])
        }
        guard let cut = outcome.output.lastIndex(of: "\n") else { throw TestFault(outcome.error) }
        return (Int(outcome.output[outcome.output.index(after: cut)...]) ?? 0, String(outcome.output[..<cut]))
    }

    /// A stage that gets no processor for a second refuses a change as a whole: then it is asked for again.
    private func patiently(_ ask: () throws -> Outcome) throws -> Outcome {
        for _ in 0..<19 {
            let outcome = try ask()
            guard (outcome.output + outcome.error).contains(", so nothing was changed") else { return outcome }
        }
        return try ask()
    }

    /// A picture, asked for again while none comes within a second; what curl is told besides.
    func picture(of stage: String, _ arguments: String...) throws -> Int {
        let deadline = Date() + 120
        while true {
            let outcome = try Tool.curl.run(
                ["-sS", "--max-time", "150", "-w", "%{http_code}"] + arguments
                    + ["\(url)/api/v1/stages/\(stage)/picture?width=64"])
            guard outcome.output == "204", Date() < deadline else { return Int(outcome.output) ?? 0 }
        }
    }

    /// `framehost snapshot`, again while no picture comes within a second.
    func snapshot(_ words: String...) throws -> Outcome {
        let deadline = Date() + 120
        while true {
            let outcome = try Program.framehost.run(["snapshot", url] + words)
            guard outcome.error.contains("no picture came within a second"), Date() < deadline else { return outcome }
        }
    }

    func send(_ method: String, _ path: String, _ body: String) throws -> (status: Int, json: JSON) {
        let answer = try curl(path, "-X", method, "-H", "Content-Type: application/json", "--data-binary", body)
        return (answer.status, try JSON(parsing: answer.text))
    }

    func ctl(_ words: String..., environment: [String: String] = [:]) throws -> Outcome {
        try patiently { try Program.framehost.run(["ctl", url] + words, environment: environment) }
    }

    /// Ends it; a live chain on a busy machine may have lost frames.
    @discardableResult
    func finish(bySignal: Bool = true) throws -> Outcome {
        if bySignal { program.send(SIGINT) }
        let outcome = try program.finish()
        guard outcome.isDoneOrBusy else {
            throw TestFault("framehost ended with \(outcome.status): \(outcome.error)")
        }
        return outcome
    }
}

/// The control server with real clients: curl, promtool, ffprobe, schemathesis, and `framehost ctl`.
@Suite struct ControlTests {
    @Test(.needs(.curl)) func showsAndChangesARunningChain() throws {
        let run = try ControlledRun()
        #expect(try run.curl("/healthz").status == 200)
        let status = try JSON(parsing: run.curl("/api/v1/status").text)
        #expect(["streaming", "rendering"].contains(status["state"].string))
        #expect(status["stages"].list.map { $0["id"].string }.contains("text"))
        let set = try run.send("PATCH", "/api/v1/stages/text/options", #"{ "text": "two" }"#)
        #expect(set.status == 200 && (set.json["frame"].int ?? -1) >= 0)
        let chain = try JSON(parsing: run.curl("/api/v1/chain").text)
        #expect(chain["stages"].first("id", "text")["text"].string == "two")
        let wrong = try run.send("PATCH", "/api/v1/stages/text/options", #"{ "txet": "three" }"#)
        #expect(wrong.status == 400)
        #expect(wrong.json["error"]["remedy"].string == "Did you mean 'text'?")
        #expect(try run.send("POST", "/api/v1/stages/cam/pause", "{}").status == 200)
        #expect(try run.send("POST", "/api/v1/stages/cam/resume", "{}").status == 200)
        let attached = try run.send(
            "POST", "/api/v1/branches",
            #"{ "at": "cam", "stages": [ { "id": "more", "use": "null-sink" } ], "copy": true }"#)
        #expect(attached.status == 200, "\(attached.json)")
        #expect(try run.curl("/api/v1/stages/more").status == 200)
        #expect(try run.curl("/api/v1/stages/more", "-X", "DELETE").status == 200)
        #expect(try run.curl("/api/v1/stages/more").status == 404)
        let replaced = try run.send("PUT", "/api/v1/stages/text", #"{ "use": "fps-meter" }"#)
        #expect(replaced.status == 200, "\(replaced.json)")
        // What was read can be written back.
        let text = try run.curl("/api/v1/chain").text
        let written = try run.send("PUT", "/api/v1/chain", text)
        #expect(written.status == 200, "\(written.json)")
        #expect(try run.send("PUT", "/api/v1/chain", #"{ "stages": [ { "use": "nothing" } ] }"#).status == 400)
        #expect(try run.send("POST", "/api/v1/drain", "{}").status == 200)
        #expect(try run.finish(bySignal: false).output.contains(#""event":"control-listening""#))
    }

    @Test(.needs(.curl)) func answersOverHTTP1WhereHTTP2IsOffered() throws {
        let run = try ControlledRun()
        #expect(try run.curl("/healthz", "--http2").status == 200)
        try run.finish()
    }

    @Test(.needs(.curl)) func neverShowsItsToken() throws {
        let token = "0123456789abcdef0123"
        let run = try ControlledRun(control: #""token": "${CONTROL}""#, environment: ["CONTROL": token])
        #expect(try run.curl("/healthz").status == 401)
        #expect(try run.curl("/api/v1/chain", "-H", "Authorization: Bearer wrong").status == 401)
        let chain = try run.curl("/api/v1/chain", "-H", "Authorization: Bearer \(token)")
        #expect(chain.status == 200 && !chain.text.contains(token))
        #expect(try run.ctl("status").status == 1)
        let told = try run.ctl("status", environment: ["FRAMEHOST_TOKEN": token])
        #expect(told.status == 0 && told.output.contains("healthy"))
        // As the page takes it; here it would come into logs.
        let pasted = try Program.framehost.run("ctl", "\(run.url)/#token=\(token)", "status")
        #expect(pasted.status == 2 && pasted.error.contains("--token-file") && !pasted.error.contains(token))
        let outcome = try run.finish()
        #expect(!(outcome.output + outcome.error).contains(token))
    }

    @Test(.needs(.curl)) func usersDoWhatTheirLineSays() throws {
        let users = "anna:watch,control:a secret: of anna\ncora:watch:secret of cora"
        let run = try ControlledRun(control: #""users": "env:CONTROL_USERS""#, environment: ["CONTROL_USERS": users])
        #expect(try run.curl("/healthz").status == 401)
        #expect(try run.curl("/api/v1/chain", "--user", "cora:secret of cora").status == 200)
        let told = try run.ctl("pause", "cam", environment: ["FRAMEHOST_LOGIN": "cora:secret of cora"])
        #expect(told.status == 1 && told.error.contains("'control'"), "\(told.error)")
        let done = try run.ctl("pause", "cam", environment: ["FRAMEHOST_LOGIN": "anna:a secret: of anna"])
        #expect(done.status == 0, "\(done.error)")
        #expect(try run.ctl("status").error.contains("FRAMEHOST_LOGIN"))
        #expect(try run.ctl("status", environment: ["FRAMEHOST_LOGIN": "cora:wrong"]).status == 1)
        try run.program.waitForOutput(#""event":"login-failed""#)
        let outcome = try run.finish()
        #expect(!(outcome.output + outcome.error).contains("secret"))
    }

    @Test(.needs(.promtool)) func promtoolTakesItsMetrics() throws {
        let run = try ControlledRun(
            stages: """
                { "id": "cam", "use": "test-source", "size": "320x240", "rate": 50, "live": true },
                { "id": "h264", "use": "x264-encoder", "preset": "ultrafast", "bitrateKbps": 500 },
                { "id": "live", "use": "rtsp-sink", "port": \(try RTSPStream.freePort()) }
                """)
        let text = try run.curl("/metrics").text
        #expect(text.contains("framehost_stage_busy_seconds_bucket{stage=\"h264\",le=\"+Inf\"}"))
        #expect(text.contains("framehost_pool_buffers_free{pool="))
        #expect(text.contains("framehost_process_resident_memory_bytes "))
        let samples = text.split(separator: "\n").filter { !$0.hasPrefix("#") }
        let names = samples.map { line in line.lastIndex(of: " ").map { line[..<$0] } ?? line }
        #expect(Set(names).count == names.count)
        let checked = try Program(URL(fileURLWithPath: try #require(Tool.promtool.path))).run(
            ["check", "metrics"], input: text + "\n")
        #expect(checked.status == 0 && checked.output + checked.error == "", "\(checked.output)\(checked.error)")
        try run.finish()
    }

    @Test(.needs(.ffprobe)) func givesPictures() throws {
        let run = try ControlledRun()
        func format(_ name: String) throws -> String {
            try Tool.ffprobe.run(
                "-v", "error", "-show_entries", "stream=codec_name,width,height", "-of", "csv=p=0",
                run.workspace.path(name)
            ).output.trimmingCharacters(in: .whitespacesAndNewlines)
        }
        let jpeg = run.workspace.path("a.jpg")
        #expect(try run.picture(of: "cam", "-o", jpeg) == 200)
        #expect(try format("a.jpg") == "mjpeg,64,48")
        let png = try run.snapshot("text", run.workspace.path("b.png"), "--rotate", "90")
        #expect(png.status == 0, "\(png.error)")
        #expect(png.output.hasPrefix("Wrote \(run.workspace.path("b.png")) ("), "\(png.output)")
        #expect(try format("b.png") == "png,240,320")
        let again = try run.snapshot("text", run.workspace.path("b.png"))
        #expect(again.status == 1 && again.error.contains("b.png"))
        #expect(try Program.framehost.run(["snapshot", run.url, "text", "x.gif"]).status == 2)
        let sink = try run.curl("/api/v1/stages/sink/picture")
        #expect(sink.status == 400)
        #expect(try JSON(parsing: sink.text)["error"]["remedy"].string == "Ask for the pictures of 'text'.")
        #expect(
            try run.curl("/api/v1/stages/cam/pictures?count=3&rate=30", "-o", run.workspace.path("c.mjpeg")).status
                == 200)
        let frames = try Tool.ffprobe.run(
            "-v", "error", "-f", "mpjpeg", "-count_frames", "-show_entries", "stream=nb_read_frames", "-of", "csv=p=0",
            run.workspace.path("c.mjpeg"))
        #expect(frames.output.trimmingCharacters(in: .whitespacesAndNewlines) == "3", "\(frames.error)")
        try run.finish()
    }

    @Test(.needs(.curl)) func givesEvents() throws {
        let run = try ControlledRun()
        let listener = try Tool.curl.start(["-sSN", "--max-time", "600", run.url + "/api/v1/events"])
        try listener.waitForOutput("retry:")
        _ = try run.send("PATCH", "/api/v1/stages/text/options", #"{ "text": "two" }"#)
        try listener.waitForOutput(#""event":"option-changed""#)
        let ctl = try Program.framehost.start(["ctl", run.url, "events"])
        // It shows what happens from when it is connected on.
        let deadline = Date() + 120
        var number = 2
        while !ctl.output.contains(#""event":"option-changed""#), Date() < deadline {
            number += 1
            _ = try run.send("PATCH", "/api/v1/stages/text/options", #"{ "text": "\#(number)" }"#)
            ctl.listen(seconds: 0.5)
        }
        #expect(ctl.output.contains(#""event":"option-changed""#))
        // Both are connected while the chain ends, which takes no longer for it.
        try run.finish()
        #expect(try ctl.finish(timeout: 120).status == 0)
        _ = try listener.finish(timeout: 120)
    }

    @Test func showsWhatTheCommandLineSets() throws {
        let run = try ControlledRun(arguments: ["--set", "text.text=given", "--set", "text.size=20"])
        #expect(try run.ctl("get", "text.text").output == "\"given\"\n")
        #expect(try run.ctl("set", "text.text=later").status == 0)
        let chain = try JSON(parsing: try run.curl("/api/v1/chain").text)
        #expect(chain["stages"][1]["text"].string == "later")
        #expect(chain["stages"][1]["size"].int == 20)
        try run.finish()
    }

    @Test func asksAServerThatDoesNotAnswerForTenSeconds() throws {
        let run = try ControlledRun()
        run.program.send(SIGSTOP)
        let begin = Date()
        let status = try run.ctl("status")
        let said = try #require(
            status.error.firstMatch(of: /Operation timed out after (\d+) milliseconds/), "\(status.error)")
        #expect(status.status == 1 && Int(said.1) ?? 0 >= 10_000, "\(status.error)")
        #expect(Date().timeIntervalSince(begin) < 85)
        run.program.send(SIGCONT)
        try run.finish()
    }

    @Test func steersFromAShell() throws {
        let run = try ControlledRun()
        let status = try run.ctl("status")
        #expect(status.status == 0 && status.output.contains(", healthy\n"))
        #expect(try run.ctl("stages").output.contains("test-source"))
        let set = try run.ctl("set", "text.text=Hello")
        #expect(set.status == 0 && set.output.contains("text: takes effect at frame "), "\(set.error)")
        #expect(try run.ctl("get", "text.text").output == "\"Hello\"\n")
        #expect(try run.ctl("pause", "cam").status == 0)
        #expect(try run.ctl("resume", "cam").status == 0)
        #expect(try run.ctl("attach", "cam", #"{ "id": "more", "use": "null-sink" }"#, "--copy").status == 0)
        #expect(try run.ctl("detach", "more").status == 0)
        let unknown = try run.ctl("detach", "mroe")
        #expect(unknown.status == 1 && unknown.error.contains("no such stage"))
        #expect(try run.ctl("stauts").error == "ctl stauts: no such action. Did you mean 'status'?\n")
        #expect(try run.ctl("stauts").status == 2)
        let swapped = try Program.framehost.run(["ctl", "status", "127.0.0.1:1"])
        #expect(swapped.status == 2)
        #expect(
            swapped.errorLines == [
                "ctl 127.0.0.1:1: no such action. Write the address first: `framehost ctl 127.0.0.1:1 status`."
            ])
        #expect(try run.ctl("pause").status == 2)
        #expect(
            try run.ctl("pause").error
                == "ctl pause: needs STAGE, but got nothing. Write `framehost ctl \(run.url) pause STAGE`.\n")
        #expect(
            try run.ctl("status", "text").error
                == "ctl status: takes nothing more, but got 'text'. Write `framehost ctl \(run.url) status`.\n")
        try run.workspace.write(
            "next.json",
            """
            // Comments are read here too.
            { "stages": [ { "id": "cam", "use": "test-source", "size": "320x240", "rate": 50, "live": true },
                          { "id": "text", "use": "text", "text": "next" }, { "id": "sink", "use": "null-sink" } ] }
            """)
        let reload = try run.ctl("reload", run.workspace.path("next.json"))
        #expect(reload.status == 0, "\(reload.error)")
        #expect(try run.ctl("get", "text.text").output == "\"next\"\n")
        #expect(try run.ctl("drain").status == 0)
        try run.finish(bySignal: false)
        let gone = try run.ctl("status")
        #expect(gone.status == 1 && gone.error.contains("cannot be reached"))
    }

    @Test func anAddressThatIsTakenIsNamedAtItsPlace() throws {
        let run = try ControlledRun()
        let address = try #require(run.url.components(separatedBy: "//").last)
        try run.workspace.write(
            "second.json",
            """
            {
              "control": { "listen": "\(address)" },
              "stages": [ { "use": "test-source" }, { "use": "null-sink" } ]
            }
            """)
        let second = try Program.framehost.run(["second.json"], folder: run.workspace.folder.path)
        #expect(second.status == 1)
        #expect(
            second.errorLines == [
                "second.json:2:16: control.listen: \(address) is in use by another program. End that program, or set another port. Port 0 takes any free port."
            ])
        try run.finish()
    }

    /// Any request that the document allows, and many that it does not: never a fault of the server, always an answer
    /// as the document has it.
    @Test(.needs(.schemathesis)) func schemathesisFindsNothing() throws {
        let token = "0123456789abcdef"
        let run = try ControlledRun(control: #""token": "\#(token)""#)
        try run.workspace.write(
            "schemathesis.toml",
            """
            [parameters]
            "path.id" = "text"
            "path.name" = "start"
            """)
        // Streams do not end, and draining and detaching would leave nothing to ask. What the document allows need not
        // suit the chain that runs: such an answer is an error by design. A WebSocket's handshake needs an Origin, which no
        // part of an OpenAPI document can demand before the token; the control server's own tests have it, and they ask every
        // route without a login: after a few wrong tokens the answer is 429 and no longer the 401 that `ignored_auth` wants.
        let outcome = try Program(URL(fileURLWithPath: try #require(Tool.schemathesis.path))).run(
            [
                "--config-file", run.workspace.path("schemathesis.toml"), "run", run.url + "/openapi.json",
                "-H", "Authorization: Bearer \(token)", "--phases", "examples,coverage,fuzzing", "--max-examples", "25",
                "--seed", "1", "--request-timeout", "60", "--exclude-checks", "positive_data_acceptance,ignored_auth",
                "--exclude-path-regex",
                "(drain|events|pictures|live)$", "--exclude-method", "DELETE", "--no-color",
            ], folder: run.workspace.folder.path, timeout: 1200)
        #expect(outcome.status == 0, "\(outcome.output.suffix(6000))\n\(outcome.error.suffix(1000))")
        #expect(run.program.isRunning)
        try run.finish()
    }

    @Test func refusesAWrongControlAtCheck() throws {
        let workspace = try Workspace()
        func check(_ control: String) throws -> String {
            try workspace.write(
                "chain.json",
                #"{ "control": \#(control), "stages": [ { "use": "test-source" }, { "use": "null-sink" } ] }"#)
            let outcome = try Program.framehost.run(["check", workspace.path("chain.json")])
            #expect(outcome.status == 2)
            return outcome.error
        }
        #expect(
            try check(#"{ "listen": "0.0.0.0:80" }"#).contains(
                "can be reached from other machines, so it needs a token or users"))
        #expect(try check(#"{ "lsiten": "127.0.0.1:80" }"#).contains("Did you mean 'listen'?"))
        let secret = try check(#"{ "token": "short-secret" }"#)
        #expect(secret.contains("'token' must be 16 to 256") && !secret.contains("short-secret"))
    }

    // MARK: ctl in words

    /// A recorder that runs has its file: seen alone, the changed chain would find it in the way.
    @Test func aBranchWithAnIDThatIsTakenIsOneFault() throws {
        let run = try ControlledRun(
            stages: """
                { "id": "cam", "use": "test-source", "size": "320x240", "rate": 30, "live": true },
                { "id": "h264", "use": "x264-encoder", "preset": "ultrafast", "tune": "zerolatency" },
                { "id": "rec", "use": "recorder", "path": "out.mp4" }
                """)
        let outcome = try run.ctl("attach", "cam", #"{ "id": "rec", "use": "null-sink" }"#)
        #expect(outcome.status == 1)
        #expect(
            outcome.errorLines.count == 1
                && outcome.error.contains("'rec' is already the id of another stage. Give each stage an id"),
            "\(outcome.error)")
        try run.finish()
    }

    /// The server names members of a command, which a command line does not have.
    @Test func faultsOfChangesNameTheWordsOfTheCommandLineAndTheStagesThatRun() throws {
        let run = try ControlledRun()
        func refused(_ action: String, _ stage: String, _ stages: String) throws -> [String] {
            let outcome = try run.ctl(action, stage, stages, "--\(action == "attach" ? "copy" : "drop")")
            #expect(outcome.status == 1, "\(outcome.output)")
            return outcome.errorLines
        }
        #expect(
            try refused("replace", "text", #"{ "text": 5 }"#) == [
                #"text.text: expected a string, found a number. Write the text in double quotes, or leave the key out for "{date} {time}"."#
            ])
        #expect(
            try refused("attach", "sink", #"{ "id": "late", "use": "null-sink" }"#) == [
                "sink: 'sink' (null-sink) has no output. Attach the branch to a stage that has an output, such as 'text'."
            ])
        let branch = #"[{ "id": "more", "use": "fps-meter" }, { "use": "null-sink" }]"#
        #expect(try run.ctl("attach", "cam", branch, "--copy").status == 0)
        #expect(
            try refused("attach", "cam", #"{ "use": "null-sink" }"#) == [
                #"stages[0].id: 'null-sink' is already the id of another stage. Give this stage an "id": without one, its id is its "use"."#
            ])
        #expect(
            try refused("replace", "more", #"{ "use": "null-sink" }"#) == [
                "null-sink.from: 'more' (null-sink) has no output. Replace 'more' with a stage that has an output."
            ])
        // The flag says it, and no member of the stage.
        let wall = try refused(
            "attach", "text",
            #"[{ "id": "wall", "use": "mosaic", "from": ["text", "cam"] }, { "use": "null-sink", "id": "w" }]"#)
        #expect(wall.contains { $0.hasPrefix("--copy: 'copy' is not possible before a join: ") }, "\(wall)")
        try run.finish()
    }

    /// A token is read once. Its file may be replaced or removed then.
    @Test(.needs(.curl)) func takesChangesOnceTheFileOfItsTokenHasGone() throws {
        let token = "0123456789abcdef0123456789abcdef"
        let files = try Workspace()
        let file = try files.write("token", token + "\n")
        let run = try ControlledRun(control: #""tokenFile": "\#(file)""#)
        try FileManager.default.removeItem(atPath: file)
        let environment = ["FRAMEHOST_TOKEN": token]
        let more = #"{ "id": "more", "use": "null-sink" }"#
        let attached = try run.ctl("attach", "cam", more, "--copy", environment: environment)
        #expect(attached.status == 0, "\(attached.error)")
        let detached = try run.ctl("detach", "more", environment: environment)
        #expect(detached.status == 0, "\(detached.error)")
        try run.finish()
    }

    @Test func takesATokenFromAFileOrAPipeThatHasAWriter() throws {
        let workspace = try Workspace()
        let (folder, pipe) = (workspace.folder.path, workspace.path("pipe"))
        #expect(mkfifo(pipe, 0o600) == 0)
        for (path, fault) in [
            (folder, "'\(folder)' is a folder. Name a file in it."),
            (pipe, "nothing was written to the pipe '\(pipe)'. Name a file with the token in its first line."),
        ] {
            let outcome = try Program.framehost.run(
                ["ctl", "127.0.0.1:1", "status", "--token-file", path], timeout: 60)
            #expect(outcome.status == 2 && outcome.errorLines == ["--token-file: \(fault)"], "\(outcome.error)")
        }
        // The writer keeps the pipe open, and nothing else of this test.
        let writer = "exec 2>/dev/null; sleep 0.3; echo 0123456789abcdef; exec sleep 60"
        let line = #"exec "$0" ctl 127.0.0.1:1 status --token-file <(\#(writer))"#
        let outcome = try Program(URL(fileURLWithPath: "/bin/bash")).run(
            ["-c", line, Program.framehost.executable.path])
        #expect(outcome.seconds < 50, "waited for the end of the pipe")
        #expect(outcome.status == 1 && outcome.error.contains("nothing answers there"), "\(outcome.error)")
    }

    @Test func refusesFlagsThatTheActionDoesNotHave() throws {
        for (words, text) in [
            (["status", "--drop"], "ctl status: '--drop' is only for 'pause' and 'replace'. Leave '--drop' out."),
            (["pause", "cam", "--copy"], "ctl pause: '--copy' is only for 'attach'. Leave '--copy' out."),
        ] {
            let outcome = try Program.framehost.run(["ctl", "127.0.0.1:1"] + words)
            #expect(outcome.status == 2 && outcome.errorLines == [text], "\(outcome.error)")
        }
    }

    @Test func aFileThatIsReloadedIsNamedInItsFaults() throws {
        let run = try ControlledRun()
        try run.workspace.write(
            "next.json",
            """
            { "stages": [
                { "id": "cam", "use": "test-source", "size": "320x240", "rate": 50, "live": true },
                { "id": "text", "use": "text", "text": "one",
                  "sise": 3 },
                { "id": "sink", "use": "null-sink" } ] }
            """)
        let file = run.workspace.path("next.json")
        let outcome = try run.ctl("reload", file)
        #expect(outcome.status == 1)
        #expect(
            outcome.errorLines == [
                "\(file):4:7: stages[1].sise: no such option. Did you mean 'size'? The chain goes on without this change."
            ],
            "\(outcome.error)")
        try run.finish()
    }

    @Test func saysWhatACommandLineOfCtlLacks() throws {
        let run = try ControlledRun()
        #expect(
            try run.ctl("get", "text.txet").errorLines == ["text.txet: text has no option 'txet'. Did you mean 'text'?"]
        )
        #expect(
            try run.ctl("get", "text.color").errorLines == [
                "text.color: the chain file does not set 'color', so the stage uses the default. Run `framehost describe text` to see the default."
            ])
        let odd = try run.ctl("set", ".=3")
        #expect(odd.status == 2)
        #expect(
            odd.errorLines == [
                "ctl set: '.=3' must have the form STAGE.OPTION=VALUE. Write for example h264.bitrateKbps=2500."
            ])
        let wrong = try run.ctl("set", "text.size=-1")
        #expect(wrong.status == 1 && !wrong.error.contains("leave the key out"), "\(wrong.error)")
        let paused = try run.ctl("pause", "text")
        #expect(paused.status == 0)
        #expect(try run.ctl("pause", "text").output == "text: is already paused.\n")
        #expect(try run.ctl("resume", "cam").output == "cam: is not paused.\n")
        try run.program.waitForOutput(#""text":"text (text) is paused.""#)
        let outcome = try run.finish()
        #expect(outcome.errorLines.contains("text (text) is paused."), "\(outcome.error)")
    }

    @Test(arguments: [
        ("8080", "url: '8080' is only a number, and the address needs a host and a port."),
        ("127.0.0.1:99999", "url: the port in '127.0.0.1:99999' must be a whole number from 1 to 65535."),
        ("localhost:abc", "url: the port in 'localhost:abc' must be a whole number from 1 to 65535."),
        (":8080", "url: ':8080' names no host."),
        ("[::1", "url: '[::1' names no host."), ("", "url: the address is empty."),
        ("ftp://cam", "url: 'ftp://cam' is not the address of a control server."),
    ])
    func refusesAddressesThatAreNone(address: String, sentence: String) throws {
        for arguments in [["ctl", address, "status"], ["top", address], ["snapshot", address, "cam", "a.jpg"]] {
            let outcome = try Program.framehost.run(arguments)
            #expect(outcome.status == 2, "\(arguments)")
            #expect(
                outcome.errorLines == [
                    "\(sentence) Write the address that the chain prints when it starts, such as http://127.0.0.1:8080."
                ])
        }
    }
}

extension Tool {
    static let promtool = Tool(name: "promtool")
    static let schemathesis = Tool(name: "schemathesis")
}
