// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Shared

/// One area of the upright picture, and what covers it.
struct MaskArea: OptionObject {
    /// How many corners a polygon may have.
    static let corners = 3...64
    /// The most areas.
    static let most = 64

    @Option(
        help:
            "The area's corners in order around it, as [x, y] in fractions of the upright picture's width and height: [0, 0] is its left upper corner, [1, 1] its right lower one.",
        count: corners, required: true) var polygon: [MaskPoint] = []
    @Option(
        help:
            "What covers the area: a colour, \"blur\" or \"pixelate\". Blur and mosaic can be undone in part, a colour cannot."
    ) var with = MaskCover.color(RGBColor(red: 0, green: 0, blue: 0))

    /// The polygon in pixels of a stored picture.
    func outline(_ format: VideoFormat, lying orientation: Orientation) -> [PicturePoint] {
        let (width, height) = (Double(format.width), Double(format.height))
        let (right, bottom) = orientation.swapsSides ? (height, width) : (width, height)
        return polygon.map {
            orientation.stored(PicturePoint(x: $0.x * right, y: $0.y * bottom), width: width, height: height)
        }
    }
}

/// A corner of an area, in fractions of the upright picture's sides.
struct MaskPoint: OptionValue {
    var x: Double
    var y: Double

    static func decodeOption(_ node: JSONNode) throws(OptionFault) -> MaskPoint {
        let numbers = node.asArray?.compactMap(\.asDouble) ?? []
        guard numbers.count == 2, node.asArray?.count == 2, numbers.allSatisfy({ (0...1).contains($0) }) else {
            throw OptionFault(
                "\(node.text()) must be a point [x, y] of two numbers from 0 to 1",
                remedy: "Write fractions of the picture's width and height, such as [0.25, 0.5].")
        }
        return MaskPoint(x: numbers[0], y: numbers[1])
    }
    var optionJSON: JSONNode { [.init(fraction: x), .init(fraction: y)] }
    static var optionTypeName: String { "point [x, y]" }
    static var optionSchema: JSONNode {
        [
            "type": "array", "minItems": 2, "maxItems": 2,
            "items": ["type": "number", "minimum": 0, "maximum": 1],
        ]
    }
}

extension JSONNode {
    /// 0 and 1 without a decimal point.
    fileprivate init(fraction: Double) { self = fraction.optionJSON }
}

/// What covers an area.
enum MaskCover: OptionValue, Hashable {
    case color(RGBColor)
    case blur
    case pixelate

    static func decodeOption(_ node: JSONNode) throws(OptionFault) -> MaskCover {
        switch node.asString {
        case "blur": return .blur
        case "pixelate": return .pixelate
        case let text?:
            if text.hasPrefix("#") { return .color(try RGBColor.decodeOption(node)) }
            let near = Suggestion.nearest(to: text, in: ["blur", "pixelate"])
            throw OptionFault(
                "\(node.text()) must be a colour, \"blur\" or \"pixelate\"",
                remedy: near.map { "Did you mean '\($0)'?" } ?? "Write a colour as \"#rrggbb\", such as \"#000000\".")
        case nil:
            throw OptionFault(
                "expected a colour, \"blur\" or \"pixelate\", found \(node.kindName)",
                remedy: "Write a colour as \"#rrggbb\", such as \"#000000\".")
        }
    }
    var optionJSON: JSONNode {
        switch self {
        case .color(let color): color.optionJSON
        case .blur: "blur"
        case .pixelate: "pixelate"
        }
    }
    static var optionTypeName: String { "colour, \"blur\" or \"pixelate\"" }
    static var optionSchema: JSONNode { ["anyOf": [["enum": ["blur", "pixelate"]], RGBColor.optionSchema]] }
}
