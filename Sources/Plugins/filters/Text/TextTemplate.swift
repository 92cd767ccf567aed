// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// A text with fields, as `text` has it: `"{name}  {date} {time:%H:%M:%S}"`.
struct TextTemplate: OptionValue {
    /// What a field stands for.
    enum Part: Equatable, Sendable {
        case literal([UInt8])
        /// A moment by a strftime(3) pattern.
        case clock(ClockPattern)
        case frame
        /// `0:01:02.345`.
        case pts
        /// `62.345`.
        case seconds
        case fps
        case name
        case chain
        /// An angle of the camera in degrees: `-12.3`.
        case motion(Angle)

        /// How the camera is held.
        enum Angle: Equatable, Sendable {
            /// Clockwise about its line of sight.
            case roll
            /// Up.
            case pitch
        }
    }

    let source: String
    let parts: [Part]
    /// Longest text with its fields still in braces.
    private static let mostBytes = 4096

    static let dateAndTime = TextTemplate(
        source: "{date} {time}", parts: [.clock(.date), .literal(Array(" ".utf8)), .clock(.time)])

    static func == (a: TextTemplate, b: TextTemplate) -> Bool { a.source == b.source }

    private init(source: String, parts: [Part]) {
        self.source = source
        self.parts = parts
    }

    /// - Throws: ``OptionFault`` for a brace without its partner, an unknown field, a pattern that strftime does not
    ///   know.
    init(_ source: String) throws(OptionFault) {
        guard source.utf8.count <= Self.mostBytes else {
            throw OptionFault(
                "the text must have at most \(Self.mostBytes) bytes, but has \(source.utf8.count)",
                remedy: "Shorten the text")
        }
        var parts: [Part] = []
        var literal: [UInt8] = []
        var rest = source.utf8[...]
        while let byte = rest.popFirst() {
            switch byte {
            case UInt8(ascii: "{") where rest.first == byte, UInt8(ascii: "}") where rest.first == byte:
                rest.removeFirst()
                literal.append(byte)
            case UInt8(ascii: "}"):
                throw OptionFault("'}' has no '{' before it", remedy: "Write '}}' for a brace in the text.")
            case UInt8(ascii: "{"):
                guard let end = rest.firstIndex(of: UInt8(ascii: "}")) else {
                    throw OptionFault("'{' has no '}' after it", remedy: "Write '{{' for a brace in the text.")
                }
                if !literal.isEmpty { parts.append(.literal(literal)) }
                literal = []
                parts.append(try Self.field(String(Substring(rest[..<end]))))
                rest = rest[end...].dropFirst()
            default: literal.append(byte)
            }
        }
        if !literal.isEmpty { parts.append(.literal(literal)) }
        self.init(source: source, parts: parts)
    }

    private static let plain: [(name: String, part: Part)] = [
        ("frame", .frame), ("pts", .pts), ("seconds", .seconds), ("fps", .fps), ("name", .name), ("chain", .chain),
        ("motion.roll", .motion(.roll)), ("motion.pitch", .motion(.pitch)),
    ]

    private static func field(_ text: String) throws(OptionFault) -> Part {
        let pieces = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
        let name = pieces[0]
        if name == "date" || name == "time" {
            guard pieces.count == 2 else { return .clock(name == "date" ? .date : .time) }
            return .clock(try ClockPattern(pieces[1]))
        }
        guard let field = plain.first(where: { $0.name == name }) else {
            let names = ["date", "time"] + plain.map(\.name)
            throw OptionFault(
                "'{\(name)}' is not a field",
                remedy: Suggestion.nearest(to: name, in: names).map { "Did you mean '{\($0)}'?" }
                    ?? "Use one of \(names.map { "{\($0)}" }.joined(separator: ", ")), or write '{{' for a brace in the text."
            )
        }
        guard pieces.count == 1 else {
            throw OptionFault(
                "'{\(name)}' takes no pattern", remedy: "Write '{\(name)}'; {date} and {time} take a strftime pattern.")
        }
        return field.part
    }

    static func decodeOption(_ node: JSONNode) throws(OptionFault) -> TextTemplate {
        guard let text = node.asString else {
            throw OptionFault(
                "expected a string, found \(node.kindName)", remedy: "Write the text in double quotes")
        }
        return try TextTemplate(text)
    }
    var optionJSON: JSONNode { .string(source) }
    static var optionTypeName: String { "text with fields" }
    static var optionSchema: JSONNode { ["type": "string", "maxLength": .number(mostBytes)] }
}
