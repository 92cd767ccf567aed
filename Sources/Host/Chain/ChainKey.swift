// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// One key of an object in the chain file, declared once. The reader, the JSON Schema and, by the schema, the tables of
/// the documentation come from this declaration. docs/design/045-chain-keys.md.
struct ChainKey<Object>: Sendable {
    let name: String
    /// JSON Schema: type, range, words, default and description.
    let schema: [(key: String, value: JSONNode)]
    /// A value that shows how to write the key; nil for a key that may be left out.
    var example: String?
    /// Keys that other programs have in place of this one.
    var strangers: [String] = []
    /// Another key, without which this one has no meaning.
    var needs: String?
    /// Reads the value. Nil for a key whose value depends on other parts of the file: the owner of the object reads it.
    let read: (@Sendable (JSONNode, inout Object) throws(OptionFault) -> Void)?

    /// A key whose value can be read by itself.
    init<Value>(
        _ name: String, help: String, _ value: ChainValue<Value>, needs: String? = nil,
        _ set: @escaping @Sendable (inout Object, Value) -> Void
    ) {
        self.name = name
        schema = [("description", .string(help))] + value.schema
        self.needs = needs
        read = { (node, object) throws(OptionFault) in set(&object, try value.read(node)) }
    }

    /// A key that the owner of the object reads, or that nobody reads.
    init(
        _ name: String, help: String, _ schema: JSONNode = [:], example: String? = nil, strangers: [String] = [],
        needs: String? = nil
    ) {
        self.name = name
        self.schema = [("description", .string(help))] + schema.pairs
        (self.example, self.strangers, self.needs) = (example, strangers, needs)
        read = nil
    }

    /// A key whose value is an object.
    init<Other>(_ name: String, _ form: ChainObject<Other>, needs: String? = nil) {
        self.name = name
        schema = form.schema()
        self.needs = needs
        read = nil
    }

    /// A key for people.
    static var note: ChainKey { ChainKey("note", help: "A comment for people; framehost ignores it.") }
}

/// A value of the chain file: its type, range and default. The texts of its faults are those of options.
///
/// Name the type where it cannot be told from a range or default: null would be a value of the optional that a closure
/// sets.
struct ChainValue<Value: OptionValue>: Sendable {
    let schema: [(key: String, value: JSONNode)]
    let read: @Sendable (JSONNode) throws(OptionFault) -> Value

    init(default usual: Value? = nil) { self.init([], usual) { _ in nil } }

    /// - Parameter unit: Shown behind the range: `s`.
    init(_ range: ClosedRange<Value>, default usual: Value? = nil, unit: String? = nil) where Value: Comparable {
        let (lower, upper) = (range.lowerBound.optionJSON, range.upperBound.optionJSON)
        self.init([("minimum", lower), ("maximum", upper)], usual) {
            if range.contains($0) { return nil }
            let bound = $0 < range.lowerBound ? "\(lower.text()) or more" : "\(upper.text()) or less"
            return OptionFault(
                "\($0.optionJSON.text()) must be from \(lower.text()) to \(upper.text())\(unit.map { " \($0)" } ?? "")",
                remedy: "Use \(bound)")
        }
    }

    /// Greater than `lower` and at most `upper`.
    init(above lower: Value, to upper: Value) where Value: Comparable {
        self.init([("exclusiveMinimum", lower.optionJSON), ("maximum", upper.optionJSON)], nil) {
            if $0 > lower, $0 <= upper { return nil }
            let rule = "greater than \(lower.optionJSON.text()) and at most \(upper.optionJSON.text())"
            return OptionFault("\($0.optionJSON.text()) must be \(rule)", remedy: "Use such a number")
        }
    }

    private init(
        _ bounds: [(key: String, value: JSONNode)], _ usual: Value?,
        _ check: @escaping @Sendable (Value) -> OptionFault?
    ) {
        schema = Value.optionSchema.pairs + bounds + (usual.map { [("default", $0.optionJSON)] } ?? [])
        let leave = "or leave the key out\(usual.map { " for \($0.optionJSON.text())" } ?? "")."
        read = { node throws(OptionFault) in
            let value: Value
            do throws(OptionFault) { value = try Value.decodeOption(node) } catch {
                throw error.remedy.isEmpty ? OptionFault(error.what, remedy: "Correct the value, \(leave)") : error
            }
            if let fault = check(value) { throw OptionFault(fault.what, remedy: "\(fault.remedy), \(leave)") }
            return value
        }
    }
}

