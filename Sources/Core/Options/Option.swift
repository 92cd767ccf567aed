/// A type an option can have: how it is read from JSON, how it is described, what its schema is.
public protocol OptionValue: Sendable, Equatable {
    /// The value of `node`.
    ///
    /// - Throws: ``OptionFault``: what was found and what is allowed.
    static func decodeOption(_ node: JSONNode) throws(OptionFault) -> Self
    /// As JSON, for listings and the schema's `default`.
    var optionJSON: JSONNode { get }
    /// `integer`, `"720p" or "1080p"`; for people.
    static var optionTypeName: String { get }
    /// JSON Schema (2020-12) of the type alone.
    static var optionSchema: JSONNode { get }
}

/// Why a value does not fit: `what` completes "bitrateKbps: …", `remedy` is a sentence.
public struct OptionFault: Error, Sendable, Equatable {
    public var what: String
    public var remedy: String

    public init(_ what: String, remedy: String) {
        self.what = what
        self.remedy = remedy
    }
}

/// One option of a stage: its default is the property's initial value, the rest is said here.
///
/// From it come decoding, validation, `framehost describe`, the JSON Schema and live changes.
@propertyWrapper
public struct Option<Value: OptionValue>: Sendable, Decodable {
    public var wrappedValue: Value
    let definition: OptionDefinition
    let check: @Sendable (Value) -> OptionFault?

    /// - Parameters:
    ///   - help: One sentence.
    ///   - unit: `kbit/s`, `s`, `px`; shown beside the value.
    ///   - live: May change while the chain runs.
    public init(wrappedValue: Value, help: String, unit: String = "", live: Bool = false) {
        self.wrappedValue = wrappedValue
        definition = OptionDefinition(help: help, unit: unit, live: live)
        check = { _ in nil }
    }

    /// An option for numbers with bounds, both inclusive.
    public init(wrappedValue: Value, help: String, range: ClosedRange<Value>, unit: String = "", live: Bool = false)
    where Value: Comparable {
        self.wrappedValue = wrappedValue
        definition = OptionDefinition(
            help: help, unit: unit, live: live, minimum: range.lowerBound.optionJSON,
            maximum: range.upperBound.optionJSON)
        check = { value in
            range.contains(value)
                ? nil : OptionFault.outside(range.lowerBound.optionJSON, range.upperBound.optionJSON, value.optionJSON)
        }
    }

    /// An option that may be absent (`nil` by default), with bounds for when it is there.
    public init<Wrapped: OptionValue & Comparable>(
        wrappedValue: Value, help: String, range: ClosedRange<Wrapped>, unit: String = "", live: Bool = false
    ) where Value == Wrapped? {
        self.wrappedValue = wrappedValue
        definition = OptionDefinition(
            help: help, unit: unit, live: live, minimum: range.lowerBound.optionJSON,
            maximum: range.upperBound.optionJSON)
        check = { value in
            guard let value, !range.contains(value) else { return nil }
            return OptionFault.outside(range.lowerBound.optionJSON, range.upperBound.optionJSON, value.optionJSON)
        }
    }

    /// Never called: ``OptionDecoder`` hands out the default with its definition and sets the value.
    public init(from decoder: any Decoder) throws {
        throw DecodingError.dataCorrupted(
            DecodingError.Context(codingPath: decoder.codingPath, debugDescription: "options are read by OptionDecoder")
        )
    }
}

extension OptionFault {
    static func outside(_ lower: JSONNode, _ upper: JSONNode, _ value: JSONNode) -> OptionFault {
        OptionFault(
            "\(value.text()) is outside \(lower.text())...\(upper.text())",
            remedy: "Use \(lower.text())...\(upper.text())")
    }
}

/// What is said of an option beside its type and default.
struct OptionDefinition: Sendable {
    var help: String
    var unit: String
    var live: Bool
    var minimum: JSONNode?
    var maximum: JSONNode?
}

/// An option without its type.
protocol AnyOption {
    var definition: OptionDefinition { get }
    var currentJSON: JSONNode { get }
    var typeName: String { get }
    var schema: JSONNode { get }
    /// This option with the value of `node`.
    func setting(_ node: JSONNode) throws(OptionFault) -> Self
}

extension Option: AnyOption {
    var currentJSON: JSONNode { wrappedValue.optionJSON }
    var typeName: String { Value.optionTypeName }
    var schema: JSONNode { Value.optionSchema }

    func setting(_ node: JSONNode) throws(OptionFault) -> Option<Value> {
        let value = try Value.decodeOption(node)
        if let fault = check(value) { throw fault }
        var changed = self
        changed.wrappedValue = value
        return changed
    }
}
