// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// A corner of an area that an option names, in fractions of the upright picture's sides.
package struct AreaPoint: OptionValue, Hashable {
    package var x: Double
    package var y: Double

    package static func decodeOption(_ node: JSONNode) throws(OptionFault) -> AreaPoint {
        let numbers = node.asArray?.compactMap(\.asDouble) ?? []
        guard numbers.count == 2, node.asArray?.count == 2, numbers.allSatisfy({ (0...1).contains($0) }) else {
            throw OptionFault(
                "\(node.text()) must be a point [x, y] of two numbers from 0 to 1",
                remedy: "Write fractions of the picture's width and height, such as [0.25, 0.5].")
        }
        return AreaPoint(x: numbers[0], y: numbers[1])
    }
    package var optionJSON: JSONNode { [x.optionJSON, y.optionJSON] }
    package static var optionTypeName: String { "point [x, y]" }
    package static var optionSchema: JSONNode {
        [
            "type": "array", "minItems": 2, "maxItems": 2,
            "items": ["type": "number", "minimum": 0, "maximum": 1],
        ]
    }
}

extension [AreaPoint] {
    /// Whether all corners lie on one line, so that there is no inside.
    package var isFlat: Bool {
        guard let first, let second = self.first(where: { $0 != first }) else { return !isEmpty }
        return allSatisfy { corner in
            let cross = (second.x - first.x) * (corner.y - first.y) - (second.y - first.y) * (corner.x - first.x)
            return cross.magnitude < 1e-9
        }
    }

    /// The polygon in pixels of a stored picture that has so many, or in any other unit.
    package func outline(width: Int, height: Int, lying orientation: Orientation) -> [PicturePoint] {
        let (width, height) = (Double(width), Double(height))
        let (right, bottom) = orientation.swapsSides ? (height, width) : (width, height)
        return map {
            orientation.stored(PicturePoint(x: $0.x * right, y: $0.y * bottom), width: width, height: height)
        }
    }
}
