// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Shared

/// What is laid over a part of a picture, in the samples of its format.
///
/// It is made again when the text changes. For each frame it is only blended.
package final class Overlay {
    /// Colours of the layers, lowest first, and how much the lowest and the two upper ones cover.
    package struct Style: Equatable {
        var box: Paint
        var edge: Paint
        var ink: Paint
        /// 0...1; 0 without a box.
        var boxOpacity: Float
        /// 0...1, of edge and ink together.
        var inkOpacity: Float

        package init(box: Paint, edge: Paint, ink: Paint, boxOpacity: Float, inkOpacity: Float) {
            self.box = box
            self.edge = edge
            self.ink = ink
            self.boxOpacity = boxOpacity
            self.inkOpacity = inkOpacity
        }
    }

    private let format: VideoFormat
    private let layers: [OverlayLayer]
    /// Bytes of a unit of each plane.
    private let bytes: [Int]
    private let weights: LayerWeights

    package init(_ format: VideoFormat) {
        self.format = format
        layers = (0..<format.pixelFormat.planeCount).map { _ in OverlayLayer() }
        bytes = layers.indices.map { PlaneUnit.of(format.pixelFormat, plane: $0).bytes }
        weights = LayerWeights(capacity: format.width)
    }

    /// Clears the overlay.
    package func clear() { for layer in layers { layer.clear() } }

    /// - Parameters:
    ///   - mask: Coverage of the pixels of `part`.
    ///   - part: The place of the mask in the stored picture. It must lie within the picture and must not be empty.
    package func set(_ mask: CoverageMask, part: Rectangle, style: Style) {
        var plane = 0
        while plane < layers.count {
            // Planes of U and V share their weights.
            let group = plane..<(plane == 1 ? layers.count : plane + 1)
            let unit = PlaneUnit.of(format.pixelFormat, plane: plane)
            let units = part.x >> unit.xShift...(part.x + part.width - 1) >> unit.xShift
            let rows = part.y >> unit.yShift...(part.y + part.height - 1) >> unit.yShift
            for plane in group {
                layers[plane].reset(
                    firstByte: units.lowerBound * bytes[plane], byteCount: units.count * bytes[plane],
                    firstRow: rows.lowerBound,
                    rowCount: rows.count)
            }
            for row in rows {
                weigh(mask, part, row: row, units: units, unit: unit, style: style)
                for plane in group {
                    for byte in 0..<bytes[plane] {
                        let colors = (style.box, style.edge, style.ink)
                        layers[plane].set(
                            row: row - rows.lowerBound, byte: byte, step: bytes[plane], weights,
                            box: colors.0.byte(byte, plane: plane), edge: colors.1.byte(byte, plane: plane),
                            ink: colors.2.byte(byte, plane: plane))
                    }
                }
            }
            plane = group.upperBound
        }
    }

    /// The weights of a plane's row: means over the pixels that share a sample, as far as the picture has them.
    private func weigh(
        _ mask: CoverageMask, _ part: Rectangle, row: Int, units: ClosedRange<Int>, unit: PlaneUnit, style: Style
    ) {
        let lines = row << unit.yShift..<min((row + 1) << unit.yShift, format.height)
        let ofLast = min(1 << unit.xShift, format.width - units.upperBound << unit.xShift)
        weights.set(
            mask, rows: lines.clamped(to: part.y..<part.y + part.height).shifted(by: -part.y), units: units.count,
            phase: part.x - units.lowerBound << unit.xShift, xShift: unit.xShift, pixels: lines.count << unit.xShift,
            lastPixels: lines.count * ofLast, style: style)
    }

    /// [stage thread] Lays it over a picture of the format. Allocates nothing.
    package func blend(onto picture: Picture) {
        for (plane, layer) in layers.enumerated() { layer.blend(onto: picture[plane]) }
    }
}

extension Paint {
    fileprivate func byte(_ byte: Int, plane: Int) -> UInt32 { unit(plane: plane) >> UInt32(8 * byte) & 255 }
}

extension Range<Int> {
    fileprivate func shifted(by offset: Int) -> Range<Int> { lowerBound + offset..<upperBound + offset }
}
