// SPDX-License-Identifier: Apache-2.0

/// A type that an option can have: it reads itself from JSON, and describes itself to people and editors.
///
/// `Bool`, `Int`, `Double`, `String`, ``PictureSize``, ``FrameRate``, ``RGBColor`` and ``PixelFormat`` adopt it, and so
/// do arrays and optionals of these. An enum of strings adopts ``OptionChoice``, an object ``OptionObject``.
public protocol OptionValue: Sendable, Equatable {
    /// Reads the value from `node`.
    ///
    /// - Throws: ``OptionFault``: what was found and what is allowed.
    static func decodeOption(_ node: JSONNode) throws(OptionFault) -> Self
    /// The value as JSON, for listings and the schema's `default`.
    var optionJSON: JSONNode { get }
    /// The type in words for people: `integer`, `"720p" or "1080p"`.
    static var optionTypeName: String { get }
    /// JSON Schema (2020-12) of the type alone.
    static var optionSchema: JSONNode { get }
    /// The members of an ``OptionObject``, or of the objects in a list; empty for any other type, which need not say so.
    static var optionMembers: [OptionField] { get }
}

extension OptionValue {
    public static var optionMembers: [OptionField] { [] }
}

/// Says why an option's value does not fit.
///
/// The host puts the place before it: `camera.json:7:5: stages[2].bitrateKbps: 20 must be from 64 to 100000.` Where
/// ``StageOptions/validate()`` throws the fault, its place is the first of ``options`` that is
/// written in the file.
public struct OptionFault: Error, Sendable, Equatable {
    /// What is wrong, to be read after the option's name, without a full stop: `20 must be from 64 to 100000`.
    public var what: String
    /// What to do about it, as a sentence; empty where ``what`` says it all.
    public var remedy: String
    /// The options that break a rule of ``StageOptions/validate()`` together, the one to change first: `["path"]`.
    /// Empty for a fault of a single value, whose option the host knows.
    public var options: [String]
    /// Where inside the option's value it is; nil where it is the value.
    var inner: InnerPlace?
    /// Further faults of the same value.
    var further: [OptionFault] = []

    /// Makes a fault to throw.
    public init(_ what: String, remedy: String, options: [String] = []) {
        self.what = what.sentence
        self.remedy = remedy.sentence
        self.options = options
    }
}

/// Several faults of options at once, so that one look shows all.
public struct OptionFaults: Error, Sendable, Equatable {
    /// In the order in which they are shown; not empty.
    public var faults: [OptionFault]

    /// Makes faults to throw.
    public init(_ faults: [OptionFault]) { self.faults = faults }
}

/// Declares one option of a stage. The property's initial value is the default.
///
/// ```swift
/// @Option(help: "Average bitrate.", range: 64...100_000, unit: "kbit/s", live: true) var bitrateKbps = 4000
/// @Option(help: "Ends after so many frames.", range: 1...1_000_000) var frames: Int? = nil
/// ```
/// The declaration gives reading, checking, `framehost describe`, the JSON Schema and live changes.
@propertyWrapper
public struct Option<Value: OptionValue>: Sendable, Decodable {
    /// The option's value.
    public var wrappedValue: Value
    let definition: OptionDefinition
    let check: @Sendable (Value) -> OptionFault?

    /// Declares an option that takes every value of its type.
    ///
    /// - Parameters:
    ///   - wrappedValue: The default: the property's initial value.
    ///   - help: One sentence: what the option does.
    ///   - unit: `kbit/s`, `s`, `px`; shown beside the value.
    ///   - live: Whether the option may change while the chain runs; ``Stage/optionsChanged()`` is then called.
    ///   - required: Whether the key must be written: for members of an ``OptionObject`` that have no sensible default.
    public init(wrappedValue: Value, help: String, unit: String = "", live: Bool = false, required: Bool = false) {
        self.wrappedValue = wrappedValue
        definition = OptionDefinition(help: help, unit: unit, live: live, isRequired: required)
        check = { _ in nil }
    }

