// SPDX-License-Identifier: Apache-2.0

/// The weights of red and blue in luma, which define a matrix of ISO/IEC 23091-2 (H.273, table 4).
public struct LumaWeights: Sendable, Equatable {
    /// The weight of red.
    public var red: Double
    /// The weight of blue.
    public var blue: Double
    /// The weight of green: what the two others leave.
    public var green: Double { 1 - red - blue }

    /// BT.601.
    public static let bt601 = LumaWeights(red: 0.299, blue: 0.114)
    /// FCC, 47 CFR 73.682.
    public static let fcc = LumaWeights(red: 0.3, blue: 0.11)
    /// SMPTE ST 240.
    public static let smpte240M = LumaWeights(red: 0.212, blue: 0.087)
    /// BT.709.
    public static let bt709 = LumaWeights(red: 0.2126, blue: 0.0722)
    /// BT.2020.
    public static let bt2020 = LumaWeights(red: 0.2627, blue: 0.0593)

    /// The weights of a format; see ``VideoFormat/assumedMatrix``.
    public init(of format: VideoFormat) {
        self =
            switch format.assumedMatrix {
            case 1: .bt709
            case 4: .fcc
            case 7: .smpte240M
            case 9, 10: .bt2020
            default: .bt601
            }
    }

    /// The weights of another matrix.
    public init(red: Double, blue: Double) {
        self.red = red
        self.blue = blue
    }
}
