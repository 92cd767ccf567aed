// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Shared

/// Where inputs are shown when the chain file does not say it for each.
enum MosaicLayout: String, OptionChoice {
    /// As many columns as rows, or one more.
    case grid
    /// In one row.
    case row
    /// The first fills the picture, and the others lie over its lower edge, from the right.
    case inset
}

struct MosaicOptions: StageOptions {
    @Option(help: "Where the inputs are shown: grid, row (side by side), inset (picture in picture).", live: true)
    var layout = MosaicLayout.grid
    @Option(
        help:
            "Places for the inputs, instead of 'layout': { input, x, y, width, height }, in shares of the picture from 0 to 1. Later ones cover earlier ones.",
        live: true)
    var places: [MosaicPlace] = []
    @Option(help: "Size of the picture. Default: the first input's size.", unit: "px") var size: PictureSize? = nil
    @Option(
        help: "Pictures per second. Default: the first input's rate.",
        range: FrameRate(1, 1000)...FrameRate(1000)) var rate: FrameRate? = nil
    @Option(
        help:
            "How a picture of another shape gets into its place: contain adds bars, fill crops it to its middle, stretch distorts it.",
        live: true)
    var fit = Fit.contain
    @Option(help: "Colour where nothing is shown.", live: true) var background = RGBColor(red: 0, green: 0, blue: 0)
    @Option(help: "An input that gives nothing for this long counts as lost.", range: 0.1...3600, unit: "s")
    var lostSeconds =
        2.0
    @Option(help: "Colour shown in place of an input that is lost or has not started.", live: true)
    var slateColor = RGBColor(red: 0x20, green: 0x24, blue: 0x30)
}

/// One input's place.
struct MosaicPlace: OptionValue {
    var input: String
    var x: Double
    var y: Double
    var width: Double
    var height: Double

    static func decodeOption(_ node: JSONNode) throws(OptionFault) -> MosaicPlace {
        guard let members = node.asObject, let input = node["input"]?.asString else {
            throw OptionFault(
                "\(node.text()) must be an object whose 'input' is the id of an input",
                remedy: "Write { \"input\": \"cam\", \"x\": 0.5, \"y\": 0, \"width\": 0.5, \"height\": 0.5 }.")
        }
        var values = ["x": 0.0, "y": 0.0, "width": 1.0, "height": 1.0]
        for member in members where member.key != "input" {
            guard values[member.key] != nil else {
                throw OptionFault(
                    "the key '\(member.key)' must be 'input', 'x', 'y', 'width' or 'height'",
                    remedy: "Use one of these keys, or leave '\(member.key)' out.")
            }
            guard let value = member.value.asDouble, (0...1).contains(value) else {
                throw OptionFault(
                    "'\(member.key)' of '\(input)' must be a number from 0 to 1, but is \(member.value.text())",
                    remedy: "Write a share of the picture's width or height, such as 0.5.")
            }
            values[member.key] = value
        }
        let place = MosaicPlace(
            input: input, x: values["x"]!, y: values["y"]!, width: values["width"]!, height: values["height"]!)
        guard place.x + place.width <= 1.000_001, place.y + place.height <= 1.000_001 else {
            throw OptionFault(
                "the place of '\(input)' must lie within the picture",
                remedy:
                    "Make 'x' + 'width' at most 1, and 'y' + 'height' at most 1. A 'width' or 'height' that is left out counts as 1."
            )
        }
        return place
    }
    var optionJSON: JSONNode {
        [
            "input": .string(input), "x": JSONNode(.number("\(x)")), "y": JSONNode(.number("\(y)")),
            "width": JSONNode(.number("\(width)")), "height": JSONNode(.number("\(height)")),
        ]
    }
    static var optionTypeName: String { "place" }
    static var optionSchema: JSONNode {
        let share: JSONNode = ["type": "number", "minimum": 0, "maximum": 1]
        return [
            "type": "object", "required": ["input"], "additionalProperties": false,
            "properties": [
                "input": ["type": "string"], "x": share, "y": share, "width": share, "height": share,
            ],
        ]
    }

    /// The place in pixels of a picture of this size, with even numbers.
    func area(_ width: Int, _ height: Int) -> Rectangle {
        func even(_ share: Double, _ whole: Int) -> Int { min(Int((share * Double(whole)).rounded()), whole) & ~1 }
        let (left, top) = (even(x, width), even(y, height))
        return Rectangle(
            x: left, y: top, width: even(x + self.width, width) - left, height: even(y + self.height, height) - top)
    }
}

extension MosaicLayout {
    /// The places of these inputs.
    func places(of inputs: [String]) -> [MosaicPlace] {
        let count = inputs.count
        switch self {
        case .grid, .row:
            var columns = count
            if self == .grid {
                columns = 1
                while columns * columns < count { columns += 1 }
            }
            let rows = (count + columns - 1) / columns
            return inputs.enumerated().map { index, id in
                MosaicPlace(
                    input: id, x: Double(index % columns) / Double(columns),
                    y: Double(index / columns) / Double(rows), width: 1 / Double(columns), height: 1 / Double(rows))
            }
        case .inset:
            let width = min(0.25, 0.96 / Double(max(count - 1, 1)) - 0.02)
            return inputs.enumerated().map { index, id in
                guard index > 0 else { return MosaicPlace(input: id, x: 0, y: 0, width: 1, height: 1) }
                return MosaicPlace(
                    input: id, x: max(0.98 - Double(index) * width - Double(index - 1) * 0.02, 0), y: 0.98 - width,
                    width: width, height: width)
            }
        }
    }
}
