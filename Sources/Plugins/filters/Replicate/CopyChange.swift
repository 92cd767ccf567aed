// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Shared

/// How one copy differs: an object with any of these keys. An absent key means the original's value, or that of the
/// change that this one overrides.
struct CopyChange: OptionValue {
    /// The distance to the right and down from the middle of the cell; shares are of the cell.
    var x: Extent?
    var y: Extent?
    /// 1 fits the cell.
    var scale: Double?
    /// Degrees, clockwise.
    var rotate: Double?
    /// Left to right, before turning.
    var mirror: Bool?
    /// Frames.
    var delay: Int?
    /// Multiplies brightness; black stays black.
    var gain: Double?
    /// White becomes this colour.
    var tint: RGBColor?
    /// By how many degrees every hue is turned.
    var hue: Double?
    /// 0 is invisible, 1 covers everything below.
    var opacity: Double?

    /// The values of this change, with those of `other` where it has none.
    func over(_ other: CopyChange) -> CopyChange {
        CopyChange(
            x: x ?? other.x, y: y ?? other.y, scale: scale ?? other.scale, rotate: rotate ?? other.rotate,
            mirror: mirror ?? other.mirror,
            delay: delay ?? other.delay, gain: gain ?? other.gain, tint: tint ?? other.tint, hue: hue ?? other.hue,
            opacity: opacity ?? other.opacity)
    }

    private static let keys = ["x", "y", "scale", "rotate", "mirror", "delay", "gain", "tint", "hue", "opacity"]

    static func decodeOption(_ node: JSONNode) throws(OptionFault) -> CopyChange {
        guard let members = node.asObject else {
            throw OptionFault(
                "expected an object, found \(node.kindName)", remedy: "Write an object such as { \"scale\": 0.5 }.")
        }
        var change = CopyChange()
        for member in members {
            do throws(OptionFault) {
                try change.set(member.key, member.value)
            } catch {
                throw OptionFault("\(member.key): \(error.what)", remedy: error.remedy)
            }
        }
        return change
    }

    private mutating func set(_ key: String, _ value: JSONNode) throws(OptionFault) {
        switch key {
        case "x": x = try Extent.decodeOption(value)
        case "y": y = try Extent.decodeOption(value)
        case "scale": scale = try Self.number(value, 0.01...16)
        case "rotate": rotate = try Self.number(value, -36_000...36_000)
        case "mirror": mirror = try Bool.decodeOption(value)
        case "delay":
            _ = try Self.number(value, 0...Double(ReplicateOptions.mostDelay))
            delay = try Int.decodeOption(value)
        case "gain": gain = try Self.number(value, 0...8)
        case "tint": tint = try RGBColor.decodeOption(value)
        case "hue": hue = try Self.number(value, -36_000...36_000)
        case "opacity": opacity = try Self.number(value, 0...1)
        default:
            throw OptionFault(
                "no such key",
                remedy: Suggestion.nearest(to: key, in: Self.keys).map { "Did you mean '\($0)'?" }
                    ?? "Use one of \(Self.keys.joined(separator: ", ")).")
        }
    }

    private static func number(_ node: JSONNode, _ range: ClosedRange<Double>) throws(OptionFault) -> Double {
        let value = try Double.decodeOption(node)
        guard range.contains(value) else {
            let (lower, upper) = (range.lowerBound.optionJSON.text(), range.upperBound.optionJSON.text())
            throw OptionFault(
                "\(node.text()) must be from \(lower) to \(upper)",
                remedy: value < range.lowerBound ? "Use \(lower) or more." : "Use \(upper) or less.")
        }
        return value
    }

    var optionJSON: JSONNode {
        let members: [(key: String, value: JSONNode?)] = [
            ("x", x?.optionJSON), ("y", y?.optionJSON), ("scale", scale?.optionJSON), ("rotate", rotate?.optionJSON),
            ("mirror", mirror?.optionJSON), ("delay", delay?.optionJSON), ("gain", gain?.optionJSON),
            ("tint", tint?.optionJSON),
            ("hue", hue?.optionJSON), ("opacity", opacity?.optionJSON),
        ]
        return .object(members.compactMap { member in member.value.map { (member.key, $0) } })
    }
    static var optionTypeName: String { "object" }
    static var optionSchema: JSONNode {
        let number: JSONNode = ["type": "number"]
        return [
            "type": "object", "additionalProperties": false,
            "properties": [
                "x": Extent.optionSchema, "y": Extent.optionSchema, "scale": number, "rotate": number,
                "mirror": ["type": "boolean"],
                "delay": ["type": "integer"], "gain": number, "tint": RGBColor.optionSchema, "hue": number,
                "opacity": number,
            ],
        ]
    }
}
