// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// One component of a format: where its samples lie.
struct Channel {
    let plane: Int
    /// Bytes from the row's begin to the first sample, and from one sample to the next.
    let offset: Int
    let step: Int
    /// 0 for samples of eight bits. Those of ten have sixteen, shifted left by this less one.
    let wide: Int
    /// A sample belongs to `1 << xShift` pixels of `1 << yShift` rows.
    let xShift: Int
    let yShift: Int

    private init(_ plane: Int, _ offset: Int, _ step: Int, wide: Int = 0, xShift: Int = 0, yShift: Int = 0) {
        (self.plane, self.offset, self.step, self.wide) = (plane, offset, step, wide)
        (self.xShift, self.yShift) = (xShift, yShift)
    }

    /// All components. The alpha of bgra is one, since the others are multiplied by it.
    static func all(of format: PixelFormat) -> [Channel] {
        func chroma(_ plane: Int, _ offset: Int, _ step: Int, wide: Int = 0) -> Channel {
            Channel(plane, offset, step, wide: wide, xShift: 1, yShift: 1)
        }
        return switch format {
        case .i420: [Channel(0, 0, 1), chroma(1, 0, 1), chroma(2, 0, 1)]
        case .nv12: [Channel(0, 0, 1), chroma(1, 0, 2), chroma(1, 1, 2)]
        case .yuyv: [Channel(0, 0, 2), Channel(0, 1, 4, xShift: 1), Channel(0, 3, 4, xShift: 1)]
        case .bgra: (0..<4).map { Channel(0, $0, 4) }
        case .rgb24: (0..<3).map { Channel(0, $0, 3) }
        case .gray8: [Channel(0, 0, 1)]
        case .i010: [Channel(0, 0, 2, wide: 1), chroma(1, 0, 2, wide: 1), chroma(2, 0, 2, wide: 1)]
        case .p010: [Channel(0, 0, 2, wide: 7), chroma(1, 0, 4, wide: 7), chroma(1, 2, 4, wide: 7)]
        }
    }
}
