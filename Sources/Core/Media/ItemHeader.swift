// SPDX-License-Identifier: Apache-2.0

/// Which kind of item a lease holds; fixed for all leases of a pool or slab.
enum ItemKind: UInt8, Sendable { case frame, accessUnit, audioBlock, motionBlock }

/// The properties of an item, whatever its kind: its times, number, orientation and metadata.
///
/// The header is one cache line in the ``LeaseRecord`` of each lease, so that each branch has its own. Only the holder
/// of the lease writes it. docs/design/012-items.md.
struct ItemHeader: ~Copyable {
    /// When the picture is to be shown.
    var pts = MediaTime.zero
    /// When an access unit is to be decoded; zero in a frame.
    var dts = MediaTime.zero
    /// How long the picture is to be shown; zero when unknown.
    var duration = MediaTime.zero
    /// When the picture was captured (live) or read, on the chain clock; 0 while unknown.
    var capturedAt: Int64 = 0
    var sequenceNumber: UInt64 = 0
    /// First byte of the region with a place for each metadata slot of the chain; nil where it has none.
    let metadata: UnsafeMutableRawPointer?
    /// Bit per metadata slot that is set.
    var metadataPresent: UInt64 = 0
    let kind: ItemKind
    /// How the stored picture is to be turned; nil in an access unit whose maker has not said it.
    var statedOrientation: Orientation? = .up
    /// Whether decoding can begin with it; of a frame, whether it was decoded from such an access unit.
    var entry = AccessUnit.Entry.none
    /// Whether nobody sees it: an access unit that others need to be decoded.
    var isHidden = false
    /// Whether it is the first item after a gap.
    var isDiscontinuity = false
    /// Whether a source gives it in place of a picture that it lacks.
    var isSubstitute = false
    /// Whether previews show the picture mirrored.
    var isMirroredInPreviews = false

    init(_ kind: ItemKind, metadata: UnsafeMutableRawPointer?) {
        self.kind = kind
        self.metadata = metadata
    }

    var isKeyframe: Bool { entry != .none }

    /// The time by which the items of a link rise: access units by decode time, others by PTS.
    @inline(__always)
    var orderTime: MediaTime { kind == .accessUnit ? dts : pts }

    /// The time by which links of access units, sound and motion are limited. Links of frames have no such limit.
    @inline(__always)
    var queueTime: MediaTime { kind == .accessUnit ? dts : pts }

    /// Resets everything but the metadata, which has been cleared by then.
    mutating func reset(orientation: Orientation?) {
        pts = .zero
        dts = .zero
        duration = .zero
        capturedAt = 0
        sequenceNumber = 0
        statedOrientation = orientation
        entry = .none
        isHidden = false
        isDiscontinuity = false
        isSubstitute = false
        isMirroredInPreviews = false
    }

    /// Takes over everything that `other` says, metadata included.
    ///
    /// - Parameter layout: The layout of the chain. Both headers lie in leases of the same chain.
    @inline(__always)
    mutating func replace(with other: borrowing ItemHeader, _ layout: MetadataLayout) {
        if metadataPresent != 0 { layout.clear(&self) }
        pts = other.pts
        dts = other.dts
        duration = other.duration
        capturedAt = other.capturedAt
        sequenceNumber = other.sequenceNumber
        statedOrientation = other.statedOrientation
        entry = other.entry
        isHidden = other.isHidden
        isDiscontinuity = other.isDiscontinuity
        isSubstitute = other.isSubstitute
        isMirroredInPreviews = other.isMirroredInPreviews
        if other.metadataPresent != 0 { layout.copy(from: other, to: &self) }
    }

    /// Takes over from `other` what the maker of this item has not set itself. `other` is the header of the item
    /// that this one answers. The metadata moves, so that `other` no longer has it.
    mutating func fill(from other: inout ItemHeader, _ layout: MetadataLayout) {
        if duration == .zero { duration = other.duration }
        if capturedAt == 0 { capturedAt = other.capturedAt }
        if sequenceNumber == 0 { sequenceNumber = other.sequenceNumber }
        if statedOrientation == nil { statedOrientation = other.statedOrientation }
        // Of an access unit only its encoder knows it.
        if kind == .frame, entry == .none { entry = other.entry }
        if other.isDiscontinuity { isDiscontinuity = true }
        if other.isSubstitute { isSubstitute = true }
        if other.isMirroredInPreviews { isMirroredInPreviews = true }
        if other.metadataPresent != 0 { layout.move(from: &other, to: &self) }
    }

    /// The metadata in `slot`, nil when no stage has set it.
    subscript<Value: FrameMetadata>(slot: MetadataSlot<Value>) -> Value? {
        get {
            guard metadataPresent & (1 << UInt64(slot.index)) != 0 else { return nil }
            return (metadata! + slot.offset).assumingMemoryBound(to: Value.self).pointee
        }
        set {
            let bit = UInt64(1) << UInt64(slot.index)
            let address = metadata! + slot.offset
            if metadataPresent & bit != 0 {
                address.assumingMemoryBound(to: Value.self).deinitialize(count: 1)
                metadataPresent &= ~bit
            }
            if let newValue {
                address.initializeMemory(as: Value.self, repeating: newValue, count: 1)
                metadataPresent |= bit
            }
        }
    }
}