extension DropPolicy: @retroactive OptionChoice {}
extension JoinMatch: @retroactive OptionChoice {}
extension JoinEnd: @retroactive OptionChoice {}
extension OnError: @retroactive OptionChoice {}
extension IsolationRequest.OnDeath: @retroactive OptionChoice {}
extension IsolationRequest.Sandbox: @retroactive OptionChoice {}

/// An object of the chain file: its keys, in the order in which people read them.
struct ChainObject<Object>: Sendable {
    /// What it is, at the beginning of a sentence: `A link`.
    let title: String
    let help: String
    let example: String
    /// Whether it may have keys that are not declared here: a stage has its options.
    var isOpen = false
    let keys: [ChainKey<Object>]
    /// What else to say where a key is unknown.
    var hint = ""

    var names: [String] { keys.map(\.name) }

    /// JSON Schema of the object.
    ///
    /// - Parameters:
    ///   - values: What else is known of the values of keys that depend on the plugins.
    ///   - further: Further properties.
    func schema(
        values: [String: JSONNode] = [:], further: [(key: String, value: JSONNode)] = []
    ) -> [(key: String, value: JSONNode)] {
        let properties = keys.map { key in
            (key: key.name, value: JSONNode.object(key.schema + (values[key.name]?.pairs ?? [])))
        }
        let required = keys.filter { $0.example != nil }.map { JSONNode.string($0.name) }
        let needs = keys.compactMap { key in key.needs.map { (key: key.name, value: JSONNode.array([.string($0)])) } }
        return [("type", "object"), ("description", .string(help))]
            + (required.isEmpty ? [] : [("required", .array(required))])
            + (isOpen ? [] : [("additionalProperties", false)])
            + [("properties", .object(properties + further))]
            + (needs.isEmpty ? [] : [("dependentRequired", .object(needs))])
    }
}

/// What reads a part of the chain file, and collects its faults.
protocol ChainPartReader {
    /// The file's name as the user wrote it.
    var name: String { get }
    var faults: [FrameHostError] { get set }
}

extension ChainPartReader {
    /// - Parameter key: The key whose name is unknown, if that is the fault.
    mutating func fault(
        _ place: TextPlace, _ path: String, _ what: String, _ remedy: String, unknown key: String? = nil
    ) {
        faults.append(
            FrameHostError(
                .invalidConfiguration, place: FaultPlace(file: name, position: place, path: path), what: what,
                remedy: remedy, reason: key.map { _ in .noSuchKey }, option: key))
    }

    mutating func fault(_ node: JSONNode, _ path: String, _ what: String, _ remedy: String) {
        fault(node.place, path, what, remedy)
    }

    /// Reads the keys of `form` that can be read by themselves, and looks whether the others may be there.
    ///
    /// - Parameter further: Further keys that the object may have, which the caller reads.
    /// - Returns: False where `node` is not an object.
    @discardableResult
    mutating func read<Object>(
        _ node: JSONNode, _ path: String, as form: ChainObject<Object>, into object: inout Object,
        further: [String] = []
    ) -> Bool {
        guard let members = node.asObject else {
            fault(node, path, "expected an object, found \(node.kindName)", "Write \(form.example).")
            return false
        }
        for key in form.keys {
            let own = path.isEmpty ? key.name : "\(path).\(key.name)"
            if let member = node[key.name] {
                do throws(OptionFault) { try key.read?(member, &object) } catch {
                    fault(member, own, error.what, error.remedy)
                }
                if let needs = key.needs, node[needs] == nil {
                    fault(
                        member, own, "'\(key.name)' needs '\(needs)', which is missing",
                        "Add '\(needs)', or leave '\(key.name)' out.")
                }
            } else if let example = key.example {
                let stranger = key.strangers.first { node[$0] != nil }
                fault(
                    node, path.isEmpty ? own : path, "'\(key.name)' is missing",
                    stranger.map { "Write '\(key.name)' instead of '\($0)'." } ?? "Add \"\(key.name)\": \(example).")
            }
        }
        let names = form.names + further
        for member in members where !form.isOpen && !names.contains(member.key) {
            fault(
                member.keyPlace, path.isEmpty ? member.key : "\(path).\(member.key)", "no such key",
                didYouMean(member.key, in: names, else: "\(form.title) has \(quotedList(names, "and")).\(form.hint)"),
                unknown: member.key)
        }
        return true
    }
}

extension JSONNode {
    /// The members of an object, to build another one from.
    fileprivate var pairs: [(key: String, value: JSONNode)] { (asObject ?? []).map { ($0.key, $0.value) } }
}
