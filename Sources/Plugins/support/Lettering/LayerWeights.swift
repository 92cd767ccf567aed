// SPDX-License-Identifier: Apache-2.0

import Shared

/// The weights of box, edge and ink in each unit of one row of a plane, in 65535ths. Together they are at most 65535;
/// the rest is the picture's weight.
///
/// Ink lies over edge, both over the box. Where pixels share a sample, weights are the mean over those pixels, which is
/// right because the result is a sum of colours by weight. Whole numbers in plain memory, so that the loops become
/// vector instructions.
final class LayerWeights {
    let box: UnsafeMutablePointer<UInt32>
    let edge: UnsafeMutablePointer<UInt32>
    let ink: UnsafeMutablePointer<UInt32>
    /// How many units are set.
    private(set) var count = 0

    /// - Parameter capacity: Pixels of a row.
    init(capacity: Int) {
        // A last unit may reach one pixel beyond the picture.
        let size = capacity + 2
        box = .allocate(capacity: 3 * size)
        box.initialize(repeating: 0, count: 3 * size)
        edge = box + size
        ink = edge + size
    }

    deinit { box.deallocate() }

    /// Weights of `units` units from rows of a mask.
    ///
    /// - Parameters:
    ///   - rows: The rows of the mask that belong to this row of the plane: one or two; may be empty.
    ///   - phase: Pixels of the first unit that lie before the mask.
    ///   - xShift: A unit covers `1 << xShift` pixels of a row.
    ///   - pixels: Pixels of the picture in a unit: one, two or four.
    ///   - lastPixels: The same for the last unit, which may be cut by the picture's edge.
    func set(
        _ mask: CoverageMask, rows: Range<Int>, units: Int, phase: Int, xShift: Int, pixels: Int, lastPixels: Int,
        style: Overlay.Style
    ) {
        count = units
        for row in [box, edge, ink] { row.update(repeating: 0, count: units << xShift) }
        for row in rows { add(mask, row: row, phase: phase, style: style) }
        guard pixels > 1 else { return }
        for row in [box, edge, ink] {
            let last = units - 1
            let sum = row[last << xShift] + (xShift == 1 ? row[last << xShift + 1] : 0)
            let shift = UInt32(pixels.trailingZeroBitCount)
            if xShift == 1 {
                for unit in 0..<last { row[unit] = (row[2 &* unit] &+ row[2 &* unit &+ 1]) &>> shift }
            } else {
                for unit in 0..<last { row[unit] = row[unit] &>> shift }
            }
            row[last] = sum >> UInt32(lastPixels.trailingZeroBitCount)
        }
    }

    /// Adds one row of the mask, pixel by pixel.
    private func add(_ mask: CoverageMask, row: Int, phase: Int, style: Overlay.Style) {
        let (box, edge, ink) = (box + phase, edge + phase, ink + phase)
        let width = mask.width
        // 255 of coverage times this is the whole weight.
        let share = UInt32((style.inkOpacity * 257).rounded())
        let boxShare = UInt32((style.boxOpacity * 65536).rounded())
        mask.withRow(row) { inkBytes, edgeBytes in
            for x in 0..<width {
                let covered = UInt32(inkBytes[x])
                let around = UInt32(edgeBytes[x]) &* (255 &- covered) &+ 128
                let i = covered &* share
                // Divided by 255 as in OverlayLayer.
                let e = ((around &+ around &>> 8) &>> 8) &* share
                ink[x] = ink[x] &+ i
                edge[x] = edge[x] &+ e
                // The factors are at most 65535 and 65536, so the product fits.
                box[x] = box[x] &+ ((65535 &- i &- e) &* boxShare) &>> 16
            }
        }
    }
}

extension OverlayLayer {
    /// Sets one byte of each unit of a row.
    ///
    /// - Parameters:
    ///   - byte: Which of the unit's `step` bytes.
    ///   - box: The value of that byte in the colour of the layer; `edge` and `ink` likewise.
    func set(row: Int, byte: Int, step: Int, _ weights: LayerWeights, box: UInt32, edge: UInt32, ink: UInt32) {
        withRow(row) { keepRow, addRow in
            let (keep, add) = (keepRow + byte, addRow + byte)
            for unit in 0..<weights.count {
                let (b, e, i) = (weights.box[unit], weights.edge[unit], weights.ink[unit])
                keep[unit &* step] = 255 &- UInt8(truncatingIfNeeded: ((b &+ e &+ i) &* 255 &+ 32768) &>> 16)
                add[unit &* step] = UInt8(truncatingIfNeeded: (b &* box &+ e &* edge &+ i &* ink &+ 32768) &>> 16)
            }
        }
    }
}
