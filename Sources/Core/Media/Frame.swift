/// One raw picture: a lease of a pool's buffer with time, format and metadata.
///
/// Moves and is never copied: letting go returns the buffer; a branch takes `share()`. Whoever holds the value may read
/// it; only a stage that declares ``StageInfo/Access/modify``, or one that has just made the frame, may write its
/// planes.
public struct Frame: ~Copyable, @unchecked Sendable {
    /// Owned by this value alone: the invariant behind `@unchecked Sendable`.
    let record: UnsafeMutablePointer<LeaseRecord>

    @inline(__always)
    init(_ lease: consuming Lease) { record = lease.release() }

    @inline(__always)
    consuming func release() -> Lease {
        let record = record
        discard self
        return Lease(record)
    }

    deinit { record.pointee.owner.giveBack(record) }

    @inline(__always)
    var pool: FramePool { unsafeDowncast(record.pointee.owner, to: FramePool.self) }

    /// Format of this and every other frame of its pool.
    public var format: VideoFormat { pool.format }

    /// When the picture is to be shown, on the chain's timeline.
    public var pts: MediaTime {
        get { record.pointee.header.pts }
        nonmutating set { record.pointee.header.pts = newValue }
    }

    /// How long it is to be shown; zero when unknown.
    public var duration: MediaTime {
        get { record.pointee.header.duration }
        nonmutating set { record.pointee.header.duration = newValue }
    }

    /// When it was captured (live) or read, in nanoseconds of the chain clock; kept within ``MediaTime/range``.
    public var capturedAt: Int64 {
        get { record.pointee.header.capturedAt }
        nonmutating set { record.pointee.header.capturedAt = MediaTime(nanoseconds: newValue).nanoseconds }
    }

    /// Counts the source's frames from 0; kept through every stage.
    public var sequenceNumber: UInt64 {
        get { record.pointee.header.sequenceNumber }
        nonmutating set { record.pointee.header.sequenceNumber = newValue }
    }

    /// How the stored picture is to be turned for display.
    public var orientation: Orientation {
        get { record.pointee.header.statedOrientation ?? .up }
        nonmutating set { record.pointee.header.statedOrientation = newValue }
    }

    /// True on the first frame after a gap in time.
    public var isDiscontinuity: Bool {
        get { record.pointee.header.isDiscontinuity }
        nonmutating set { record.pointee.header.isDiscontinuity = newValue }
    }

    /// True for a picture in the place of one that a source lacks: held or a slate while its device is away.
    public var isSubstitute: Bool {
        get { record.pointee.header.isSubstitute }
        nonmutating set { record.pointee.header.isSubstitute = newValue }
    }

    /// True where a preview shows the picture mirrored left to right, as a mirror would: of a camera that faces the person
    /// who watches the preview. Streams and files show it as it is; the pixels are never mirrored for it.
    public var isMirroredInPreviews: Bool {
        get { record.pointee.header.isMirroredInPreviews }
        nonmutating set { record.pointee.header.isMirroredInPreviews = newValue }
    }

    /// A lease of its own on the same buffer, with the same header and metadata. No pixels are copied, nothing is
    /// allocated within the stage's declared `hold`.
    public func share() -> Frame {
        let other = record.pointee.owner.share(record)
        other.pointee.keeper = record.pointee.keeper
        other.pointee.keep()
        other.pointee.since.store(pool.now, ordering: .relaxed)
        return Frame(Lease(other))
    }

    /// True when nobody else holds this buffer.
    public var isUnique: Bool { pool.isUnique(record) }

    /// Takes over time, sequence number, orientation and metadata of another frame of the chain; not its pixels.
    public func copyProperties(from other: borrowing Frame) {
        record.pointee.header.replace(with: other.record.pointee.header, pool.layout)
    }

    /// The metadata in `slot`, nil when no stage has set it.
    public subscript<Value: FrameMetadata>(slot: MetadataSlot<Value>) -> Value? {
        get { record.pointee.header[slot] }
        nonmutating set { record.pointee.header[slot] = newValue }
    }
}
