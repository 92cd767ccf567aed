// SPDX-License-Identifier: Apache-2.0

/// What a program says of the filter that it is: a JSON object, as docs/stage-protocol.md has it. Everything in it is
/// checked, since it comes from outside.
struct ProgramDescription: Sendable {
    private(set) var info: StageInfo
    /// In the order of declaration.
    private(set) var options: [(name: String, option: any AnyOption)] = []

    var definitions: [String: any AnyOption] {
        Dictionary(uniqueKeysWithValues: options.map { ($0.name, $0.option) })
    }

    /// - Throws: ``FrameHostError`` `.unusablePlugin`.
    init(_ words: JSONNode, of program: StageProgram) throws {
        let reader = Reader(program: program)
        let summary = try reader.text(words, "summary", in: "the description")
        info = StageInfo(
            id: program.name, summary: summary, input: .video(try reader.formats(words["formats"])),
            output: .sameAsInput)
        if let modifies = try reader.flag(words, "modifies", in: "the description"), modifies { info.access = .modify }
        if let longest = words["longestCallMs"] {
            guard let milliseconds = longest.asInt, (1...3_600_000).contains(milliseconds) else {
                throw reader.wrong("'longestCallMs' must be a whole number from 1 to 3600000")
            }
            info.longestCall = MediaTime(nanoseconds: Int64(milliseconds) * 1_000_000)
        }
        for event in try reader.list(words, "events", in: "the description") {
            info.events.append(
                EventDeclaration(
                    try reader.name(event, in: "an event"), try reader.text(event, "summary", in: "an event"),
                    try reader.members(event, "members")))
        }
        for command in try reader.list(words, "commands", in: "the description") {
            info.commands.append(
                CommandInfo(
                    try reader.name(command, in: "a command"), try reader.text(command, "summary", in: "a command"),
                    arguments: try reader.members(command, "arguments")))
        }
        for words in try reader.list(words, "options", in: "the description") {
            let option = try reader.option(words)
            guard !options.contains(where: { $0.name == option.name }) else {
                throw reader.wrong("it has two options '\(option.name)'")
            }
            options.append(option)
        }
    }
}

/// Reads the parts of a description.
private struct Reader {
    let program: StageProgram

    func wrong(_ what: String) -> FrameHostError {
        program.fault("\(what), in what it says of itself", remedy: "docs/stage-protocol.md has all keys.")
    }

    func text(_ words: JSONNode, _ key: String, in what: String) throws -> String {
        guard let text = words[key]?.asString, !text.isEmpty, text.utf8.count <= 1000 else {
            throw wrong("'\(key)' of \(what) must be a text of 1 to 1000 bytes")
        }
        return text.printable()
    }

    func flag(_ words: JSONNode, _ key: String, in what: String) throws -> Bool? {
        guard let node = words[key] else { return nil }
        guard let flag = node.asBool else { throw wrong("'\(key)' of \(what) must be true or false") }
        return flag
    }

    func list(_ words: JSONNode, _ key: String, in what: String) throws -> [JSONNode] {
        guard let node = words[key] else { return [] }
        guard let list = node.asArray, list.count <= 100 else {
            throw wrong("'\(key)' of \(what) must be a list of at most 100")
        }
        return list
    }

    /// Letters, digits, `-` and `_`.
    func name(_ words: JSONNode, in what: String) throws -> String {
        let name = try text(words, "name", in: what)
        let isPlain = name.utf8.allSatisfy {
            (48...57).contains($0) || (65...90).contains($0) || (97...122).contains($0) || $0 == 45 || $0 == 95
        }
        guard isPlain, name.utf8.count <= 64 else {
            throw wrong("the name '\(name)' of \(what) must be at most 64 letters, digits, '-' and '_'")
        }
        return name
    }

    func formats(_ node: JSONNode?) throws -> [PixelFormat] {
        let names = (node?.asArray ?? []).map { $0.asString ?? "" }
        let formats = names.compactMap(PixelFormat.init(rawValue:))
        guard !formats.isEmpty, formats.count == names.count else {
            throw wrong(
                "'formats' must be a list of \(quotedList(PixelFormat.allCases.map(\.rawValue), "and")), best first")
        }
        return formats
    }

    func members(_ words: JSONNode, _ key: String) throws -> [MemberDeclaration] {
        let kinds: [String: MemberDeclaration.Kind] = [
            "boolean": .bool, "number": .number, "string": .string, "list": .list, "object": .object,
        ]
        return try list(words, key, in: "an event or command").map { member in
            let name = try name(member, in: "a member")
            guard let kind = member["type"]?.asString.flatMap({ kinds[$0] }) else {
                throw wrong("'type' of the member '\(name)' must be \(quotedList(kinds.keys.sorted(), "or"))")
            }
            return MemberDeclaration(
                name, kind, try text(member, "summary", in: "the member '\(name)'"),
                isRequired: try flag(member, "required", in: "the member '\(name)'") ?? false)
        }
    }

