// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// Something that can be set on a camera: brightness, exposure, focus.
struct CameraControl: Equatable {
    enum Kind { case integer, boolean, menu }

    /// An entry of a menu.
    struct Word: Equatable {
        var value: Int
        var name: String
    }

    var id: UInt32
    /// The driver's name: `Exposure Time, Absolute`.
    var title: String
    var kind: Kind
    var least: Int
    var most: Int
    var step: Int
    /// The driver's default.
    var usual: Int
    var isReadOnly: Bool
    /// Whether it has no effect now, such as exposure while it is automatic.
    var isInactive: Bool
    var words: [Word]

    /// The name in `v4l2-ctl`: `exposure_time_absolute`.
    var name: String {
        var name = ""
        for character in title.lowercased() {
            if character.isASCII, character.isLetter || character.isNumber {
                name.append(character)
            } else if !name.hasSuffix("_"), !name.isEmpty {
                name.append("_")
            }
        }
        return name.hasSuffix("_") ? String(name.dropLast()) : name
    }

    /// The number for a value of the chain file.
    ///
    /// - Throws: ``FrameHostError``, which says what is possible.
    func number(_ value: JSONNode) throws -> Int {
        guard !isReadOnly else { throw fault("can only be read", "Leave it out.") }
        if let flag = value.asBool {
            guard kind == .boolean else { throw wrong(value) }
            return flag ? 1 : 0
        }
        if let text = value.asString {
            guard let word = words.first(where: { $0.name.lowercased() == text.lowercased() }) else {
                throw wrong(value)
            }
            return word.value
        }
        guard let number = value.asInt, (least...most).contains(number),
            words.isEmpty || words.contains(where: { $0.value == number })
        else { throw wrong(value) }
        return number
    }

    private func wrong(_ value: JSONNode) -> FrameHostError {
        let found = value.asString.map { "'\($0)'" } ?? (value.asInt.map { "\($0)" } ?? value.text())
        switch kind {
        case .boolean: return fault("must be true or false, but is \(found)", "Write true or false.")
        case .menu:
            let known = words.map { "'\($0.name)' (\($0.value))" }.joined(separator: ", ")
            return fault(
                "must be one of its values, but is \(found)",
                known.isEmpty ? "Use \(least)...\(most)." : "Use \(known).")
        case .integer:
            let steps = step > 1 ? " in steps of \(step)" : ""
            guard let number = value.asInt else {
                return fault("must be a whole number, but is \(found)", "Use \(least)...\(most)\(steps).")
            }
            return fault(
                "\(found) must be from \(least) to \(most)\(steps)",
                number < least ? "Use \(least) or more." : "Use \(most) or less.")
        }
    }

    private func fault(_ what: String, _ remedy: String) -> FrameHostError {
        FrameHostError(.invalidConfiguration, place: "controls.\(name)", what: what, remedy: remedy)
    }

    /// For `framehost devices`.
    var field: OptionField {
        let type =
            switch kind {
            case .integer: "integer"
            case .boolean: "true or false"
            case .menu: words.map { "\"\($0.name)\"" }.joined(separator: ", ")
            }
        let isNumber = kind == .integer
        let word = words.first { $0.value == usual }
        let now = isReadOnly ? "Read-only." : isInactive ? "Has no effect with the camera's current settings." : ""
        let steps = isNumber && step > 1 ? "In steps of \(step)." : ""
        return OptionField(
            name: name, typeName: type, help: [now, steps].filter { !$0.isEmpty }.joined(separator: " "), isLive: true,
            defaultValue: kind == .boolean ? .bool(usual != 0) : word.map { .string($0.name) } ?? .number(usual),
            minimum: isNumber ? .number(least) : nil, maximum: isNumber ? .number(most) : nil)
    }
}

/// The option `controls`: names and values as in the chain file. Only the camera tells what they mean.
struct ControlValues: OptionValue {
    var members: [JSONNode.Member] = []

    static func decodeOption(_ node: JSONNode) throws(OptionFault) -> ControlValues {
        guard let members = node.asObject else {
            throw OptionFault(
                "expected an object, found \(node.kindName)", remedy: "Write names and values: { \"brightness\": 140 }")
        }
        return ControlValues(members: members)
    }
    var optionJSON: JSONNode { JSONNode(.object(members)) }
    static var optionTypeName: String { "object" }
    static var optionSchema: JSONNode { ["type": "object"] }

    static func == (a: ControlValues, b: ControlValues) -> Bool {
        a.optionJSON.withoutPlaces == b.optionJSON.withoutPlaces
    }

    /// The settings for a camera with these controls, in the order of the chain file, so that automatic exposure can be
    /// switched off before the exposure is set.
    ///
    /// - Throws: ``FrameHostErrors``: all that does not fit.
    func settings(_ controls: [CameraControl]) throws -> [(control: CameraControl, number: Int)] {
        var settings: [(CameraControl, Int)] = []
        var faults: [FrameHostError] = []
        for member in members {
            do {
                guard let control = controls.first(where: { $0.name == member.key || $0.title == member.key }) else {
                    throw FrameHostError(
                        .invalidConfiguration, place: "controls.\(member.key)", what: "the camera has no such control",
                        remedy: Suggestion.nearest(to: member.key, in: controls.map(\.name)).map {
                            "Did you mean '\($0)'?"
                        }
                            ?? (controls.isEmpty
                                ? "Leave 'controls' out: the camera has no controls."
                                : "Use one of the camera's controls: \(controls.map(\.name).joined(separator: ", "))."))
                }
                settings.append((control, try control.number(member.value)))
            } catch {
                faults.append(.wrap(error))
            }
        }
        if !faults.isEmpty { throw FrameHostErrors(faults) }
        return settings
    }
}
