// SPDX-License-Identifier: Apache-2.0

/// The options of a stage: a struct whose properties are wrapped in ``Option``.
///
/// ```swift
/// struct Options: StageOptions {
///     @Option(help: "Average bitrate.", range: 64...100_000, unit: "kbit/s", live: true) var bitrateKbps = 4000
/// }
/// ```
/// The compiler synthesises `Decodable`, through which the host sets the properties.
public protocol StageOptions: Decodable, Sendable {
    /// Makes the defaults.
    init()

    /// [control thread] Checks rules that concern several options at once. Each value has already been checked alone.
    ///
    /// The default accepts everything.
    ///
    /// - Throws: ``OptionFault``, or ``OptionFaults`` for several; any other error is shown as it describes itself.
    func validate() throws
}

extension StageOptions {
    public func validate() throws {}
}

/// The options of a stage that has none: `typealias Options = NoOptions`.
public struct NoOptions: StageOptions {
    /// Makes the only value there is.
    public init() {}
}

/// One option as `framehost describe` shows it.
public struct OptionField: Sendable {
    /// The key in the chain file.
    public var name: String
    /// The type in words for people: `integer`.
    public var typeName: String
    /// One sentence: what the option does.
    public var help: String
    /// The unit of the value, such as `kbit/s`; empty where it has none.
    public var unit: String
    /// Whether the option may change while the chain runs.
    public var isLive: Bool
    /// The value when the key is left out; null where there is none.
    public var defaultValue: JSONNode
    /// The smallest value, inclusive; nil means no bound.
    public var minimum: JSONNode?
    /// The largest value, inclusive; nil means no bound.
    public var maximum: JSONNode?
    /// JSON Schema (2020-12) with default, range and description.
    public var schema: JSONNode
    /// Of an object, or of a list of objects: what each has, in the order of declaration. Empty for any other type.
    public var members: [OptionField]
    /// Whether the key must be written.
    public var isRequired: Bool

    /// Describes something that no Swift type declares: a value of a ``StageTopic``, a control of a ``StageDevice``.
    public init(
        name: String, typeName: String, help: String, unit: String = "", isLive: Bool = false,
        defaultValue: JSONNode = .null,
        minimum: JSONNode? = nil, maximum: JSONNode? = nil, schema: JSONNode = [:], members: [OptionField] = [],
        isRequired: Bool = false
    ) {
        self.name = name
        self.typeName = typeName
        self.help = help
        self.unit = unit
        self.isLive = isLive
        self.defaultValue = defaultValue
        self.minimum = minimum
        self.maximum = maximum
        self.schema = schema
        self.members = members
        self.isRequired = isRequired
    }
}

extension StageOptions {
    /// All options in the order of declaration.
    static var fields: [OptionField] { Self().declared.map { OptionField($0.name, $0.option) } }

    /// The options with their present values, in the order of declaration.
    var declared: [(name: String, option: any AnyOption)] {
        Mirror(reflecting: self).children.compactMap { child in
            guard let option = child.value as? any AnyOption, let label = child.label else { return nil }
            return (String(label.dropFirst()), option)
        }
    }
}

extension OptionField {
    /// Describes an option with its default.
    init(_ name: String, _ option: any AnyOption) {
        let definition = option.definition
        var members = option.schema.asObject ?? []
        func add(_ key: String, _ value: JSONNode) { members.append(JSONNode.Member(key: key, value: value)) }
        let unit = definition.unit.isEmpty ? "" : " (\(definition.unit))"
        add("description", JSONNode(.string(definition.help + unit)))
        if let minimum = definition.minimum, option.schema["type"] != nil { add("minimum", minimum) }
        if let maximum = definition.maximum, option.schema["type"] != nil { add("maximum", maximum) }
        if let count = definition.count {
            add("minItems", .number(count.lowerBound))
            add("maxItems", .number(count.upperBound))
        }
        // Null stands for a value that is absent, and what must be written has no default.
        let usual = definition.isRequired ? JSONNode.null : option.currentJSON
        if usual.value != .null { add("default", usual) }
        self.init(
            name: name, typeName: option.typeName, help: definition.help, unit: definition.unit,
            isLive: definition.live, defaultValue: usual, minimum: definition.minimum, maximum: definition.maximum,
            schema: JSONNode(.object(members)), members: option.members, isRequired: definition.isRequired)
    }
}
