// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// A stage type as people and programs read it.
struct StageText {
    private let stage: StageType
    private let topics: [StageTopic]

    init(_ stage: StageType, topics: [StageTopic] = []) {
        self.stage = stage
        self.topics = topics
    }

    // MARK: For people

    var text: String {
        let info = stage.info
        var lines = Terminal.folded("\(info.id): \(info.summary)", to: Terminal.columns) + [""]
        let pixels = info.access == .modify ? "may be written in place" : "are read"
        func count(_ number: Int, _ word: String) -> String { "at most \(number) \(word)\(number == 1 ? "" : "s")" }
        lines.append(
            Terminal.table(
                [
                    [
                        "kind",
                        stage.kind.rawValue + (info.isConverter ? ", inserted where two formats do not fit" : ""),
                    ],
                    ["takes", Self.input(info)], ["gives", Self.output(info)],
                ] + (Self.hasVideo(info.input) ? [["pixels", pixels]] : []) + [
                    [
                        "keeps",
                        info.hold == 0
                            ? "no input buffers after a call" : "\(count(info.hold, "input buffer")) after a call",
                    ]
                ] + (info.delay == 0 ? [] : [["delay", "\(count(info.delay, "item")) behind its input"]]),
                columns: Terminal.columns))
        lines.append("\nOptions")
        lines.append(stage.options.isEmpty ? "  none" : Self.table(stage.options))
        if !info.commands.isEmpty {
            lines.append("\nCommands")
            lines.append(
                Terminal.table(info.commands.map { [$0.name, $0.summary] }, columns: Terminal.columns))
        }
        if !info.events.isEmpty {
            lines.append("\nEvents")
            lines.append(Self.table(info.events))
        }
        if !topics.isEmpty {
            lines.append("\nTopics: `framehost describe \(info.id) NAME` tells more about each")
            lines.append(Terminal.table(topics.map { [$0.name, $0.summary] }, columns: Terminal.columns))
        }
        return lines.joined(separator: "\n")
    }

    static func table(_ options: [OptionField]) -> String {
        let shown = options.flatMap { withMembers($0) }
        let rows = shown.map { name, option in
            [
                name, option.typeName, option.defaultValue.value == .null ? "–" : option.defaultValue.text(),
                range(option),
                option.isLive ? "live" : "", option.help,
            ]
        }
        let table = Terminal.table([["key", "type", "default", "range", "live", "what"]] + rows)
        let isNarrow = table.split(separator: "\n").allSatisfy { TerminalText.width(String($0)) <= Terminal.columns }
        return isNarrow ? table : shown.map(paragraph).joined(separator: "\n")
    }

    /// An option, and behind it the members of its objects: `areas`, `areas[].polygon`.
    private static func withMembers(
        _ option: OptionField, below path: String = ""
    ) -> [(name: String, option: OptionField)] {
        let name = path + option.name
        let inner = name + (option.typeName.hasPrefix("list") ? "[]." : ".")
        return [(name, option)] + option.members.flatMap { withMembers($0, below: inner) }
    }

    /// An option in lines of its own, where a table would be wider than the terminal:
    /// `level: integer, 0...100 %, live; default 50`, and what it does.
    private static func paragraph(_ name: String, _ option: OptionField) -> String {
        let facts = [option.typeName, range(option), option.isLive ? "live" : "", option.isRequired ? "required" : ""]
            .filter { !$0.isEmpty }
        // Where there is no value, the help says what that means.
        let given = option.defaultValue.value == .null ? "" : "; default \(option.defaultValue.text())"
        let head = "\(name): \(facts.joined(separator: ", "))\(given)"
        func lines(_ text: String, first: Int, rest: Int) -> String {
            Terminal.folded(text, to: Terminal.columns - rest).enumerated()
                .map { String(repeating: " ", count: $0 == 0 ? first : rest) + $1 }.joined(separator: "\n")
        }
        return "\(lines(head, first: 2, rest: 4))\n\(lines(option.help, first: 6, rest: 6))"
    }

    /// Each event, and a line for each of its members.
    static func table(_ events: [EventDeclaration]) -> String {
        Terminal.table(
            events.flatMap { event in
                [[event.name, "", event.summary]]
                    + event.members.map {
                        ["  \($0.name)", $0.words.isEmpty ? $0.typeName : "string", Self.text(of: $0)]
                    }
            }, columns: Terminal.columns)
    }

