// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// The samples of one picture between a frame and a y4m stream. Allocates nothing.
enum Y4MPicture {
    /// Fills a frame from the planes at `bytes`.
    ///
    /// - Parameters:
    ///   - bytes: As many as ``Y4MFormat/byteCount(width:height:)`` says.
    ///   - frame: A frame of ``Y4MFormat/pixelFormat``.
    static func unpack(_ bytes: UnsafePointer<UInt8>, to frame: inout Frame) {
        guard frame.format.pixelFormat == .yuyv else {
            var source = bytes
            for index in 0..<frame.planeCount {
                frame.withMutablePlane(index) { plane in
                    for y in 0..<plane.height {
                        (plane.baseAddress + y * plane.strideBytes).update(from: source, count: plane.rowBytes)
                        source += plane.rowBytes
                    }
                }
            }
            return
        }
        let (width, height) = (frame.format.width, frame.format.height)
        let half = (width + 1) / 2
        frame.withMutablePlane(0) { plane in
            for y in 0..<height {
                let luma = bytes + y * width
                let u = bytes + width * height + y * half
                let v = u + half * height
                let row = plane.baseAddress + y * plane.strideBytes
                for pair in 0..<half {
                    row[4 * pair] = luma[2 * pair]
                    row[4 * pair + 1] = u[pair]
                    // With an odd width the last sample is written twice.
                    row[4 * pair + 2] = luma[min(2 * pair + 1, width - 1)]
                    row[4 * pair + 3] = v[pair]
                }
            }
        }
    }

    /// Writes the planes of a frame to `bytes`, in the layout of ``Y4MFormat/init(_:)``.
    static func pack(_ frame: borrowing Frame, to bytes: UnsafeMutablePointer<UInt8>) {
        let (width, height) = (frame.format.width, frame.format.height)
        let (halfWidth, halfHeight) = ((width + 1) / 2, (height + 1) / 2)
        switch frame.format.pixelFormat {
        case .i420, .i010, .gray8, .bgra, .rgb24:
            var target = bytes
            for index in 0..<frame.planeCount { target = copyRows(frame, index, to: target) }
        case .nv12:
            let u = copyRows(frame, 0, to: bytes)
            split(frame, to: u, u + halfWidth * halfHeight, pairs: halfWidth)
        case .p010:
            pack10(frame, to: UnsafeMutableRawPointer(bytes), width, height, halfWidth, halfHeight)
        case .yuyv:
            frame.withPlane(0) { plane in
                for y in 0..<height {
                    let row = plane.baseAddress + y * plane.strideBytes
                    let luma = bytes + y * width
                    let u = bytes + width * height + y * halfWidth
                    let v = u + halfWidth * height
                    for pair in 0..<halfWidth {
                        luma[2 * pair] = row[4 * pair]
                        if 2 * pair + 1 < width { luma[2 * pair + 1] = row[4 * pair + 2] }
                        u[pair] = row[4 * pair + 1]
                        v[pair] = row[4 * pair + 3]
                    }
                }
            }
        }
    }

    /// Copies the rows of a plane without their padding. Returns where the next plane begins.
    private static func copyRows(
        _ frame: borrowing Frame, _ index: Int, to bytes: UnsafeMutablePointer<UInt8>
    ) -> UnsafeMutablePointer<UInt8> {
        frame.withPlane(index) { plane in
            for y in 0..<plane.height {
                (bytes + y * plane.rowBytes).update(
                    from: plane.baseAddress + y * plane.strideBytes, count: plane.rowBytes)
            }
            return bytes + plane.height * plane.rowBytes
        }
    }

    /// Splits pairs of UV into two planes.
    private static func split(
        _ frame: borrowing Frame, to u: UnsafeMutablePointer<UInt8>, _ v: UnsafeMutablePointer<UInt8>, pairs: Int
    ) {
        frame.withPlane(1) { plane in
            for y in 0..<plane.height {
                let row = plane.baseAddress + y * plane.strideBytes
                for x in 0..<pairs {
                    u[y * pairs + x] = row[2 * x]
                    v[y * pairs + x] = row[2 * x + 1]
                }
            }
        }
    }

    /// P010 has its ten bits at the top of each sixteen, y4m at the bottom. All planes start at even bytes.
    private static func pack10(
        _ frame: borrowing Frame, to bytes: UnsafeMutableRawPointer, _ width: Int, _ height: Int, _ halfWidth: Int,
        _ halfHeight: Int
    ) {
        let luma = bytes.assumingMemoryBound(to: UInt16.self)
        let u = luma + width * height
        let v = u + halfWidth * halfHeight
        frame.withPlane(0) { plane in
            for y in 0..<plane.height {
                let row = UnsafeRawPointer(plane.baseAddress + y * plane.strideBytes).assumingMemoryBound(
                    to: UInt16.self)
                for x in 0..<width { luma[y * width + x] = row[x] >> 6 }
            }
        }
        frame.withPlane(1) { plane in
            for y in 0..<plane.height {
                let row = UnsafeRawPointer(plane.baseAddress + y * plane.strideBytes).assumingMemoryBound(
                    to: UInt16.self)
                for x in 0..<halfWidth {
                    u[y * halfWidth + x] = row[2 * x] >> 6
                    v[y * halfWidth + x] = row[2 * x + 1] >> 6
                }
            }
        }
    }
}
