/// One encoded picture: all NAL units of one time, leased from the chain's slab.
///
/// Moves and is never copied; `share()` gives a branch its own lease of the same bytes, which nobody writes once it was
/// emitted.
public struct AccessUnit: ~Copyable, @unchecked Sendable {
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

    /// When the picture is to be shown.
    public var pts: MediaTime {
        get { record.pointee.header.pts }
        nonmutating set { record.pointee.header.pts = newValue }
    }

    /// When it is to be decoded; rises from unit to unit. Equal to `pts` without B-frames.
    public var dts: MediaTime {
        get { record.pointee.header.dts }
        nonmutating set { record.pointee.header.dts = newValue }
    }

    /// How long it is to be shown; zero when unknown.
    public var duration: MediaTime {
        get { record.pointee.header.duration }
        nonmutating set { record.pointee.header.duration = newValue }
    }

    /// When the picture was captured, in nanoseconds of the chain clock; kept within ``MediaTime/range``.
    public var capturedAt: Int64 {
        get { record.pointee.header.capturedAt }
        nonmutating set { record.pointee.header.capturedAt = MediaTime(nanoseconds: newValue).nanoseconds }
    }

    /// The frame's sequence number.
    public var sequenceNumber: UInt64 {
        get { record.pointee.header.sequenceNumber }
        nonmutating set { record.pointee.header.sequenceNumber = newValue }
    }

    /// How the stored picture is to be turned for display; upright until somebody has said otherwise.
    public var orientation: Orientation {
        get { record.pointee.header.statedOrientation ?? .up }
        nonmutating set { record.pointee.header.statedOrientation = newValue }
    }

    /// Decodable alone (H.264: an IDR picture).
    public var isKeyframe: Bool {
        get { record.pointee.header.isKeyframe }
        nonmutating set { record.pointee.header.isKeyframe = newValue }
    }

    /// True on the first unit after a gap in time or a loss.
    public var isDiscontinuity: Bool {
        get { record.pointee.header.isDiscontinuity }
        nonmutating set { record.pointee.header.isDiscontinuity = newValue }
    }

    /// As ``Frame/isMirroredInPreviews``.
    public var isMirroredInPreviews: Bool {
        get { record.pointee.header.isMirroredInPreviews }
        nonmutating set { record.pointee.header.isMirroredInPreviews = newValue }
    }

    /// Bytes of the payload.
    public var byteCount: Int { record.pointee.byteCount }

    /// The metadata in `slot`, nil when no stage has set it: that of the frame this unit was made of, and what stages
    /// behind the encoder have added.
    public subscript<Value: FrameMetadata>(slot: MetadataSlot<Value>) -> Value? {
        get { record.pointee.header[slot] }
        nonmutating set { record.pointee.header[slot] = newValue }
    }

    /// A lease of its own on the same bytes.
    public func share() -> AccessUnit {
        let other = record.pointee.owner.share(record)
        other.pointee.keeper = record.pointee.keeper
        other.pointee.keep()
        return AccessUnit(Lease(other))
    }

    /// The payload in the framing of its ``EncodedFormat``, for `body` alone.
    public func withBytes<Result>(_ body: (UnsafeRawBufferPointer) throws -> Result) rethrows -> Result {
        try body(UnsafeRawBufferPointer(start: record.pointee.base, count: record.pointee.byteCount))
    }

    /// The payload to fill, for `body` alone; before the unit is emitted.
    public mutating func withMutableBytes<Result>(_ body: (UnsafeMutableRawBufferPointer) throws -> Result) rethrows
        -> Result
    {
        try body(UnsafeMutableRawBufferPointer(start: record.pointee.base, count: record.pointee.byteCount))
    }
}

/// What travels on a link.
public enum Sample: ~Copyable, Sendable {
    case frame(Frame)
    case accessUnit(AccessUnit)

    init(_ lease: consuming Lease) {
        self =
            switch lease.record.pointee.header.kind {
            case .frame: .frame(Frame(lease))
            case .accessUnit: .accessUnit(AccessUnit(lease))
            }
    }
}
