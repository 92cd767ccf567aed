/// The options of a stage: a struct whose properties are wrapped in ``Option``.
///
/// ```swift
/// struct Options: StageOptions {
///     @Option(help: "Average bitrate.", range: 64...100_000, unit: "kbit/s", live: true) var bitrateKbps = 4000
/// }
/// ```
/// `Decodable` is synthesised by the compiler and is how ``OptionDecoder`` sets the properties.
public protocol StageOptions: Decodable, Sendable {
    /// The defaults.
    init()

    /// Rules that concern several options at once; called after each value has been checked alone.
    ///
    /// - Throws: ``OptionFault``; any other error is shown as it describes itself.
    func validate() throws
}

extension StageOptions {
    public func validate() throws {}
}

/// For a stage without options.
public struct NoOptions: StageOptions {
    public init() {}
}

/// One option as `framehost describe` shows it.
public struct OptionField: Sendable {
    public var name: String
    public var typeName: String
    public var help: String
    public var unit: String
    public var isLive: Bool
    public var defaultValue: JSONNode
    public var minimum: JSONNode?
    public var maximum: JSONNode?
    /// JSON Schema (2020-12) with default, range and description.
    public var schema: JSONNode

    /// For what is not declared in Swift: a value of a ``StageTopic``.
    public init(
        name: String, typeName: String, help: String, unit: String = "", isLive: Bool = false,
        defaultValue: JSONNode = .null,
        minimum: JSONNode? = nil, maximum: JSONNode? = nil, schema: JSONNode = [:]
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
    }
}

extension StageOptions {
    /// All options in the order of declaration.
    static var fields: [OptionField] {
        Mirror(reflecting: Self()).children.compactMap { child in
            guard let option = child.value as? any AnyOption, let label = child.label else { return nil }
            let definition = option.definition
            var members = option.schema.asObject ?? []
            func add(_ key: String, _ value: JSONNode) { members.append(JSONNode.Member(key: key, value: value)) }
            let unit = definition.unit.isEmpty ? "" : " (\(definition.unit))"
            add("description", JSONNode(.string(definition.help + unit)))
            if let minimum = definition.minimum, option.schema["type"] != nil { add("minimum", minimum) }
            if let maximum = definition.maximum, option.schema["type"] != nil { add("maximum", maximum) }
            if option.currentJSON.value != .null { add("default", option.currentJSON) }
            return OptionField(
                name: String(label.dropFirst()), typeName: option.typeName, help: definition.help,
                unit: definition.unit,
                isLive: definition.live, defaultValue: option.currentJSON, minimum: definition.minimum,
                maximum: definition.maximum, schema: JSONNode(.object(members)))
        }
    }
}
