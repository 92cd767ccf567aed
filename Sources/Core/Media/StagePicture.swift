/// A picture that was copied out of a running chain, for whoever looks at it.
///
/// Not part of any budget: its memory is the asker's, and goes with the last who holds it. What it says is fixed once it
/// has reached a ``PictureInbox``. `@unchecked Sendable`: written by one thread before that, by none after.
public final class StagePicture: @unchecked Sendable {
    public let format: VideoFormat
    public private(set) var pts = MediaTime.zero
    /// When it was captured, nanoseconds of the chain clock.
    public private(set) var capturedAt: Int64 = 0
    public internal(set) var sequenceNumber: UInt64 = 0
    /// When it was copied, nanoseconds of the system's monotonic clock: whoever asked before that may have it.
    public private(set) var copiedAt: Int64
    /// How the stored picture is to be turned for display.
    public private(set) var orientation = Orientation.up
    /// In the place of one that a source lacks.
    public private(set) var isSubstitute = false
    /// Whoever previews it shows it mirrored; ``Frame/isMirroredInPreviews``.
    public internal(set) var isMirroredInPreviews = false

    private let layout: BufferLayout
    private let base: UnsafeMutableRawPointer

    /// [any thread but a stage's] Memory for a picture of `format`, all of it touched.
    ///
    /// - Throws: ``FrameHostError`` `.exhausted`.
    public init(_ format: VideoFormat) throws {
        self.format = format
        copiedAt = ChainClock.system.now()
        layout = BufferLayout(format)
        base = try AnonymousMemory().allocate(byteCount: layout.byteCount, touching: true)
    }

    /// [any thread but a stage's] A copy of a frame that the caller holds.
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

    /// Planes in the order of the pixel format (see ``PixelFormat``).
    public var planeCount: Int { format.pixelFormat.planeCount }

    /// Plane `index` to read, for `body` alone.
    public func withPlane<Result>(_ index: Int, _ body: (Plane) throws -> Result) rethrows -> Result {
        try withExtendedLifetime(self) { try body(plane(index)) }
    }

    private func plane(_ index: Int) -> Plane {
        precondition((0..<planeCount).contains(index), "plane \(index) of \(planeCount)")
        let start = base + layout.offsets[index]
        return Plane(
            baseAddress: UnsafePointer(start.assumingMemoryBound(to: UInt8.self)), strideBytes: layout.strides[index],
            rowBytes: format.pixelFormat.rowBytes(plane: index, width: format.width),
            height: format.pixelFormat.rows(plane: index, height: format.height))
    }
}
