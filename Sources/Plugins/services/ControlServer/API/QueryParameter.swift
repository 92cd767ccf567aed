// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// A parameter after the question mark, and its allowed values.
struct QueryParameter: Sendable {
    enum Kind: Sendable {
        case words([String])
        case integer(ClosedRange<Int>)
        case oneOf([Int])
        case number(ClosedRange<Double>)
        case flag
    }

    var name: String
    var help: String
    var kind: Kind

    /// JSON Schema.
    var schema: JSONNode {
        switch kind {
        case .words(let words): ["type": "string", "enum": .array(words.map { .string($0) })]
        case .integer(let range):
            ["type": "integer", "minimum": .number(range.lowerBound), "maximum": .number(range.upperBound)]
        case .oneOf(let values): ["type": "integer", "enum": .array(values.map { .number($0) })]
        case .number(let range):
            ["type": "number", "minimum": .number(range.lowerBound), "maximum": .number(range.upperBound)]
        case .flag: ["type": "boolean"]
        }
    }

    fileprivate func fault(_ value: String) -> Refusal {
        let rule =
            switch kind {
            case .words(let words): Self.alternatives(words)
            case .integer(let range): "a whole number from \(range.lowerBound) to \(range.upperBound)"
            case .oneOf(let values): Self.alternatives(values.map { "\($0)" })
            case .number(let range): "a number from \(range.lowerBound) to \(range.upperBound)"
            case .flag: "true or false"
            }
        return Refusal(
            400, "invalid-configuration", place: name, "'\(value.prefix(64))' must be \(rule)",
            "Correct the parameter, or leave it out.")
    }

    /// `0, 90, 180 or 270`.
    static func alternatives(_ words: [String]) -> String {
        guard words.count > 1, let last = words.last else { return words.first ?? "" }
        return words.dropLast().joined(separator: ", ") + " or \(last)"
    }
}

/// The parameters of a request, each checked.
struct QueryValues: Sendable {
    private var texts: [String: String] = [:]

    init() {}

    /// - Throws: ``Refusal`` for a parameter that is unknown, given twice, or out of its range.
    init(_ pairs: [Target.Pair], _ parameters: [QueryParameter]) throws {
        for pair in pairs {
            guard let parameter = parameters.first(where: { $0.name == pair.name }) else {
                let names = parameters.map(\.name)
                let near = Suggestion.nearest(to: pair.name, in: names).map { "Did you mean '\($0)'?" }
                throw Refusal(
                    400, "invalid-configuration", place: String(pair.name.prefix(64)), "no such parameter",
                    near
                        ?? (names.isEmpty
                            ? "Leave it out." : "Use \(QueryParameter.alternatives(names)), or leave it out."))
            }
            guard texts[pair.name] == nil else {
                throw Refusal(
                    400, "invalid-configuration", place: pair.name, "the parameter is given twice", "Give it once.")
            }
            guard Self.fits(pair.value, parameter.kind) else { throw parameter.fault(pair.value) }
            texts[pair.name] = pair.value
        }
    }

    private static func fits(_ value: String, _ kind: QueryParameter.Kind) -> Bool {
        switch kind {
        case .words(let words): words.contains(value)
        case .integer(let range): whole(value).map(range.contains) ?? false
        case .oneOf(let values): values.contains { "\($0)" == value }
        case .number(let range): number(value).map(range.contains) ?? false
        case .flag: value == "true" || value == "false"
        }
    }

    private static func whole(_ text: String) -> Int? {
        text.utf8.count <= 18 && text.utf8.allSatisfy { (48...57).contains($0) || $0 == 45 } ? Int(text) : nil
    }

    /// As JSON writes numbers: neither infinities nor hexadecimal.
    private static func number(_ text: String) -> Double? {
        guard text.utf8.count <= 32 else { return nil }
        return JSONNode(.number(text)).asDouble
    }

    func word(_ name: String) -> String? { texts[name] }
    func int(_ name: String) -> Int? { texts[name].flatMap { Int($0) } }
    func double(_ name: String) -> Double? { texts[name].flatMap { Double($0) } }
    func flag(_ name: String) -> Bool { texts[name] == "true" }
}
