// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// Distances from the left or right and from the top or bottom: one length for both, or a list of two.
package struct Margin: OptionValue {
    package var x: Extent
    package var y: Extent

    package init(x: Extent, y: Extent) { (self.x, self.y) = (x, y) }

    package static func decodeOption(_ node: JSONNode) throws(OptionFault) -> Margin {
        guard let list = node.asArray else {
            let both = try Extent.decodeOption(node)
            return Margin(x: both, y: both)
        }
        guard list.count == 2 else {
            throw OptionFault(
                "a list of margins must have two lengths, but has \(list.count)",
                remedy: "Write two lengths as [x, y], or one length without brackets."
            )
        }
        return Margin(x: try Extent.decodeOption(list[0]), y: try Extent.decodeOption(list[1]))
    }
    package var optionJSON: JSONNode { x == y ? x.optionJSON : .array([x.optionJSON, y.optionJSON]) }
    package static var optionTypeName: String { "pixels or share, or list of two" }
    package static var optionSchema: JSONNode {
        [
            "anyOf": [
                Extent.optionSchema, ["type": "array", "items": Extent.optionSchema, "minItems": 2, "maxItems": 2],
            ]
        ]
    }
}
