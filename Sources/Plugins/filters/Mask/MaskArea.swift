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
        count: corners, required: true) var polygon: [AreaPoint] = []
    @Option(
        help:
            "What covers the area: a colour, \"blur\" or \"pixelate\". Blur and mosaic can be undone in part, a colour cannot."
    ) var with = MaskCover.color(RGBColor(red: 0, green: 0, blue: 0))

    /// The polygon in pixels of a stored picture.
    func outline(_ format: VideoFormat, lying orientation: Orientation) -> [PicturePoint] {
        polygon.outline(width: format.width, height: format.height, lying: orientation)
    }
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
