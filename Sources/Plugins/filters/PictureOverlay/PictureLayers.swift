// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Shared

/// A picture in the samples of a format, ready to be laid over each frame.
final class PictureLayers {
    private let format: VideoFormat
    private let samples: RGBSamples
    private let layers: [OverlayLayer]

    init(_ format: VideoFormat) {
        self.format = format
        samples = RGBSamples(of: format)
        layers = (0..<format.pixelFormat.planeCount).map { _ in OverlayLayer() }
    }

    /// Sets what is laid over frames. A sample that several pixels share gets the mean over those that the frame has; of
    /// those, the ones beside the picture count as transparent.
    func set(_ picture: ScaledPicture, opacity: Double) {
        let part = picture.placement.stored
        guard !part.isEmpty, opacity > 0 else { return layers.forEach { $0.clear() } }
        picture.pixels.withUnsafeBufferPointer { pixels in
            for (plane, layer) in layers.enumerated() { set(layer, plane, pixels.baseAddress!, part, Float(opacity)) }
        }
    }

    private func set(
        _ layer: OverlayLayer, _ plane: Int, _ pixels: UnsafePointer<SIMD4<UInt16>>, _ part: Rectangle, _ opacity: Float
    ) {
        let unit = PlaneUnit.of(format.pixelFormat, plane: plane)
        let weights = (0..<unit.bytes).map { samples.weights(plane: plane, byte: $0) }
        let units = part.x >> unit.xShift...(part.x + part.width - 1) >> unit.xShift
        let rows = part.y >> unit.yShift...(part.y + part.height - 1) >> unit.yShift
        layer.reset(
            firstByte: units.lowerBound * unit.bytes, byteCount: units.count * unit.bytes, firstRow: rows.lowerBound,
            rowCount: rows.count)
        for row in rows {
            let lines = row << unit.yShift..<min((row + 1) << unit.yShift, format.height)
            let covered = lines.clamped(to: part.y..<part.y + part.height)
            layer.withRow(row - rows.lowerBound) { keep, add in
                for index in units {
                    let columns = index << unit.xShift..<min((index + 1) << unit.xShift, format.width)
                    var sum = SIMD4<UInt32>.zero
                    for y in covered {
                        let line = pixels + (y - part.y) * part.width - part.x
                        for x in columns.clamped(to: part.x..<part.x + part.width) {
                            sum &+= SIMD4<UInt32>(truncatingIfNeeded: line[x])
                        }
                    }
                    let mean = SIMD4<Float>(sum) * (opacity / Float(65535 * lines.count * columns.count))
                    let at = (index - units.lowerBound) * unit.bytes
                    for byte in 0..<unit.bytes {
                        keep[at + byte] = 255 - UInt8(min(mean.w * 255 + 0.5, 255))
                        add[at + byte] = UInt8(min(max((mean * weights[byte]).sum() + 0.5, 0), 255))
                    }
                }
            }
        }
    }

    /// [stage thread] Lays the picture over a frame of the format. Allocates nothing.
    func blend(onto frame: Picture) {
        for (plane, layer) in layers.enumerated() { layer.blend(onto: frame[plane]) }
    }
}
