// SPDX-License-Identifier: Apache-2.0

/// What a conversion between two pixel formats costs in quality and time; lower is better.
enum FormatCost {
    static func best(from format: PixelFormat, among accepted: [PixelFormat]) -> PixelFormat? {
        accepted.enumerated().min { a, b in
            (cost(from: format, to: a.element), a.offset) < (cost(from: format, to: b.element), b.offset)
        }?.element
    }

    /// Lost chroma, lost depth and a conversion by a matrix count more than written bytes.
    static func cost(from: PixelFormat, to: PixelFormat) -> Int {
        if from == to { return 0 }
        func chroma(_ format: PixelFormat) -> Int {
            switch format {
            case .gray8: 0
            case .i420, .nv12, .i010, .p010: 1
            case .yuyv: 2
            case .bgra, .rgb24: 3
            }
        }
        var cost = 1
        if chroma(to) < chroma(from) { cost += 20 * (chroma(from) - chroma(to)) }
        if from.bitDepth > to.bitDepth { cost += 10 }
        if from.isRGB != to.isRGB { cost += 25 }
        if to == .gray8 { cost += 100 }
        if to.isRGB { cost += 3 }
        // Formats that differ only in interleaving are the cheapest to convert.
        if (from == .i420 && to == .nv12) || (from == .nv12 && to == .i420) { cost -= 1 }
        return cost
    }
}
