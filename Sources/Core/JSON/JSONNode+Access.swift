// SPDX-License-Identifier: Apache-2.0

extension JSONNode {
    /// The string, if it is one.
    public var asString: String? { if case .string(let text) = value { text } else { nil } }

    /// The truth value, if it is one; never made from a number or a string.
    public var asBool: Bool? { if case .bool(let flag) = value { flag } else { nil } }

    /// The number, if it is whole and fits: `1`, `1.0` and `1e3`, not `1.5` or `1e30`. Exact.
    public var asInt: Int? {
        guard case .number(let text) = value else { return nil }
        return JSONNumber(Array(text.utf8)[...])?.exactInt
    }

    /// The number rounded to the nearest double; nil for one beyond all doubles, such as `1e999`.
    public var asDouble: Double? {
        guard case .number(let text) = value, JSONNumber(Array(text.utf8)[...]) != nil else { return nil }
        return Double(text).flatMap { $0.isFinite ? $0 : nil }
    }

    /// The elements, if it is a list.
    public var asArray: [JSONNode]? { if case .array(let elements) = value { elements } else { nil } }

    /// The members in their order, if it is an object.
    public var asObject: [Member]? { if case .object(let members) = value { members } else { nil } }

    /// The value of a member, if it is an object that has one of this key.
    ///
    /// - Complexity: O(members).
    public subscript(key: String) -> JSONNode? { asObject?.first { $0.key == key }?.value }

    /// The kind of value in words, for a sentence such as "expected a string, found a list". `true`, `false` and `null`
    /// stand for themselves.
    public var kindName: String {
        switch value {
        case .null: "null"
        case .bool(let flag): flag ? "true" : "false"
        case .number: "a number"
        case .string: "a string"
        case .array: "a list"
        case .object: "an object"
        }
    }

    /// The same value without places, so that two texts of equal content are equal.
    public var withoutPlaces: JSONNode {
        switch value {
        case .array(let elements): JSONNode(.array(elements.map(\.withoutPlaces)))
        case .object(let members): .object(members.map { ($0.key, $0.value.withoutPlaces) })
        default: JSONNode(value)
        }
    }
}

// MARK: - Made by the program

extension JSONNode {
    /// No value.
    public static var null: JSONNode { JSONNode(.null) }
    /// True or false.
    public static func bool(_ flag: Bool) -> JSONNode { JSONNode(.bool(flag)) }
    /// A string.
    public static func string(_ text: String) -> JSONNode { JSONNode(.string(text)) }
    /// A whole number.
    public static func number(_ number: some BinaryInteger) -> JSONNode { JSONNode(.number(String(number))) }
    /// A number, in as few digits as read back the same; null for infinities and NaN, which JSON does not have.
    public static func number(_ number: Double) -> JSONNode {
        number.isFinite ? JSONNode(.number(number.description)) : .null
    }
    /// A list.
    public static func array(_ elements: [JSONNode]) -> JSONNode { JSONNode(.array(elements)) }
    /// An object with its members in this order; the keys must differ.
    public static func object(_ members: [(key: String, value: JSONNode)]) -> JSONNode {
        JSONNode(.object(members.map { Member(key: $0.key, value: $0.value) }))
    }
}

extension JSONNode: ExpressibleByStringInterpolation, ExpressibleByIntegerLiteral, ExpressibleByFloatLiteral,
    ExpressibleByBooleanLiteral, ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral
{
    /// A string.
    public init(stringLiteral value: String) { self = .string(value) }
    /// A whole number.
    public init(integerLiteral value: Int) { self = .number(value) }
    /// A number.
    public init(floatLiteral value: Double) { self = .number(value) }
    /// True or false.
    public init(booleanLiteral value: Bool) { self = .bool(value) }
    /// A list.
    public init(arrayLiteral elements: JSONNode...) { self = .array(elements) }
    /// An object with its members in this order; the keys must differ.
    public init(dictionaryLiteral elements: (String, JSONNode)...) {
        self = .object(elements.map { (key: $0.0, value: $0.1) })
    }
}
