// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// A length in a picture: pixels, written as a number, or a share of something, written `"5%"`.
package enum Extent: OptionValue, CustomStringConvertible {
    case pixels(Double)
    /// Per cent.
    case share(Double)

    /// In pixels, where a share is one of `whole`.
    package func pixels(of whole: Double) -> Double {
        switch self {
        case .pixels(let pixels): pixels
        case .share(let share): share / 100 * whole
        }
    }

    package func pixels(of whole: Int) -> Double { pixels(of: Double(whole)) }

    package var isNegative: Bool {
        switch self {
        case .pixels(let value), .share(let value): value < 0
        }
    }

    /// No picture reaches beyond these.
    private static let bounds = -100_000.0...100_000.0

    package static func decodeOption(_ node: JSONNode) throws(OptionFault) -> Extent {
        if let pixels = node.asDouble, bounds.contains(pixels) { return .pixels(pixels) }
        let share = node.asString.flatMap { $0.hasSuffix("%") ? Double($0.dropLast()) : nil }
        if let share, bounds.contains(share) { return .share(share) }
        if node.asDouble != nil || share != nil {
            throw OptionFault(
                "\(node.text()) must be from -100000 to 100000 \(share == nil ? "pixels" : "%")",
                remedy: "Use a number in this range.")
        }
        throw OptionFault(
            "\(node.text()) must be a length in pixels or a percentage",
            remedy: "Write a number of pixels, such as 24, or a percentage, such as \"5%\"."
        )
    }

    package var description: String {
        switch self {
        case .pixels(let pixels): pixels.optionJSON.text()
        case .share(let share): "\(share.optionJSON.text())%"
        }
    }

    package var optionJSON: JSONNode {
        switch self {
        case .pixels(let pixels): pixels.optionJSON
        case .share: .string(description)
        }
    }
    package static var optionTypeName: String { "pixels or share" }
    package static var optionSchema: JSONNode {
        ["anyOf": [["type": "number"], ["type": "string", "pattern": "^-?[0-9]+([.][0-9]+)?%$"]]]
    }
}
