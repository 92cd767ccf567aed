// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Shared

/// What is shown while a source is away: a copy of a recent picture, or a slate. Memory is made once.
package final class StandIn {
    private let slate: ScratchPicture
    /// Planes without padding, one after the other; empty where no picture is kept.
    private var bytes: [UInt8]
    private var hasPicture = false
    private var copiedAt = Int64.min
    /// From one copy of a picture to the next, nanoseconds: not every frame is copied.
    private static let pause: Int64 = 1_000_000_000

    /// Bytes it takes.
    package static func bytes(_ format: VideoFormat, keepsPicture: Bool) -> Int {
        format.bufferBytes + (keepsPicture ? pictureBytes(format) : 0)
    }

    private static func pictureBytes(_ format: VideoFormat) -> Int {
        (0..<format.pixelFormat.planeCount).reduce(0) {
            $0 + format.pixelFormat.rowBytes(plane: $1, width: format.width)
                * format.pixelFormat.rows(plane: $1, height: format.height)
        }
    }

    /// [setup thread] Draws the slate.
    package init(_ format: VideoFormat, _ slate: Slate, keepsPicture: Bool) throws {
        self.slate = try slate.drawn(for: format)
        bytes = keepsPicture ? [UInt8](repeating: 0, count: Self.pictureBytes(format)) : []
    }

    /// [stage thread] Keeps a copy of the picture when the kept one has become old.
    package func look(at frame: borrowing Frame, now: Int64) {
        guard !bytes.isEmpty, !hasPicture || now - copiedAt >= Self.pause else { return }
        copiedAt = now
        hasPicture = true
        bytes.withUnsafeMutableBufferPointer { buffer in
            var target = buffer.baseAddress!
            for index in 0..<frame.planeCount {
                frame.withPlane(index) { plane in
                    for y in 0..<plane.height {
                        target.update(from: plane.baseAddress + y * plane.strideBytes, count: plane.rowBytes)
                        target += plane.rowBytes
                    }
                }
            }
        }
    }

    /// [stage thread]
    package func paint(_ frame: inout Frame) {
        frame.isSubstitute = true
        guard hasPicture else { return frame.withMutablePicture { $0.copy(slate.picture) } }
        bytes.withUnsafeBufferPointer { buffer in
            var source = buffer.baseAddress!
            for index in 0..<frame.planeCount {
                frame.withMutablePlane(index) { plane in
                    for y in 0..<plane.height {
                        (plane.baseAddress + y * plane.strideBytes).update(from: source, count: plane.rowBytes)
                        source += plane.rowBytes
                    }
                }
            }
        }
    }
}
