// SPDX-License-Identifier: Apache-2.0

/// An object as an option's value: a struct whose properties are wrapped in ``Option``.
///
/// ```swift
/// struct Corner: OptionObject {
///     @Option(help: "The distance from the left.", range: 0...1, required: true) var x = 0.0
///     @Option(help: "The distance from the top.", range: 0...1) var y = 0.5
/// }
/// @Option(help: "The corners.", count: 0...8, live: true) var corners: [Corner] = []
/// ```
/// The declarations give reading, checking, `framehost describe` and the JSON Schema. A fault inside has a path of its
/// own, `stages[1].corners[0].x`, with its line and column; all faults of an object are reported. A `live` of a member
/// means nothing: the option as a whole is live or not.
public protocol OptionObject: StageOptions, OptionValue {}

extension OptionObject {
    public static func decodeOption(_ node: JSONNode) throws(OptionFault) -> Self {
        guard let members = node.asObject else {
            throw OptionFault("expected an object, found \(node.kindName)", remedy: "Write it in braces, { }.")
                .named("", node.place)
        }
        let read: (options: Self, found: [OptionDecoder.Found])
        do { read = try OptionDecoder.read(Self.self, from: members, base: Self(), .object) } catch {
            // The type is declared wrongly, which no chain file can help.
            throw OptionFault(String(describing: error), remedy: "")
        }
        let faults = read.found.map { found in
            found.key.isEmpty
                ? found.fault.named("", node.place) : found.fault.within(found.key, found.place)
        }
        if let fault = OptionFault.joined(faults) { throw fault }
        return read.options
    }

    public var optionJSON: JSONNode {
        .object(
            Mirror(reflecting: self).children.compactMap { child in
                guard let option = child.value as? any AnyOption, let label = child.label else { return nil }
                return (String(label.dropFirst()), option.currentJSON)
            })
    }
    public static var optionTypeName: String { "object" }
    public static var optionMembers: [OptionField] { fields }

    public static var optionSchema: JSONNode {
        let fields = fields
        let required = fields.filter(\.isRequired).map { JSONNode.string($0.name) }
        return .object(
            [("type", "object"), ("additionalProperties", false)]
                + (required.isEmpty ? [] : [("required", .array(required))])
                + [("properties", .object(fields.map { ($0.name, $0.schema) }))])
    }
}

extension OptionFault {
    /// The path from the value to what is wrong in it, `.areas[0].polygon[2]`; empty where it is the value, or where the
    /// words say it.
    public var pathInside: String { namedPlace?.path ?? "" }
    /// Where the part of the value that is wrong stands in its text; nil where it is the value.
    public var textPlace: TextPlace? { namedPlace?.text }

    /// A place inside an option's value.
    struct InnerPlace: Sendable, Equatable {
        /// The rest of the path, behind the option's name: `[0].polygon[2]`.
        var path: String
        var text: TextPlace
        /// What is wrong, without words that say where.
        var bare: String
        /// Whether the fault is shown at this place: there is an object on the way to it. In lists of plain values the
        /// words say it.
        var isNamed: Bool
    }

    var isNamed: Bool { inner?.isNamed == true }
    /// The place if it is shown.
    var namedPlace: InnerPlace? { inner.flatMap { $0.isNamed ? $0 : nil } }

    /// This fault and the further ones, each alone.
    var all: [OptionFault] {
        var first = self
        first.further = []
        return [first] + further
    }

    /// Several faults as one; nil where there is none.
    static func joined(_ faults: [OptionFault]) -> OptionFault? {
        guard var first = faults.first else { return nil }
        first.further = Array(faults.dropFirst())
        return first
    }

    /// This fault of a value of a list.
    ///
    /// - Parameter index: Counted from 0.
    func inside(_ index: Int, _ element: JSONNode) -> OptionFault {
        let bare = inner?.bare ?? what
        var fault = self
        if !isNamed { fault.what = "value \(index + 1) of the list: \(what)" }
        fault.inner = InnerPlace(
            path: "[\(index)]" + (inner?.path ?? ""), text: inner?.text ?? element.place, bare: bare, isNamed: isNamed)
        return fault
    }

    /// This fault at `path` behind its option.
    func named(_ path: String, _ text: TextPlace) -> OptionFault {
        var fault = self
        fault.inner = InnerPlace(path: path, text: text, bare: inner?.bare ?? what, isNamed: true)
        fault.what = inner?.bare ?? what
        return fault
    }

    /// This fault of an object's member.
    func within(_ key: String, _ text: TextPlace) -> OptionFault {
        let step = JSONPath().appending(key).description
        return named((step.hasPrefix("[") ? step : ".\(step)") + (inner?.path ?? ""), inner?.text ?? text)
    }
}