    // MARK: Options

    func option(_ words: JSONNode) throws -> (name: String, option: any AnyOption) {
        let name = try name(words, in: "an option")
        guard name != "privacy" else { throw wrong("an option 'privacy' promises what a program cannot keep yet") }
        let place = "the option '\(name)'"
        let definition = OptionDefinition(
            help: try text(words, "help", in: place), unit: words["unit"]?.asString?.printable() ?? "",
            live: try flag(words, "live", in: place) ?? false,
            isRequired: try flag(words, "required", in: place) ?? false,
            minimum: words["minimum"], maximum: words["maximum"])
        let option: any AnyOption
        switch words["type"]?.asString {
        case "boolean": option = try plain(false, words, definition, place)
        case "integer": option = try number(0, words, definition, place)
        case "number": option = try number(0.0, words, definition, place)
        case "string": option = try plain("", words, definition, place)
        case "color": option = try plain(RGBColor(red: 0, green: 0, blue: 0), words, definition, place)
        case "choice":
            let choices = try list(words, "choices", in: place).compactMap(\.asString)
            guard let first = choices.first else { throw wrong("'choices' of \(place) must be a list of words") }
            let option = ChoiceOption(definition: definition, words: choices, current: first)
            return (name, try setting(option, words, place))
        default:
            throw wrong(
                "'type' of \(place) must be \"boolean\", \"integer\", \"number\", \"string\", \"color\" or \"choice\"")
        }
        return (name, option)
    }

    /// An option without a range. It may be absent if it has no default.
    private func plain<Value: OptionValue>(
        _ zero: Value, _ words: JSONNode, _ definition: OptionDefinition, _ place: String
    ) throws -> any AnyOption {
        guard words["minimum"] == nil, words["maximum"] == nil else { throw wrong("\(place) can have no range") }
        if isAbsent(words, definition) { return Option<Value?>(nil, definition, check: { _ in nil }) }
        return try setting(Option(zero, definition, check: { _ in nil }), words, place)
    }

    private func number<Value: OptionValue & Comparable>(
        _ zero: Value, _ words: JSONNode, _ definition: OptionDefinition, _ place: String
    ) throws -> any AnyOption {
        func bound(_ key: String) throws -> Value? {
            guard let node = words[key] else { return nil }
            do { return try Value.decodeOption(node) } catch { throw wrong("'\(key)' of \(place): \(error.what)") }
        }
        let (least, most) = (try bound("minimum"), try bound("maximum"))
        if let least, let most, least > most { throw wrong("the range of \(place) is empty") }
        let check: @Sendable (Value) -> OptionFault? = { value in
            if let least, let most { return (least...most).contains(value) ? nil : .outside(least...most, value) }
            if let least, value < least {
                return OptionFault("\(value.optionJSON.text()) must be \(least.optionJSON.text()) or more", remedy: "")
            }
            if let most, value > most {
                return OptionFault("\(value.optionJSON.text()) must be \(most.optionJSON.text()) or less", remedy: "")
            }
            return nil
        }
        if isAbsent(words, definition) {
            return Option<Value?>(nil, definition, check: { $0.flatMap(check) })
        }
        return try setting(Option(least ?? zero, definition, check: check), words, place)
    }

    private func isAbsent(_ words: JSONNode, _ definition: OptionDefinition) -> Bool {
        !definition.isRequired && (words["default"] ?? .null).value == .null
    }

    /// The option with its default, which must itself be right.
    private func setting<Some: AnyOption>(_ option: Some, _ words: JSONNode, _ place: String) throws -> Some {
        if option.definition.isRequired { return option }
        guard let usual = words["default"] else { throw wrong("'default' of \(place) is missing") }
        do { return try option.setting(usual) } catch { throw wrong("the default of \(place): \(error.what)") }
    }
}

/// An option with words to choose from that are known only at run time.
private struct ChoiceOption: AnyOption, Sendable {
    let definition: OptionDefinition
    let words: [String]
    var current: String

    var currentJSON: JSONNode { .string(current) }
    var typeName: String { words.map { "\"\($0)\"" }.joined(separator: ", ") }
    var schema: JSONNode { ["enum": .array(words.map { .string($0) })] }
    var members: [OptionField] { [] }

    func setting(_ node: JSONNode) throws(OptionFault) -> ChoiceOption {
        var changed = self
        changed.current = try chosenWord(node, of: words)
        return changed
    }
}
