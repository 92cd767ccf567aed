// SPDX-License-Identifier: Apache-2.0

/// One encoded picture, all NAL units of one time, or one packet of encoded sound; leased from a slab of the chain.
///
/// A unit of sound counts as decodable alone: its ``entry`` is clean. Its ``pts`` and ``dts`` are equal, and
/// negative for samples that a decoder needs and nobody hears (``AudioTrackFormat/initialPadding``).
///
/// An access unit moves and is never copied; ``share()`` makes a second lease of the same bytes. Nobody writes the
/// bytes once the unit is emitted.
public struct AccessUnit: ~Copyable, @unchecked Sendable {
    /// Whether decoding can begin with a unit.
    public enum Entry: UInt8, Sendable, Hashable {
        /// It refers to pictures before it.
        case none
        /// It refers to no other picture, and no later one to one before it: IDR of H.264 and H.265, a key frame of AV1
        /// that is shown, each picture of MJPEG and each packet of sound.
        case clean
        /// It refers to no other picture, but pictures that follow it and are shown before it may: CRA and BLA of H.265.
        /// Where decoding begins here, those are left out.
        case open
    }

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

    /// When the picture is shown, on the chain's timeline.
    public var pts: MediaTime {
        get { record.pointee.header.pts }
        nonmutating set { record.pointee.header.pts = newValue }
    }

    /// When the picture is decoded: rises from unit to unit, never later than ``pts``, and equal to it without
    /// B-frames.
    public var dts: MediaTime {
        get { record.pointee.header.dts }
        nonmutating set { record.pointee.header.dts = newValue }
    }

    /// How long the picture is shown; zero when unknown.
    public var duration: MediaTime {
        get { record.pointee.header.duration }
        nonmutating set { record.pointee.header.duration = newValue }
    }

    /// When the picture was captured, in nanoseconds of the chain clock, within ``MediaTime/range``.
    public var capturedAt: Int64 {
        get { record.pointee.header.capturedAt }
        nonmutating set { record.pointee.header.capturedAt = MediaTime(nanoseconds: newValue).nanoseconds }
    }

    /// The sequence number of the frame that was encoded.
    public var sequenceNumber: UInt64 {
        get { record.pointee.header.sequenceNumber }
        nonmutating set { record.pointee.header.sequenceNumber = newValue }
    }

    /// How the stored picture is to be turned for display; ``Orientation/up`` until a stage sets it.
    public var orientation: Orientation {
        get { record.pointee.header.statedOrientation ?? .up }
        nonmutating set { record.pointee.header.statedOrientation = newValue }
    }

    /// Whether decoding can begin here; ``Entry/none`` until a stage sets it.
    public var entry: Entry {
        get { record.pointee.header.entry }
        nonmutating set { record.pointee.header.entry = newValue }
    }

    /// Whether decoding can begin here, at a clean or an open ``entry``; set, it is a clean one.
    public var isKeyframe: Bool {
        get { record.pointee.header.isKeyframe }
        nonmutating set { record.pointee.header.entry = newValue ? .clean : .none }
    }

    /// Whether the picture is shown; true until a stage says otherwise.
    ///
    /// A picture that an edit list hides (ISO/IEC 14496-12, 8.6.6) only serves to decode those after it. Its ``pts`` is
    /// before 0, where the first one that is shown begins. A sink that cannot hide it shows it.
    public var isShown: Bool {
        get { !record.pointee.header.isHidden }
        nonmutating set { record.pointee.header.isHidden = !newValue }
    }

    /// Whether this is the first unit after a gap in time or a loss.
    public var isDiscontinuity: Bool {
        get { record.pointee.header.isDiscontinuity }
        nonmutating set { record.pointee.header.isDiscontinuity = newValue }
    }

    /// Whether previews show the picture mirrored left to right, as for ``Frame/isMirroredInPreviews``.
    public var isMirroredInPreviews: Bool {
        get { record.pointee.header.isMirroredInPreviews }
        nonmutating set { record.pointee.header.isMirroredInPreviews = newValue }
    }

    /// The size of the payload in bytes.
    public var byteCount: Int { record.pointee.byteCount }

    /// The metadata in `slot`; nil when no stage has set it.
    ///
    /// A unit has the metadata of the frame that was encoded, and what stages behind the encoder have added.
    public subscript<Value: FrameMetadata>(slot: MetadataSlot<Value>) -> Value? {
        get { record.pointee.header[slot] }
        nonmutating set { record.pointee.header[slot] = newValue }
    }

    /// Makes a second lease of the same bytes.
    public func share() -> AccessUnit {
        let other = record.pointee.owner.share(record)
        other.pointee.hand(to: record.pointee.keeper)
        other.pointee.keep()
        return AccessUnit(Lease(other))
    }

    /// Lends the payload to `body` to read, in the framing of its ``EncodedFormat``.
    public func withBytes<Result>(_ body: (UnsafeRawBufferPointer) throws -> Result) rethrows -> Result {
        try body(UnsafeRawBufferPointer(start: record.pointee.base, count: record.pointee.byteCount))
    }

    /// Lends the payload to `body` to fill, before the unit is emitted.
    public mutating func withMutableBytes<Result>(_ body: (UnsafeMutableRawBufferPointer) throws -> Result) rethrows
        -> Result
    {
        try body(UnsafeMutableRawBufferPointer(start: record.pointee.base, count: record.pointee.byteCount))
    }
}
