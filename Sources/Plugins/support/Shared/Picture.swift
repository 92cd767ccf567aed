// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// Planes of a picture in memory, as painting and C libraries take them. Valid as long as the memory is.
@usableFromInline package struct Picture {
    /// One plane's memory.
    @usableFromInline package struct Layer {
        @usableFromInline package var base: UnsafeMutableRawPointer
        @usableFromInline package var strideBytes: Int
        /// Bytes of a row that carry samples.
        @usableFromInline package var rowBytes: Int
        @usableFromInline package var rows: Int
        @usableFromInline package var unit: PlaneUnit

        @inlinable package init(
            base: UnsafeMutableRawPointer, strideBytes: Int, rowBytes: Int, rows: Int, unit: PlaneUnit
        ) {
            self.base = base
            self.strideBytes = strideBytes
            self.rowBytes = rowBytes
            self.rows = rows
            self.unit = unit
        }
    }

    @usableFromInline package let pixelFormat: PixelFormat
    @usableFromInline package let width: Int
    @usableFromInline package let height: Int
    @usableFromInline package let planeCount: Int
    @usableFromInline let first: Layer
    @usableFromInline let second: Layer?
    @usableFromInline let third: Layer?

    /// - Parameter layer: The memory of a plane: where it begins and its stride.
    @inlinable package init(
        _ pixelFormat: PixelFormat, width: Int, height: Int,
        layer: (Int) -> (base: UnsafeMutableRawPointer, strideBytes: Int)
    ) {
        self.pixelFormat = pixelFormat
        self.width = width
        self.height = height
        planeCount = pixelFormat.planeCount
        func make(_ plane: Int) -> Layer {
            let memory = layer(plane)
            return Layer(
                base: memory.base, strideBytes: memory.strideBytes,
                rowBytes: pixelFormat.rowBytes(plane: plane, width: width),
                rows: pixelFormat.rows(plane: plane, height: height), unit: .of(pixelFormat, plane: plane))
        }
        first = make(0)
        second = planeCount > 1 ? make(1) : nil
        third = planeCount > 2 ? make(2) : nil
    }

    @inlinable @inline(__always)
    package subscript(plane: Int) -> Layer {
        plane == 0 ? first : plane == 1 ? second.unsafelyUnwrapped : third.unsafelyUnwrapped
    }

    /// The rectangle at `x`, `y` in the same memory. Both must be even where pixels share a sample or a group.
    @inlinable package func part(x: Int, y: Int, width: Int, height: Int) -> Picture {
        precondition(
            x >= 0 && y >= 0 && x + width <= self.width && y + height <= self.height, "a part lies within its picture")
        return Picture(pixelFormat, width: width, height: height) { plane in
            let layer = self[plane]
            let offset = (y >> layer.unit.yShift) * layer.strideBytes + (x >> layer.unit.xShift) * layer.unit.bytes
            return (layer.base + offset, layer.strideBytes)
        }
    }
}

extension Frame {
    /// The frame's planes, only for reading, and only within `body`.
    @inlinable package borrowing func withPicture<Result>(_ body: (Picture) throws -> Result) rethrows -> Result {
        let format = format
        return try body(
            Picture(format.pixelFormat, width: format.width, height: format.height) { index in
                // The address leaves this closure, but not the caller's: the frame is held until `body` is over.
                withPlane(index) { (UnsafeMutableRawPointer(mutating: $0.baseAddress), $0.strideBytes) }
            })
    }

    /// The frame's planes for writing, only within `body`.
    ///
    /// - Precondition: no other stage holds the buffer: the frame was just made, or the stage declares `.modify`.
    @inlinable package mutating func withMutablePicture<Result>(_ body: (Picture) throws -> Result) rethrows -> Result {
        let format = format
        let picture = Picture(format.pixelFormat, width: format.width, height: format.height) { index in
            // As above; and the access is exclusive until `body` is over.
            withMutablePlane(index) { (UnsafeMutableRawPointer($0.baseAddress), $0.strideBytes) }
        }
        return try body(picture)
    }
}

/// A picture's memory outside any pool: a stage's scratch, made in `start`.
package final class ScratchPicture {
    package let picture: Picture
    private let memory: UnsafeMutableRawPointer

    /// Filled with zeros: black, or the colour that zeros mean in the format.
    package init(_ pixelFormat: PixelFormat, width: Int, height: Int) {
        let format = VideoFormat(pixelFormat, width: width, height: height)
        let memory = UnsafeMutableRawPointer.allocate(
            byteCount: max(format.bufferBytes, 1), alignment: VideoFormat.strideAlignment)
        memory.initializeMemory(as: UInt8.self, repeating: 0, count: format.bufferBytes)
        self.memory = memory
        var end = 0
        picture = Picture(pixelFormat, width: width, height: height) { plane in
            defer { end += format.strideBytes(plane: plane) * pixelFormat.rows(plane: plane, height: height) }
            return (memory + end, format.strideBytes(plane: plane))
        }
    }

    deinit { memory.deallocate() }
}
