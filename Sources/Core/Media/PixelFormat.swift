// SPDX-License-Identifier: Apache-2.0

/// How the samples of a picture lie in memory.
public enum PixelFormat: String, Sendable, Hashable, CaseIterable, Codable {
    /// Planar 4:2:0, 8 bit: Y `height` rows, then U and V with `(height + 1) / 2` rows of `(width + 1) / 2` bytes.
    case i420
    /// 4:2:0, 8 bit: Y `height` rows, then interleaved UV, `(height + 1) / 2` rows of `(width + 1) / 2` pairs.
    case nv12
    /// Packed 4:2:2, 8 bit: Y0 U Y1 V, `(width + 1) / 2` groups of four bytes a row.
    case yuyv
    /// Packed, 8 bit: blue, green, red, alpha in the order of memory.
    case bgra
    /// Packed, 8 bit: red, green, blue in the order of memory.
    case rgb24
    /// One plane of luma, 8 bit.
    case gray8
    /// As i420, 10 bit in the low bits of little-endian 16-bit samples. Accepted from sources; converted at the first
    /// stage.
    case i010
    /// As nv12, 10 bit in the high bits of little-endian 16-bit samples. Accepted from sources; converted at the first
    /// stage.
    case p010

    /// How many planes a picture has.
    public var planeCount: Int {
        switch self {
        case .i420, .i010: 3
        case .nv12, .p010: 2
        case .yuyv, .bgra, .rgb24, .gray8: 1
        }
    }

    /// Bits of one sample: 8 or 10.
    public var bitDepth: Int { self == .i010 || self == .p010 ? 10 : 8 }
    /// Whether the samples are red, green and blue rather than luma and chroma.
    public var isRGB: Bool { self == .bgra || self == .rgb24 }

    /// Bytes of one row of plane `index` without padding.
    public func rowBytes(plane index: Int, width: Int) -> Int {
        let half = (width + 1) / 2
        return switch self {
        case .i420: index == 0 ? width : half
        case .nv12: index == 0 ? width : half * 2
        case .yuyv: half * 4
        case .bgra: width * 4
        case .rgb24: width * 3
        case .gray8: width
        case .i010: (index == 0 ? width : half) * 2
        case .p010: (index == 0 ? width : half * 2) * 2
        }
    }

    /// Rows of plane `index`.
    public func rows(plane index: Int, height: Int) -> Int {
        index == 0 || planeCount == 1 ? height : (height + 1) / 2
    }
}
