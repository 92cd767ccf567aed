// SPDX-License-Identifier: Apache-2.0

/// An event that a stage posts, as data: `framehost describe` lists it, and rules of a chain file are checked by it.
///
/// ```swift
/// StageInfo(id: "dark-detector", …, events: [
///     EventDeclaration("dark", "A picture is darker than 'darkerThan'.", [.number("mean", "Mean brightness, 0...255.")])
/// ])
/// ```
public struct EventDeclaration: Sendable, Equatable {
    /// Kebab-case: `recording-did-start`.
    public var name: String
    /// One sentence: when it is posted.
    public var summary: String
    /// The members that its `details` may have. An event need not have all of them.
    public var members: [MemberDeclaration]

    /// Declares an event.
    public init(_ name: String, _ summary: String, _ members: [MemberDeclaration] = []) {
        self.name = name
        self.summary = summary
        self.members = members
    }

    /// The member called `key`; nil when there is none.
    public func member(_ key: String) -> MemberDeclaration? { members.first { $0.name == key } }

    /// A sentence about what is not declared in an event of this name; nil when everything is declared.
    func fault(of details: JSONNode) -> String? {
        for detail in details.asObject ?? [] {
            guard let member = member(detail.key) else {
                return "the event '\(name)' has the member '\(detail.key)', which is not declared"
            }
            guard member.kind.holds(detail.value) else {
                return
                    "'\(detail.key)' of the event '\(name)' must be \(member.kind.rawValue), as declared, but is \(detail.value.text())"
            }
            guard member.words.isEmpty || detail.value.asString.map(member.words.contains) == true else {
                return
                    "'\(detail.key)' of the event '\(name)' must be \(quotedList(member.words, "or")), as declared, but is \(detail.value.text())"
            }
        }
        return nil
    }
}

/// A member of an event's details, or of a command's arguments.
public struct MemberDeclaration: Sendable, Equatable {
    /// The type of a value, in the words of `framehost describe`.
    public enum Kind: String, Sendable, CaseIterable {
        /// True or false.
        case bool = "true or false"
        /// A number.
        case number = "a number"
        /// A string.
        case string = "a string"
        /// A list.
        case list = "a list"
        /// A JSON object.
        case object = "an object"

        /// Null says that there is no value, and fits every kind.
        func holds(_ node: JSONNode) -> Bool {
            switch (self, node.value) {
            case (_, .null), (.bool, .bool), (.number, .number), (.string, .string), (.list, .array),
                (.object, .object):
                true
            default: false
            }
        }
    }

    /// The key.
    public var name: String
    /// The type of the value.
    public var kind: Kind
    /// What the value means, with its unit.
    public var summary: String
    /// The only words that a string may be; empty when any string is allowed.
    public var words: [String]
    /// Whether a command needs the argument.
    public var isRequired: Bool

    /// Declares a member; ``bool(_:_:)``, ``number(_:_:)`` and the others are shorter.
    public init(_ name: String, _ kind: Kind, _ summary: String, words: [String] = [], isRequired: Bool = false) {
        self.name = name
        self.kind = kind
        self.summary = summary
        self.words = words
        self.isRequired = isRequired
    }

    /// A member that is true or false.
    public static func bool(_ name: String, _ summary: String) -> MemberDeclaration { .init(name, .bool, summary) }
    /// A member that is a number; `summary` says its unit and range.
    public static func number(_ name: String, _ summary: String) -> MemberDeclaration { .init(name, .number, summary) }
    /// A member that is a string: any, or one of `words` where these are given.
    public static func string(_ name: String, _ summary: String, words: [String] = []) -> MemberDeclaration {
        .init(name, .string, summary, words: words)
    }
    /// A member that is a list.
    public static func list(_ name: String, _ summary: String) -> MemberDeclaration { .init(name, .list, summary) }
    /// A member that is a JSON object.
    public static func object(_ name: String, _ summary: String) -> MemberDeclaration { .init(name, .object, summary) }

    /// This member, as one that a command needs: `.string("to", "Id of the input.").required`.
    public var required: MemberDeclaration {
        var member = self
        member.isRequired = true
        return member
    }

    /// The type as tables show it: `number`, or the words that a string may be.
    public var typeName: String {
        guard words.isEmpty else { return words.map { "\"\($0)\"" }.joined(separator: ", ") }
        return kind == .bool ? kind.rawValue : String(describing: kind)
    }
}
