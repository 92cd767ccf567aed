// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// Quarter turns clockwise, written in degrees: 0, 90, 180 or 270.
package enum Rotation: Int, OptionValue, CaseIterable {
    case none = 0
    case right = 90
    case around = 180
    case left = 270

    package var quarterTurns: Int { rawValue / 90 }
    /// The orientation that turns a picture by as much.
    package var orientation: Orientation { Orientation(quarterTurns: quarterTurns, mirrored: false) }

    package static func decodeOption(_ node: JSONNode) throws(OptionFault) -> Rotation {
        guard let degrees = node.asInt, let rotation = Rotation(rawValue: degrees) else {
            throw OptionFault(
                "\(node.text()) must be 0, 90, 180 or 270", remedy: "Write the number of degrees to rotate clockwise")
        }
        return rotation
    }
    package var optionJSON: JSONNode { .number(rawValue) }
    package static var optionTypeName: String { "0, 90, 180, 270" }
    package static var optionSchema: JSONNode { ["enum": [0, 90, 180, 270]] }
}
