// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// A parameter as its effect declares it.
struct EffectParameter: Equatable {
    /// frei0r.h, PARAM_TYPE.
    enum Kind: Equatable { case bool, number, color, position, string }

    var index: Int
    var name: String
    var kind: Kind
    /// The effect's own description; may be empty.
    var explanation: String

    /// A value of the chain file, in the effect's types.
    enum Value: Equatable {
        case bool(Bool)
        case number(Double)
        case color(RGBColor)
        case position(x: Double, y: Double)
        case string(String)
    }

    /// As `framehost describe` shows it.
    func field(defaultValue: JSONNode?) -> OptionField {
        let type =
            switch kind {
            case .bool: Bool.optionTypeName
            case .number: Double.optionTypeName
            case .color: RGBColor.optionTypeName
            case .position: "[x, y]"
            case .string: String.optionTypeName
            }
        let hasRange = kind == .number || kind == .position
        return OptionField(
            name: name, typeName: type, help: explanation.oneLine, isLive: true, defaultValue: defaultValue ?? .null,
            minimum: hasRange ? 0 : nil, maximum: hasRange ? 1 : nil)
    }

    var typeName: String {
        switch kind {
        case .bool: "true or false"
        case .number: "0...1"
        case .color: "\"#rrggbb\""
        case .position: "[x, y], each 0...1"
        case .string: "string"
        }
    }

    /// What to write for a value of this kind.
    private var remedy: String {
        switch kind {
        case .bool: "Write true or false, without quotes."
        case .number: "Write a number from 0 to 1, such as 0.5."
        case .color: "Write a colour, such as \"#20a0ff\"."
        case .position: "Write two numbers from 0 to 1, such as [0.5, 0.5]."
        case .string: "Write the text in double quotes."
        }
    }

    /// The value of `node`.
    ///
    /// - Throws: ``OptionFault``. frei0r has one range for all numbers, 0...1.
    func value(_ node: JSONNode) throws(OptionFault) -> Value {
        let unit = 0.0...1.0
        switch kind {
        case .bool: if let flag = node.asBool { return .bool(flag) }
        case .number:
            if let number = node.asDouble {
                guard unit.contains(number) else {
                    throw OptionFault(
                        "\(node.text()) must be from 0 to 1",
                        remedy: "Use a number from 0 to 1: frei0r has no other range.")
                }
                return .number(number)
            }
        case .color: if node.asString != nil { return .color(try RGBColor.decodeOption(node)) }
        case .position:
            if let list = node.asArray, list.count == 2, let x = list[0].asDouble, let y = list[1].asDouble,
                unit.contains(x),
                unit.contains(y)
            {
                return .position(x: x, y: y)
            }
        case .string: if let text = node.asString { return .string(text) }
        }
        throw OptionFault("expected \(typeName), found \(node.text())", remedy: remedy)
    }
}

extension EffectParameters {
    /// These values as values of an effect's parameters.
    ///
    /// - Parameter list: One line for each parameter the effect has, for the fault.
    /// - Throws: ``FrameHostError`` with the first fault; its cause has the others, and `list` where that helps.
    func values(
        for parameters: [EffectParameter], of effect: String, list: () -> String
    ) throws -> [(parameter: EffectParameter, value: EffectParameter.Value)] {
        var faults: [FrameHostError] = []
        var isListWanted = false
        var values: [(EffectParameter, EffectParameter.Value)] = []
        for member in members {
            let place = "parameters.\(member.key)"
            guard let parameter = parameters.first(where: { $0.name.lowercased() == member.key.lowercased() }) else {
                let near = Suggestion.nearest(to: member.key, in: parameters.map(\.name))
                isListWanted = isListWanted || near == nil
                faults.append(
                    FrameHostError(
                        .invalidConfiguration, place: place, what: "\(effect) has no such parameter",
                        remedy: near.map { "Did you mean '\($0)'?" }
                            ?? (parameters.isEmpty
                                ? "Leave 'parameters' out: this effect has none."
                                : "Use one of the parameters listed below.")))
                continue
            }
            do { values.append((parameter, try parameter.value(member.value))) } catch {
                faults.append(
                    FrameHostError(.invalidConfiguration, place: place, what: error.what, remedy: error.remedy))
            }
        }
        guard var first = faults.first else { return values }
        let further = faults.dropFirst().map(\.description) + (isListWanted && !parameters.isEmpty ? [list()] : [])
        first.cause = further.joined(separator: "\n")
        throw first
    }
}