    /// Declares an option for a list whose number of values lies within `count`, both ends included.
    public init<Element: OptionValue>(
        wrappedValue: Value, help: String, count: ClosedRange<Int>, live: Bool = false, required: Bool = false
    ) where Value == [Element] {
        self.wrappedValue = wrappedValue
        definition = OptionDefinition(help: help, unit: "", live: live, isRequired: required, count: count)
        check = { list in
            guard !count.contains(list.count) else { return nil }
            return OptionFault(
                "a list of \(list.count) must have from \(count.lowerBound) to \(count.upperBound) values",
                remedy: list.count < count.lowerBound
                    ? "Write \(count.lowerBound) or more" : "Write \(count.upperBound) or fewer")
        }
    }

    /// Declares an option for a number within `range`, both ends included.
    public init(
        wrappedValue: Value, help: String, range: ClosedRange<Value>, unit: String = "", live: Bool = false,
        required: Bool = false
    ) where Value: Comparable {
        self.wrappedValue = wrappedValue
        definition = OptionDefinition(
            help: help, unit: unit, live: live, isRequired: required, minimum: range.lowerBound.optionJSON,
            maximum: range.upperBound.optionJSON)
        check = { value in
            range.contains(value)
                ? nil : OptionFault.outside(range, value)
        }
    }

    /// Declares an option that may be absent, and lies within `range` when it is there. Write its `= nil`.
    public init<Wrapped: OptionValue & Comparable>(
        wrappedValue: Value, help: String, range: ClosedRange<Wrapped>, unit: String = "", live: Bool = false
    ) where Value == Wrapped? {
        self.wrappedValue = wrappedValue
        definition = OptionDefinition(
            help: help, unit: unit, live: live, minimum: range.lowerBound.optionJSON,
            maximum: range.upperBound.optionJSON)
        check = { value in
            guard let value, !range.contains(value) else { return nil }
            return OptionFault.outside(range, value)
        }
    }

    /// An option that no property declares.
    init(_ value: Value, _ definition: OptionDefinition, check: @escaping @Sendable (Value) -> OptionFault?) {
        (wrappedValue, self.definition, self.check) = (value, definition, check)
    }

    /// Always throws: an option is never decoded alone. The host makes the defaults and sets the given values.
    public init(from decoder: any Decoder) throws {
        throw DecodingError.dataCorrupted(
            DecodingError.Context(codingPath: decoder.codingPath, debugDescription: "options are read by OptionDecoder")
        )
    }
}

extension OptionFault {
    /// The fault of a value outside its range. The remedy has no full stop, since `OptionDecoder` may add the default.
    static func outside<Value: OptionValue & Comparable>(_ range: ClosedRange<Value>, _ value: Value) -> OptionFault {
        let (lower, upper) = (range.lowerBound.optionJSON.text(), range.upperBound.optionJSON.text())
        return OptionFault(
            "\(value.optionJSON.text()) must be from \(lower) to \(upper)",
            remedy: value < range.lowerBound ? "Use \(lower) or more" : "Use \(upper) or less")
    }
}

/// What an option's declaration says beside its type and default.
struct OptionDefinition: Sendable {
    var help: String
    var unit: String
    var live: Bool
    var isRequired = false
    /// How many values a list may have.
    var count: ClosedRange<Int>?
    var minimum: JSONNode?
    var maximum: JSONNode?
}

/// An option without its type.
protocol AnyOption: Sendable {
    var definition: OptionDefinition { get }
    var currentJSON: JSONNode { get }
    var typeName: String { get }
    var schema: JSONNode { get }
    var members: [OptionField] { get }
    /// This option with the value of `node`.
    func setting(_ node: JSONNode) throws(OptionFault) -> Self
}

extension Option: AnyOption {
    var currentJSON: JSONNode { wrappedValue.optionJSON }
    var typeName: String { Value.optionTypeName }
    var schema: JSONNode { Value.optionSchema }
    var members: [OptionField] { Value.optionMembers }

    func setting(_ node: JSONNode) throws(OptionFault) -> Option<Value> {
        let value = try Value.decodeOption(node)
        if let fault = check(value) { throw fault }
        var changed = self
        changed.wrappedValue = value
        return changed
    }
}

extension Option: Equatable {
    /// Whether the values are equal; their declarations are those of one property.
    public static func == (a: Option, b: Option) -> Bool { a.wrappedValue == b.wrappedValue }
}
