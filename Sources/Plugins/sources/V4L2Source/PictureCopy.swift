// SPDX-License-Identifier: Apache-2.0

import CYUV
import FrameCore

/// Brings a driver's picture into a frame of the chain, in one pass.
struct PictureCopy {
    private let layout: DriverLayout

    init(_ layout: DriverLayout) { self.layout = layout }

    /// Whether pictures of this layout can become frames of this format.
    static func canMake(_ format: VideoFormat, from pixels: CameraPixels) -> Bool {
        pixels != .h264 && (pixels.pixelFormat == format.pixelFormat || format.pixelFormat == .i420)
    }

    /// [stage thread] - Parameter bytes: At least ``DriverLayout/leastBytes``.
    func copy(_ bytes: UnsafeRawBufferPointer, to frame: inout Frame) {
        guard bytes.count >= layout.leastBytes, let first = bytes.baseAddress else { return }
        let base = first.assumingMemoryBound(to: UInt8.self)
        if frame.format.pixelFormat == layout.pixels.pixelFormat {
            for (index, plane) in layout.planes.enumerated() {
                frame.withMutablePlane(index) {
                    CopyPlane(
                        base + plane.offset, Int32(plane.strideBytes), $0.baseAddress, Int32($0.strideBytes),
                        Int32(min(plane.rowBytes, $0.rowBytes)), Int32(min(plane.rows, $0.height)))
                }
            }
            return
        }
        guard frame.format.pixelFormat == .i420 else { return }
        let y = frame.withMutablePlane(0) { $0 }
        let u = frame.withMutablePlane(1) { $0 }
        let v = frame.withMutablePlane(2) { $0 }
        let (width, height) = (Int32(layout.size.width), Int32(layout.size.height))
        switch layout.pixels {
        case .yuyv:
            YUY2ToI420(
                base, Int32(layout.planes[0].strideBytes), y.baseAddress, Int32(y.strideBytes), u.baseAddress,
                Int32(u.strideBytes), v.baseAddress, Int32(v.strideBytes), width, height)
        case .nv12:
            NV12ToI420(
                base, Int32(layout.planes[0].strideBytes), base + layout.planes[1].offset,
                Int32(layout.planes[1].strideBytes), y.baseAddress, Int32(y.strideBytes), u.baseAddress,
                Int32(u.strideBytes), v.baseAddress, Int32(v.strideBytes), width, height)
        case .i420, .mjpeg, .h264: break
        }
    }
}
