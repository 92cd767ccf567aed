// SPDX-License-Identifier: Apache-2.0

/// A picture that was copied out of a running chain.
///
/// It is not part of any budget: its memory belongs to the caller that asked for it, and is freed with the last
/// reference. Nothing changes it once it has reached a ``PictureInbox``.
public final class StagePicture: @unchecked Sendable {
    // `@unchecked Sendable`: one thread writes it before it reaches an inbox, and none after.
    /// The format of the picture.
    public let format: VideoFormat
    /// When the picture is shown, on the chain's timeline.
    public private(set) var pts = MediaTime.zero
    /// When the picture was captured, in nanoseconds of the chain clock.
    public private(set) var capturedAt: Int64 = 0
    /// The number of the frame.
    public internal(set) var sequenceNumber: UInt64 = 0
    /// When the picture was copied, in nanoseconds of the system's monotonic clock. It answers requests made before
    /// that.
    public private(set) var copiedAt: Int64
    /// How the stored picture is to be turned for display.
    public private(set) var orientation = Orientation.up
    /// Whether the source gave it in place of one that it lacks; ``Frame/isSubstitute``.
    public private(set) var isSubstitute = false
    /// Whether previews show it mirrored; ``Frame/isMirroredInPreviews``.
    public internal(set) var isMirroredInPreviews = false

    private let layout: BufferLayout
    private let base: UnsafeMutableRawPointer

    /// [any thread but a stage's] Takes memory for a picture of `format`, and touches all of it.
    ///
    /// - Throws: ``FrameHostError`` `.exhausted`.
    public init(_ format: VideoFormat) throws {
        self.format = format
        copiedAt = ChainClock.system.now()
        layout = BufferLayout(format)
        base = try AnonymousMemory().allocate(byteCount: layout.byteCount, touching: true)
    }

    /// [any thread but a stage's] Copies a frame that the caller holds.
    ///
    /// - Throws: ``FrameHostError`` `.exhausted`.
    public convenience init(of frame: borrowing Frame) throws {
        try self.init(frame.format)
        take(from: frame)
    }

    deinit { AnonymousMemory().free(base, byteCount: layout.byteCount) }

    /// [stage thread] Takes over pixels and properties. Allocates nothing.
    func take(from frame: borrowing Frame) {
        pts = frame.pts
        capturedAt = frame.capturedAt
        sequenceNumber = frame.sequenceNumber
        copiedAt = ChainClock.system.now()
        orientation = frame.orientation
        isSubstitute = frame.isSubstitute
        isMirroredInPreviews = frame.isMirroredInPreviews
        for index in 0..<frame.planeCount {
            let target = plane(index)
            frame.withPlane(index) { source in
                for y in 0..<target.height {
                    UnsafeMutablePointer(mutating: target.baseAddress + y * target.strideBytes).update(
                        from: source.baseAddress + y * source.strideBytes, count: target.rowBytes)
                }
            }
        }
    }

    /// How many planes the picture has; ``PixelFormat`` gives their order.
    public var planeCount: Int { format.pixelFormat.planeCount }

    /// Lends plane `index` to `body` to read.
    public func withPlane<Result>(_ index: Int, _ body: (Plane) throws -> Result) rethrows -> Result {
        try withExtendedLifetime(self) { try body(plane(index)) }
    }

    private func plane(_ index: Int) -> Plane {
        precondition(
            (0..<planeCount).contains(index),
            "plane \(index) is not one of the \(planeCount) planes, which are counted from 0")
        let start = base + layout.offsets[index]
        return Plane(
            baseAddress: UnsafePointer(start.assumingMemoryBound(to: UInt8.self)), strideBytes: layout.strides[index],
            rowBytes: format.pixelFormat.rowBytes(plane: index, width: format.width),
            height: format.pixelFormat.rows(plane: index, height: format.height))
    }
}
