// SPDX-License-Identifier: Apache-2.0

/// One raw picture: a lease of a pool's buffer, with time, format and metadata.
///
/// A frame moves and is never copied. When the last lease of a buffer ends, the buffer goes back to its pool;
/// ``share()`` makes a second lease of the same buffer. The holder of a frame may read it. A stage may write its planes
/// only if it declares ``StageInfo/Access/modify`` or has just made the frame.
///
/// <doc:TheLifeOfAFrame> says what a stage may do with it.
public struct Frame: ~Copyable, @unchecked Sendable {
    /// Only this value owns it: the invariant behind `@unchecked Sendable`.
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

    /// The format of this frame and of every other frame of its pool.
    public var format: VideoFormat { pool.format }

    /// When the picture is shown, on the chain's timeline.
    public var pts: MediaTime {
        get { record.pointee.header.pts }
        nonmutating set { record.pointee.header.pts = newValue }
    }

    /// How long the picture is shown; zero when unknown.
    public var duration: MediaTime {
        get { record.pointee.header.duration }
        nonmutating set { record.pointee.header.duration = newValue }
    }

    /// When the picture was captured (live) or read, in nanoseconds of the chain clock, within ``MediaTime/range``.
    public var capturedAt: Int64 {
        get { record.pointee.header.capturedAt }
        nonmutating set { record.pointee.header.capturedAt = MediaTime(nanoseconds: newValue).nanoseconds }
    }

    /// The number of the picture, counted by its source from 0. Every stage keeps it.
    public var sequenceNumber: UInt64 {
        get { record.pointee.header.sequenceNumber }
        nonmutating set { record.pointee.header.sequenceNumber = newValue }
    }

    /// How the stored picture is to be turned for display.
    public var orientation: Orientation {
        get { record.pointee.header.statedOrientation ?? .up }
        nonmutating set { record.pointee.header.statedOrientation = newValue }
    }

    /// Whether this is the first frame after a gap in time.
    public var isDiscontinuity: Bool {
        get { record.pointee.header.isDiscontinuity }
        nonmutating set { record.pointee.header.isDiscontinuity = newValue }
    }

    /// Whether the source decoded the picture from a keyframe; false where it does not say, as of raw pictures of a
    /// camera.
    public var isKeyframe: Bool {
        get { record.pointee.header.isKeyframe }
        nonmutating set { record.pointee.header.entry = newValue ? .clean : .none }
    }

    /// Whether the source gives this picture in place of one that it lacks: the last picture again, or a slate, while
    /// its device is away.
    public var isSubstitute: Bool {
        get { record.pointee.header.isSubstitute }
        nonmutating set { record.pointee.header.isSubstitute = newValue }
    }

    /// Whether previews show the picture mirrored left to right: a camera that faces the person who watches the
    /// preview.
    ///
    /// Streams and files show it as it is; the pixels are never mirrored for it.
    public var isMirroredInPreviews: Bool {
        get { record.pointee.header.isMirroredInPreviews }
        nonmutating set { record.pointee.header.isMirroredInPreviews = newValue }
    }

    /// Makes a second lease of the same buffer, with the same times and metadata.
    ///
    /// No pixel is copied, and nothing is allocated as long as the stage keeps no more than its declared `hold`.
    public func share() -> Frame {
        let other = record.pointee.owner.share(record)
        other.pointee.hand(to: record.pointee.keeper)
        other.pointee.keep()
        other.pointee.since.store(pool.now, ordering: .relaxed)
        return Frame(Lease(other))
    }

    /// Whether this is the only lease of the buffer.
    public var isUnique: Bool { pool.isUnique(record) }

    /// Takes over the times, the sequence number, the orientation and the metadata of another frame of the chain, but
    /// not its pixels.
    public func copyProperties(from other: borrowing Frame) {
        record.pointee.header.replace(with: other.record.pointee.header, pool.layout)
    }

    /// The metadata in `slot`; nil when no stage has set it. Set nil to remove it.
    public subscript<Value: FrameMetadata>(slot: MetadataSlot<Value>) -> Value? {
        get { record.pointee.header[slot] }
        nonmutating set { record.pointee.header[slot] = newValue }
    }
}
