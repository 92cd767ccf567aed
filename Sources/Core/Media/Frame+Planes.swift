// SPDX-License-Identifier: Apache-2.0

/// One plane of a frame, to read. It is valid inside the closure that got it.
public struct Plane {
    /// The first sample of the first row.
    public let baseAddress: UnsafePointer<UInt8>
    /// Bytes from one row to the next: at least ``rowBytes``, often more.
    public let strideBytes: Int
    /// Bytes of a row that hold samples.
    public let rowBytes: Int
    /// The number of rows.
    public let height: Int

    /// Row `y`, counted from 0 at the top; ``rowBytes`` long.
    public func row(_ y: Int) -> UnsafeBufferPointer<UInt8> {
        precondition(y >= 0 && y < height, "row \(y) is not one of the \(height) rows, which are counted from 0")
        return UnsafeBufferPointer(start: baseAddress + y * strideBytes, count: rowBytes)
    }

    /// Lends row `y` to `body` as a span.
    public func withRow<Result>(_ y: Int, _ body: (Span<UInt8>) throws -> Result) rethrows -> Result {
        try body(row(y).span)
    }
}

/// One plane of a frame, to write. It is valid inside the closure that got it.
public struct MutablePlane {
    /// The first sample of the first row.
    public let baseAddress: UnsafeMutablePointer<UInt8>
    /// Bytes from one row to the next: at least ``rowBytes``, often more.
    public let strideBytes: Int
    /// Bytes of a row that hold samples.
    public let rowBytes: Int
    /// The number of rows.
    public let height: Int

    /// Row `y`, counted from 0 at the top; ``rowBytes`` long.
    public func row(_ y: Int) -> UnsafeMutableBufferPointer<UInt8> {
        precondition(y >= 0 && y < height, "row \(y) is not one of the \(height) rows, which are counted from 0")
        return UnsafeMutableBufferPointer(start: baseAddress + y * strideBytes, count: rowBytes)
    }

    /// Lends row `y` to `body` as a span.
    public func withRow<Result>(_ y: Int, _ body: (inout MutableSpan<UInt8>) throws -> Result) rethrows -> Result {
        let buffer = row(y)
        var span = buffer.mutableSpan
        return try body(&span)
    }
}

extension Frame {
    /// How many planes the frame has; ``PixelFormat`` gives their order.
    public var planeCount: Int { format.pixelFormat.planeCount }

    /// Lends plane `index` to `body` to read.
    public func withPlane<Result>(_ index: Int, _ body: (Plane) throws -> Result) rethrows -> Result {
        let plane = mutablePlane(index)
        return try body(
            Plane(
                baseAddress: plane.baseAddress, strideBytes: plane.strideBytes, rowBytes: plane.rowBytes,
                height: plane.height))
    }

    /// Lends plane `index` to `body` to write.
    ///
    /// - Precondition: The frame is the only lease of its buffer. The runner sees to that for a stage that declares
    ///   ``StageInfo/Access/modify``.
    public mutating func withMutablePlane<Result>(_ index: Int, _ body: (MutablePlane) throws -> Result) rethrows
        -> Result
    {
        // Not a precondition, whose sentence a release build leaves out.
        guard isUnique else {
            fatalError(
                "a stage writes into a frame that others hold too. Declare 'access: .modify' in its StageInfo, so that the host hands it a copy, or write into a frame of its own."
            )
        }
        return try body(mutablePlane(index))
    }

    func mutablePlane(_ index: Int) -> MutablePlane { pool.plane(index, at: record.pointee.base!) }

    /// Copies the pixels of `other`, which has the same pixel format and size, row by row.
    func copyPixels(from other: borrowing Frame) {
        for index in 0..<planeCount {
            let target = mutablePlane(index)
            let source = other.mutablePlane(index)
            for y in 0..<target.height {
                (target.baseAddress + y * target.strideBytes).update(
                    from: source.baseAddress + y * source.strideBytes, count: target.rowBytes)
            }
        }
    }
}
