// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// How the samples of a picture lie in a y4m stream: planes in the order Y, U, V, rows without padding.
enum Y4MFormat: Equatable {
    case planar420
    /// 10 bit in the low bits of little-endian 16-bit samples.
    case planar420Of10
    case planar422
    case mono

    /// The format in the chain.
    var pixelFormat: PixelFormat {
        switch self {
        case .planar420: .i420
        case .planar420Of10: .i010
        case .planar422: .yuyv
        case .mono: .gray8
        }
    }

    /// The format in which a chain's pictures are written; nil for RGB, which y4m does not have.
    init?(_ format: PixelFormat) {
        switch format {
        case .i420, .nv12: self = .planar420
        case .i010, .p010: self = .planar420Of10
        case .yuyv: self = .planar422
        case .gray8: self = .mono
        case .bgra, .rgb24: return nil
        }
    }

    /// Bytes of one picture. Sides are within ``VideoFormat/sides``, so nothing overflows.
    func byteCount(width: Int, height: Int) -> Int {
        let (halfWidth, halfHeight) = ((width + 1) / 2, (height + 1) / 2)
        return switch self {
        case .planar420: width * height + 2 * halfWidth * halfHeight
        case .planar420Of10: 2 * (width * height + 2 * halfWidth * halfHeight)
        case .planar422: (width + 2 * halfWidth) * height
        case .mono: width * height
        }
    }

    /// The words behind `C`, each with its format and its chroma siting (``ColorDescription/chromaSiting``), as
    /// mjpegtools and ffmpeg write them.
    static let words: [(word: String, format: Y4MFormat, siting: UInt8)] = [
        ("420jpeg", .planar420, 2), ("420mpeg2", .planar420, 1), ("420paldv", .planar420, 3), ("420", .planar420, 2),
        ("420p10", .planar420Of10, 1), ("422", .planar422, 1), ("mono", .mono, 0),
    ]

    /// The word for pictures of a chain.
    func word(siting: UInt8) -> String {
        Self.words.first { $0.format == self && $0.siting == siting }?.word
            ?? (self == .planar420 ? "420jpeg" : Self.words.first { $0.format == self }!.word)
    }
}
