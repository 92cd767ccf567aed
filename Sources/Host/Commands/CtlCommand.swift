// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import FrameCore
import Glibc

/// `framehost ctl URL …`: the control server's API from a shell.
struct CtlCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "ctl", abstract: "Shows and controls a running chain through its control server.",
        discussion: """
            status                    state and health of chain and stages
            stages                    the stages in short
            plan, figures, chain      as JSON
            get STAGE[.OPTION]        a stage, or one of its options, with all changes so far
            set STAGE.OPTION=VALUE…   set live options; for each stage all or none
            command STAGE NAME [JSON] send one of the stage's own commands
            pause STAGE, resume STAGE
            attach STAGE JSON         add a list of stages after a stage
            detach STAGE              remove a stage and those after it
            replace STAGE JSON        put another stage in its place
            reload FILE               change to another chain file, all or nothing
            events                    events as they happen, one line of JSON each
            drain                     finish what is under way and end the chain

            JSON is the text itself or the name of a file. Exit status: 0 done, 1 refused or the server cannot be reached, 2 the command line \
            is wrong.
            """)

    @Argument(help: "The server's address, such as 127.0.0.1:8080.")
    var url: String

    @Argument(help: ArgumentHelp("One of \(wordList(Self.actions, "and")).", valueName: "action"))
    var action: String

    @Argument(help: ArgumentHelp("What the action needs.", valueName: "words"))
    var words: [String] = []

    @ArgumentParser.Option(
        name: .customLong("token-file"),
        help: ArgumentHelp(
            "A file with the server's token. Without it, $FRAMEHOST_LOGIN has name:password, or $FRAMEHOST_TOKEN the token.",
            valueName: "file"
        ))
    var tokenFile: String?

    @Flag(help: "pause, replace: drop the items that the stage gets or holds.")
    var drop = false

    @Flag(help: "attach: give the branch copies of the items, in buffers of its own.")
    var copy = false

    @Flag(help: "Print the answer as JSON. get, plan, figures, chain and events always print JSON.")
    var json = false

    /// What each action needs after its name.
    private static let forms = [
        "attach": "STAGE JSON", "chain": "", "command": "STAGE NAME [JSON]", "detach": "STAGE", "drain": "",
        "events": "", "figures": "", "get": "STAGE[.OPTION]", "pause": "STAGE", "plan": "", "reload": "FILE",
        "replace": "STAGE JSON", "resume": "STAGE", "set": "STAGE.OPTION=VALUE…", "stages": "", "status": "",
    ]
    private static let actions = forms.keys.sorted()

    func run() throws {
        let client: ControlClient
        do { client = try ControlClient(url, tokenFile: tokenFile) } catch {
            _ = report(error)
            throw ExitCode(2)
        }
        do { try run(client) } catch {
            let errors = (error as? FrameHostErrors)?.errors ?? [FrameHostError.wrap(error)]
            _ = report(error)
            throw ExitCode(errors.allSatisfy { $0.place.argument != nil || $0.place.file != nil } ? 2 : 1)
        }
    }

    private func run(_ client: ControlClient) throws {
        try checkFlags()
        switch action {
        case "status":
            try expect(0)
            let status = try answer(of: client, "status") { $0["state"]?.asString != nil }
            Terminal.say(json ? status.text(pretty: true) : Self.text(ofStatus: status))
        case "stages":
            try expect(0)
            let stages = try answer(of: client, "stages") { $0.asArray != nil }
            Terminal.say(json ? stages.text(pretty: true) : Self.text(ofStages: stages))
        case "plan", "figures", "chain":
            try expect(0)
            let answer = try answer(of: client, action) { $0["stages"]?.asArray != nil }
            Terminal.say(answer.text(pretty: true))
        case "get": try get(client)
        case "set": try set(client)
        case "command":
            try expect(2...3)
            let body = words.count > 2 ? try node(words[2]) : [:]
            let name = ControlClient.encoded(words[1])
            try say(client, try client.json("POST", "\(stagePath)/commands/\(name)", body: body))
        case "pause":
            try expect(1)
            try say(client, try client.json("POST", "\(stagePath)/pause", body: drop ? ["drop": true] : [:]))
        case "resume":
            try expect(1)
            try say(client, try client.json("POST", "\(stagePath)/resume", body: [:]))
        case "attach":
            try expect(2)
            let given = try node(words[1])
            try change(
                client, "POST", "/api/v1/branches",
                [
                    "at": .string(words[0]), "stages": given.asArray == nil ? [given] : given, "copy": .bool(copy),
                ])
        case "detach":
            try expect(1)
            try say(client, try client.json("DELETE", stagePath))
        case "replace":
            try expect(2)
            try change(client, "PUT", stagePath + (drop ? "?drop=true" : ""), try node(words[1]))
        case "reload":
            try expect(1)
            let chain = try ChainFile.read(words[0])
            do { try say(client, try client.json("PUT", "/api/v1/chain", body: chain)) } catch let faults
                as FrameHostErrors
            {
                throw FrameHostErrors(faults.errors.map { Self.placed($0, in: words[0], chain) })
            }
        case "drain":
            try expect(0)
            try say(client, try client.json("POST", "/api/v1/drain", body: [:]))
        case "events":
            try expect(0)
            try client.lines("/api/v1/events") { line in
                if line.hasPrefix("data: ") { Terminal.say(Self.shown(event: line.dropFirst(6))) }
                // Ends once standard output cannot take the events.
                return Terminal.outputFault == nil
            }
        default:
            if Self.actions.contains(url) {
                let line = (["framehost ctl", action, url] + words).joined(separator: " ")
                throw fault("no such action", "Write the address first: `\(line)`.")
            }
            let near = Suggestion.nearest(to: action, in: Self.actions).map { "Did you mean '\($0)'?" }
            throw fault(
                "no such action", near ?? "Use one of the actions: \(wordList(Self.actions, "or")).")
        }
    }

    /// What the server answers to a GET, if it is a control server's answer.
    private func answer(of client: ControlClient, _ name: String, isOurs: (JSONNode) -> Bool) throws -> JSONNode {
        let answer = try client.json("GET", "/api/v1/\(name)")
        guard isOurs(answer) else { throw client.isNoServer("its answer to /api/v1/\(name) is another program's") }
        return answer
    }

    /// Refuses a flag that the action does not have.
    private func checkFlags() throws {
        let flags = [("--drop", drop, ["pause", "replace"]), ("--copy", copy, ["attach"])]
        for (flag, isGiven, owners) in flags where isGiven && Self.actions.contains(action) {
            guard !owners.contains(action) else { continue }
            throw fault("'\(flag)' is only for \(quotedList(owners, "and"))", "Leave '\(flag)' out.")
        }
    }

    /// Changes the chain at the stage that the first word names. The server's places are members of a command,
    /// `with.size` or `at`, and on a command line the word stands for them: `title.size`.
    private func change(_ client: ControlClient, _ method: String, _ path: String, _ body: JSONNode) throws {
        do { try say(client, try client.json(method, path, body: body)) } catch let faults as FrameHostErrors {
            throw FrameHostErrors(
                faults.errors.map { fault in
                    let place = fault.place.words
                    var fault = fault
                    if action == "attach", copy, place == "copy" {
                        fault.place = "--copy"
                        return fault
                    }
                    // `with.size`, `with: …` for the stage as a whole.
                    let isOf = { (member: String) in
                        place == member || [".", ":", " "].contains { place.hasPrefix(member + $0) }
                    }
                    guard let member = ["with", "at"].first(where: isOf) else { return fault }
                    fault.place = FaultPlace("\(words[0])\(place.dropFirst(member.count))")
                    return fault
                })
        }
    }

    /// The server knows the text, not the file that it comes from: `chain: stages[1].rate` becomes
    /// `next.json:4:20: stages[1].rate`.
    private static func placed(_ fault: FrameHostError, in file: String, _ chain: JSONNode)
        -> FrameHostError
    {
        let place = fault.place.description
        guard place == ChainDocument.inlineFile || place.hasPrefix("\(ChainDocument.inlineFile):")
        else { return fault }
        // What follows `chain` or `chain:1:57`, a place in the one line that was sent.
        let path = String(
            place.dropFirst(ChainDocument.inlineFile.count).drop { ":0123456789 ".contains($0) })
        let position = chain.place(at: path)
        var fault = fault
        // In words, not as a file: the server refuses, so the exit status must not be that of a wrong command line.
        fault.place = FaultPlace(
            "\(file)\(position.map { ":\($0)" } ?? "")\(path.isEmpty ? "" : ": \(path)")")
        return fault
    }

    // MARK: Options

    private func get(_ client: ControlClient) throws {
        try expect(1)
        // A name may contain dots, so the whole word is tried first.
        let stages = try client.json("GET", "/api/v1/chain")["stages"]?.asArray ?? []
        func stage(_ id: String) -> JSONNode? { stages.first { ($0["id"] ?? $0["use"])?.asString == id } }
        if let found = stage(words[0]) { return Terminal.say(found.text(pretty: true)) }
        guard let dot = words[0].lastIndex(of: "."), let found = stage(String(words[0][..<dot])) else {
            let id = words[0].lastIndex(of: ".").map { String(words[0][..<$0]) } ?? words[0]
            throw FrameHostError(
                .unavailable, place: id.isEmpty ? words[0] : id, what: "the chain file has no such stage",
                remedy: remedyOfUnknownStage(id, in: stages.compactMap { ($0["id"] ?? $0["use"])?.asString }))
        }
        let option = String(words[0][words[0].index(after: dot)...])
        guard let value = found[option] else {
            let use = found["use"]?.asString ?? ""
            let kind = try client.json("GET", "/api/v1/kinds")[use]
            let options = (kind?["options"]?.asArray ?? []).compactMap { $0["name"]?.asString }
            guard kind == nil || options.contains(option) else {
                throw FrameHostError(
                    .unavailable, place: words[0], what: "\(use) has no option '\(option)'",
                    remedy: Suggestion.nearest(to: option, in: options).map { "Did you mean '\($0)'?" }
                        ?? "Run `framehost describe \(use)` to see its options.")
            }
            throw FrameHostError(
                .unavailable, place: words[0],
                what: "the chain file does not set '\(option)', so the stage uses the default",
                remedy: "Run `framehost describe \(use)` to see the default.")
        }
        Terminal.say(value.text(pretty: true))
    }

    private func set(_ client: ControlClient) throws {
        guard !words.isEmpty else {
            throw fault("needs STAGE.OPTION=VALUE, but got nothing", "Write for example: set text.text=Hello.")
        }
        var changes: [(stage: String, options: [(key: String, value: JSONNode)])] = []
        for word in words {
            guard let equals = word.firstIndex(of: "="), let dot = word[..<equals].lastIndex(of: "."),
                dot > word.startIndex, word.index(after: dot) < equals
            else {
                throw fault(
                    "'\(word)' must have the form STAGE.OPTION=VALUE", "Write for example h264.bitrateKbps=2500.")
            }
            let stage = String(word[..<dot])
            let option = String(word[word.index(after: dot)..<equals])
            let text = String(word[word.index(after: equals)...])
            // A JSON value, or else a string, as with --set.
            let value = (try? JSONReader.read(Array(text.utf8), file: "set")) ?? .string(text)
            if let index = changes.firstIndex(where: { $0.stage == stage }) {
                changes[index].options.removeAll { $0.key == option }
                changes[index].options.append((option, value))
            } else {
                changes.append((stage, [(option, value)]))
            }
        }
        for (stage, options) in changes {
            let path = "/api/v1/stages/\(ControlClient.encoded(stage))/options"
            try say(client, try client.json("PATCH", path, body: .object(options)))
        }
    }

    // MARK: Words

    private var stagePath: String { "/api/v1/stages/\(ControlClient.encoded(words[0]))" }

    private func fault(_ what: String, _ remedy: String) -> FrameHostError {
        FrameHostError(.invalidConfiguration, place: FaultPlace(argument: "ctl \(action)"), what: what, remedy: remedy)
    }

    private func expect(_ count: Int) throws { try expect(count...count) }

    private func expect(_ counts: ClosedRange<Int>) throws {
        guard !counts.contains(words.count) else { return }
        let form = Self.forms[action] ?? ""
        let got = words.isEmpty ? "nothing" : quotedList(words, "and")
        throw fault(
            form.isEmpty ? "takes nothing more, but got \(got)" : "needs \(form), but got \(got)",
            "Write `framehost ctl \(url) \(action)\(form.isEmpty ? "" : " \(form)")`.")
    }

    /// The word read as JSON, or the file of that name.
    private func node(_ word: String) throws -> JSONNode {
        let start = word.first { !$0.isWhitespace }
        guard start == "{" || start == "[" else { return try JSONReader.read(path: word) }
        return try JSONReader.read(Array(word.utf8), file: "ctl \(action)")
    }

    /// Shows what a command did.
    private func say(_ client: ControlClient, _ answer: JSONNode) throws {
        guard answer["frame"] != nil, answer["text"] != nil else {
            throw client.isNoServer("its answer does not say what was done")
        }
        let text = answer["text"]?.asString?.printable(keeping: .indented)
        Terminal.say(json ? answer.text(pretty: true) : text ?? answer.text())
    }

    /// An event as it was sent, unless it has what a terminal would obey.
    private static func shown(event line: Substring) -> String {
        let line = String(line)
        guard line != line.printable() else { return line }
        return (try? JSONReader.read(Array(line.utf8), file: "event"))?.text() ?? line
    }

    /// A server's text for a place within a line.
    private static func shown(_ node: JSONNode?) -> String? { node?.asString?.printable() }

    private static func text(ofStatus status: JSONNode) -> String {
        let isHealthy = status["healthy"]?.asBool ?? false
        var lines = ["\(shown(status["state"]) ?? "?"), \(isHealthy ? "healthy" : "not healthy")"]
        lines += (status["problems"]?.asArray ?? []).compactMap { shown($0).map { "  \($0)" } }
        let stages = status["stages"]?.asArray ?? []
        let hasReasons = stages.contains { $0["reason"] != nil }
        let rows = stages.map { stage in
            [shown(stage["id"]) ?? "?", shown(stage["state"]) ?? "?"]
                + (hasReasons ? [shown(stage["reason"]) ?? ""] : [])
        }
        let heading = ["stage", "state"] + (hasReasons ? ["why"] : [])
        return (lines + (rows.isEmpty ? [] : [Terminal.table([heading] + rows)])).joined(separator: "\n")
    }

    private static func text(ofStages stages: JSONNode) -> String {
        Terminal.table(
            [["stage", "use", "state", "in", "out"]]
                + (stages.asArray ?? []).map { stage in
                    ["id", "use", "state", "framesIn", "framesOut"].map { key in
                        shown(stage[key]) ?? stage[key]?.text() ?? ""
                    }
                })
    }
}

extension JSONNode {
    /// The place of the value at a path such as `stages[1].link.queue`, or of the last part of the path that
    /// exists; nil for an empty path.
    fileprivate func place(at path: String) -> TextPlace? {
        var node = self
        var place: TextPlace? = path.isEmpty ? nil : self.place
        for part in path.split(whereSeparator: { ".[]".contains($0) }) {
            if let index = Int(part), let list = node.asArray {
                guard list.indices.contains(index) else { break }
                node = list[index]
                place = node.place
            } else {
                guard let member = node.asObject?.first(where: { $0.key == part }) else { break }
                node = member.value
                place = member.keyPlace
            }
        }
        return place
    }
}
