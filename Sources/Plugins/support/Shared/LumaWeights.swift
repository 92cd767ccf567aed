// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// The weights of red and blue in luma, which define a matrix of ISO/IEC 23091-2 (H.273, table 4).
package struct LumaWeights: Sendable, Equatable {
    package var red: Double
    package var blue: Double
    package var green: Double { 1 - red - blue }

    package static let bt601 = LumaWeights(red: 0.299, blue: 0.114)
    package static let fcc = LumaWeights(red: 0.3, blue: 0.11)
    package static let smpte240M = LumaWeights(red: 0.212, blue: 0.087)
    package static let bt709 = LumaWeights(red: 0.2126, blue: 0.0722)
    package static let bt2020 = LumaWeights(red: 0.2627, blue: 0.0593)

    /// The weights of a format; see ``FrameCore/VideoFormat/assumedMatrix``.
    package init(of format: VideoFormat) {
        self =
            switch format.assumedMatrix {
            case 1: .bt709
            case 4: .fcc
            case 7: .smpte240M
            case 9, 10: .bt2020
            default: .bt601
            }
    }

    package init(red: Double, blue: Double) {
        self.red = red
        self.blue = blue
    }
}
