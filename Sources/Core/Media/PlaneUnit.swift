// SPDX-License-Identifier: Apache-2.0

/// The smallest run of bytes of one plane that can be painted alone: one sample, one pair, one group.
public struct PlaneUnit: Sendable {
    /// At most four.
    public var bytes: Int
    /// A unit covers `1 << xShift` pixels of each of its rows.
    public var xShift: Int
    /// It covers `1 << yShift` rows.
    public var yShift: Int

    /// A unit of so many bytes, for so many pixels.
    @inlinable public init(bytes: Int, xShift: Int, yShift: Int) {
        self.bytes = bytes
        self.xShift = xShift
        self.yShift = yShift
    }

    /// The unit of a plane of a format.
    @inlinable public static func of(_ format: PixelFormat, plane: Int) -> PlaneUnit {
        let isChroma = plane > 0
        return switch format {
        case .i420: PlaneUnit(bytes: 1, xShift: isChroma ? 1 : 0, yShift: isChroma ? 1 : 0)
        case .i010: PlaneUnit(bytes: 2, xShift: isChroma ? 1 : 0, yShift: isChroma ? 1 : 0)
        case .nv12: PlaneUnit(bytes: isChroma ? 2 : 1, xShift: isChroma ? 1 : 0, yShift: isChroma ? 1 : 0)
        case .p010: PlaneUnit(bytes: isChroma ? 4 : 2, xShift: isChroma ? 1 : 0, yShift: isChroma ? 1 : 0)
        case .yuyv: PlaneUnit(bytes: 4, xShift: 1, yShift: 0)
        case .bgra: PlaneUnit(bytes: 4, xShift: 0, yShift: 0)
        case .rgb24: PlaneUnit(bytes: 3, xShift: 0, yShift: 0)
        case .gray8: PlaneUnit(bytes: 1, xShift: 0, yShift: 0)
        }
    }
}