    /// What a member means, and the words it may be.
    private static func text(of member: MemberDeclaration) -> String {
        member.words.isEmpty ? member.summary : "\(member.summary) One of \(member.typeName)."
    }

    /// `64...100000 kbit/s`, or the part of it that the option has.
    static func range(_ option: OptionField) -> String {
        var text = ""
        if let minimum = option.minimum, let maximum = option.maximum { text = "\(minimum.text())...\(maximum.text())" }
        return [text, option.unit].filter { !$0.isEmpty }.joined(separator: " ")
    }

    /// `access units: H.264; on further inputs access units: AAC, Opus`.
    private static func input(_ info: StageInfo) -> String {
        guard info.furtherInputs != .none else { return describe(info.input) }
        return "\(describe(info.input)); on further inputs \(describe(info.furtherInputs))"
    }

    /// `video: i420; with "decode": false access units: H.264`.
    private static func output(_ info: StageInfo) -> String {
        guard let other = info.otherOutput else { return describe(info.output) }
        return
            "\(describe(info.output)); with \"\(other.option)\": \(JSONNode(other.value).text()) \(describe(other.media))"
    }

    private static func hasVideo(_ media: StageInfo.Media) -> Bool {
        switch media {
        case .video, .any: true
        case .several(let media): media.contains(where: hasVideo)
        case .encoded, .audio, .motion, .sameAsInput, .none: false
        }
    }

    static func describe(_ media: StageInfo.Media) -> String {
        switch media {
        case .video(let formats): "raw video: " + formats.map(\.rawValue).joined(separator: ", ")
        case .encoded(let codecs): "access units: " + codecs.map(\.description).joined(separator: ", ")
        case .audio: "sound"
        case .motion: "motion"
        case .several(let media): media.map(describe).joined(separator: "; ")
        case .any: "raw video, access units, sound and motion"
        case .sameAsInput: "what it takes"
        case .none: "nothing"
        }
    }

    // MARK: For programs

    var json: JSONNode {
        let info = stage.info
        return .object([
            ("id", .string(info.id)), ("summary", .string(info.summary)), ("kind", .string(stage.kind.rawValue)),
            ("input", .string(Self.input(info))), ("output", .string(Self.output(info))),
            ("access", .string(info.access.rawValue)), ("hold", .number(info.hold)), ("delay", .number(info.delay)),
            ("workers", .number(info.workers)), ("service", .string(info.service.rawValue)),
            ("converter", .bool(info.isConverter)),
            ("options", .array(stage.options.map(Self.json))),
            (
                "commands",
                .array(
                    info.commands.map {
                        .object([
                            ("name", .string($0.name)), ("summary", .string($0.summary)),
                            ("arguments", .array($0.arguments.map { Self.json($0, isArgument: true) })),
                        ])
                    })
            ),
            ("events", .array(info.events.map(Self.json))),
            ("topics", .array(topics.map { .object([("name", .string($0.name)), ("summary", .string($0.summary))]) })),
        ])
    }

    static func json(_ event: EventDeclaration) -> JSONNode {
        .object([
            ("name", .string(event.name)), ("summary", .string(event.summary)),
            ("members", .array(event.members.map { json($0) })),
        ])
    }

    private static func json(_ member: MemberDeclaration, isArgument: Bool = false) -> JSONNode {
        .object(
            [
                ("name", .string(member.name)),
                ("type", .string(member.kind == .bool ? "true or false" : String(describing: member.kind))),
                ("summary", .string(member.summary)), ("words", .array(member.words.map { .string($0) })),
            ] + (isArgument ? [("required", .bool(member.isRequired))] : []))
    }

    static func json(_ option: OptionField) -> JSONNode {
        var members: [(key: String, value: JSONNode)] = [
            ("name", .string(option.name)), ("type", .string(option.typeName)), ("default", option.defaultValue),
            ("minimum", option.minimum ?? .null), ("maximum", option.maximum ?? .null), ("unit", .string(option.unit)),
            ("live", .bool(option.isLive)), ("help", .string(option.help)),
        ]
        if option.isRequired { members.append(("required", true)) }
        if !option.members.isEmpty { members.append(("members", .array(option.members.map { json($0) }))) }
        return .object(members)
    }
}
