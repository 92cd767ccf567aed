// SPDX-License-Identifier: Apache-2.0

import CYUV
import FrameCore
import Shared

/// An I420 picture of a size of its own, in memory that is taken once.
final class SnakePicture {
    private let memory: UnsafeMutableRawPointer
    let picture: Picture

    /// - Parameters:
    ///   - width: Even, as is `height`.
    init(width: Int, height: Int) {
        memory = .allocate(byteCount: Self.byteCount(width: width, height: height), alignment: 64)
        let memory = memory
        picture = Picture(.i420, width: width, height: height) { plane in
            let luma = width * height
            return plane == 0 ? (memory, width) : (memory + luma + (plane - 1) * luma / 4, width / 2)
        }
    }

    deinit { memory.deallocate() }

    static func byteCount(width: Int, height: Int) -> Int { width * height * 3 / 2 }

    /// Shrinks `source` to this picture's size, and makes its edge black: 1 % of its size on each side.
    func shrink(_ source: Picture, edge: Paint) {
        for plane in 0..<3 {
            let (from, to) = (source[plane], picture[plane])
            ScalePlane(
                from.base.assumingMemoryBound(to: UInt8.self), Int32(from.strideBytes), Int32(from.rowBytes),
                Int32(from.rows), to.base.assumingMemoryBound(to: UInt8.self), Int32(to.strideBytes),
                Int32(to.rowBytes), Int32(to.rows), kFilterBox)
        }
        let (width, height) = (picture.width, picture.height)
        let (x, y) = (max(width / 200 * 2, 2), max(height / 200 * 2, 2))
        picture.fill(x: 0, y: 0, width: width, height: y, edge)
        picture.fill(x: 0, y: height - y, width: width, height: y, edge)
        picture.fill(x: 0, y: 0, width: x, height: height, edge)
        picture.fill(x: width - x, y: 0, width: x, height: height, edge)
    }

    /// Copies this picture into `target` with its corner at `x`, `y`, which are even; what lies outside is left out.
    func draw(into target: Picture, x: Int, y: Int) {
        let (left, top) = (max(x, 0), max(y, 0))
        let (right, bottom) = (min(x + picture.width, target.width), min(y + picture.height, target.height))
        guard left < right, top < bottom else { return }
        let source = picture.part(x: left - x, y: top - y, width: right - left, height: bottom - top)
        let place = target.part(x: left, y: top, width: right - left, height: bottom - top)
        for plane in 0..<3 {
            let (from, to) = (source[plane], place[plane])
            for row in 0..<from.rows {
                (to.base + row * to.strideBytes).copyMemory(
                    from: from.base + row * from.strideBytes, byteCount: from.rowBytes)
            }
        }
    }
}
