// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Shared

/// The part of a pattern that stands still: bands of equal rows, each band kept as one model row.
///
/// A frame is painted by copying model rows, so the source reads a few kilobytes, which stay in the processor's
/// first-level cache, and only writes the picture. No copy of a whole picture is kept. Memory is made here, once;
/// painting allocates nothing.
struct Background {
    private struct Band {
        let top: Int
        let bottom: Int
        let model: ScratchPicture
    }

    private let format: VideoFormat
    private var bands: [Band] = []

    init(_ pattern: TestPattern, color: RGBColor, format: VideoFormat) {
        self.format = format
        let width = format.width
        let height = format.height
        switch pattern {
        case .bars:
            let reverse = height * 2 / 3 / 2 * 2
            let lowest = height * 3 / 4 / 2 * 2
            addBand(0, reverse) { $0.columns(Self.bars, format) }
            addBand(reverse, lowest) { $0.columns(Self.reverseBars, format) }
            addBand(lowest, height) { $0.columns(Self.lowestRow, format) }
        case .gradient:
            let step = 1 << PlaneUnit.of(format.pixelFormat, plane: 0).xShift
            addBand(0, height) { picture in
                for x in stride(from: 0, to: width, by: step) {
                    let level = UInt8((x * 255 + (width - 1) / 2) / max(width - 1, 1))
                    picture.fill(
                        x: x, y: 0, width: step, height: 2,
                        Paint(RGBColor(red: level, green: level, blue: level), for: format))
                }
            }
        case .balls: addBand(0, height) { $0.columns([(1, 0x101828)], format) }
        case .checker:
            let side = max(height / 18 * 2, 2)
            let columns = (width + side - 1) / side
            for (row, top) in stride(from: 0, to: height, by: side).enumerated() {
                if row > 1 {
                    bands.append(Band(top: top, bottom: min(top + side, height), model: bands[row % 2].model))
                    continue
                }
                addBand(top, min(top + side, height)) { picture in
                    for column in 0..<columns {
                        let paint = Paint(RGBColor(hex: (row + column) % 2 == 0 ? 0xC0C0C0 : 0x404040), for: format)
                        picture.fill(x: column * side, y: 0, width: side, height: 2, paint)
                    }
                }
            }
        case .flash:
            addBand(0, height) { $0.fill(x: 0, y: 0, width: width, height: 2, Paint(RGBColor(hex: 0), for: format)) }
        case .solid: addBand(0, height) { $0.fill(x: 0, y: 0, width: width, height: 2, Paint(color, for: format)) }
        case .none: break
        }
    }

    func paint(_ picture: Picture) {
        for band in bands { picture.copyRows(top: band.top, bottom: band.bottom, of: band.model.picture) }
    }

    /// A band whose model row `paint` makes. `top` is even, so that no chroma row belongs to two bands.
    private mutating func addBand(_ top: Int, _ bottom: Int, _ paint: (Picture) -> Void) {
        guard top < bottom else { return }
        // Two rows share a chroma row: the model is two pixels high.
        let model = ScratchPicture(format.pixelFormat, width: format.width, height: 2)
        paint(model.picture)
        bands.append(Band(top: top, bottom: bottom, model: model))
    }

    // Parts of the width and colours (0xRRGGBB) from left to right.
    private static let bars: [(Int, UInt32)] = [
        (1, 0xBFBFBF), (1, 0xBFBF00), (1, 0x00BFBF), (1, 0x00BF00), (1, 0xBF00BF), (1, 0xBF0000), (1, 0x0000BF),
    ]
    private static let reverseBars: [(Int, UInt32)] = [
        (1, 0x0000BF), (1, 0x131313), (1, 0xBF00BF), (1, 0x131313), (1, 0x00BFBF), (1, 0x131313), (1, 0xBFBFBF),
    ]
    /// -I, white, +Q, black; then three steps of near black for setting a screen.
    private static let lowestRow: [(Int, UInt32)] = [
        (15, 0x00214C), (15, 0xFFFFFF), (15, 0x32006A), (15, 0x000000), (4, 0x090909), (4, 0x131313), (4, 0x1D1D1D),
        (12, 0x000000),
    ]
}

extension Picture {
    /// Fills both rows of a model with columns; borders lie at even pixels.
    fileprivate func columns(_ columns: [(parts: Int, color: UInt32)], _ format: VideoFormat) {
        let whole = columns.reduce(0) { $0 + $1.parts }
        var parts = 0
        for (index, column) in columns.enumerated() {
            let left = width * parts / whole / 2 * 2
            parts += column.parts
            let right = index == columns.count - 1 ? width : width * parts / whole / 2 * 2
            fill(x: left, y: 0, width: right - left, height: 2, Paint(RGBColor(hex: column.color), for: format))
        }
    }
}

extension RGBColor {
    /// 0xRRGGBB.
    init(hex: UInt32) {
        self.init(
            red: UInt8(truncatingIfNeeded: hex >> 16), green: UInt8(truncatingIfNeeded: hex >> 8),
            blue: UInt8(truncatingIfNeeded: hex))
    }
}
