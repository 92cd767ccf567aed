// SPDX-License-Identifier: Apache-2.0

import CYUV
import FrameCore
import Shared

/// Halved, quartered … pictures of the last frames: the only file of this plugin that imports libyuv.
///
/// Each is made once, when its frame comes, from means of four pixels. Memory is allocated once.
final class PictureLevels {
    /// Most halvings.
    static let most = 5

    /// Halvings made.
    let depth: Int
    private let capacity: Int
    /// By frame, then by halvings less one.
    private let pictures: [[ScratchPicture]]
    private var newest = 0
    /// Frames that are here, at most the capacity.
    private(set) var count = 0

    /// - Parameters:
    ///   - depth: Halvings; 0 for none.
    ///   - capacity: Frames.
    init(_ format: VideoFormat, depth: Int, capacity: Int) {
        self.depth = depth
        self.capacity = capacity
        pictures = (0..<(depth > 0 ? capacity : 0)).map { _ in
            var size = (format.width, format.height)
            return (0..<depth).map { _ in
                size = ((size.0 + 1) / 2, (size.1 + 1) / 2)
                return ScratchPicture(format.pixelFormat, width: size.0, height: size.1)
            }
        }
    }

    /// Makes the levels of a new frame. Allocates nothing.
    func add(_ picture: Picture) {
        guard depth > 0 else { return }
        newest = (newest + 1) % capacity
        count = min(count + 1, capacity)
        var source = picture
        for level in pictures[newest] {
            for plane in 0..<source.planeCount { Self.halve(source[plane], into: level.picture[plane]) }
            source = level.picture
        }
    }

    /// - Parameter age: How many frames before the one added last.
    func picture(age: Int, level: Int) -> Picture {
        pictures[((newest - age) % capacity + capacity) % capacity][level - 1].picture
    }

    private static func halve(_ source: Picture.Layer, into target: Picture.Layer) {
        let (from, to) = (
            source.base.assumingMemoryBound(to: UInt8.self), target.base.assumingMemoryBound(to: UInt8.self)
        )
        let (width, targetWidth) = (
            Int32(source.rowBytes / source.unit.bytes), Int32(target.rowBytes / target.unit.bytes)
        )
        let (stride, targetStride) = (Int32(source.strideBytes), Int32(target.strideBytes))
        let (rows, targetRows) = (Int32(source.rows), Int32(target.rows))
        if source.unit.bytes == 1 {
            ScalePlane(from, stride, width, rows, to, targetStride, targetWidth, targetRows, kFilterBox)
        } else {
            UVScale(from, stride, width, rows, to, targetStride, targetWidth, targetRows, kFilterBox)
        }
    }
}
