// SPDX-License-Identifier: Apache-2.0

/// Sound that is not encoded: some milliseconds of all channels, leased from a slab of the chain.
///
/// A block moves and is never copied; ``share()`` makes a second lease of the same samples. Nobody writes the samples
/// once the block is emitted. ``AudioFormat`` says how they lie.
public struct AudioBlock: ~Copyable, @unchecked Sendable {
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

    /// When the first sample is heard, on the chain's timeline.
    public var pts: MediaTime {
        get { record.pointee.header.pts }
        nonmutating set { record.pointee.header.pts = newValue }
    }

    /// How long the block lasts; zero when nobody has set it.
    public var duration: MediaTime {
        get { record.pointee.header.duration }
        nonmutating set { record.pointee.header.duration = newValue }
    }

    /// When the first sample was captured, in nanoseconds of the chain clock, within ``MediaTime/range``.
    public var capturedAt: Int64 {
        get { record.pointee.header.capturedAt }
        nonmutating set { record.pointee.header.capturedAt = MediaTime(nanoseconds: newValue).nanoseconds }
    }

    /// The number of the block from its source.
    public var sequenceNumber: UInt64 {
        get { record.pointee.header.sequenceNumber }
        nonmutating set { record.pointee.header.sequenceNumber = newValue }
    }

    /// Whether this is the first block after a gap in time or a loss.
    public var isDiscontinuity: Bool {
        get { record.pointee.header.isDiscontinuity }
        nonmutating set { record.pointee.header.isDiscontinuity = newValue }
    }

    /// How many channels there are.
    public var channelCount: Int { unsafeDowncast(record.pointee.owner, to: Slab.self).channelCount }

    /// How many samples each channel has.
    public var sampleCount: Int { record.pointee.byteCount / (channelCount * MemoryLayout<Float>.stride) }

    /// Takes over the times, the number and the gap mark of `other`, the block that this one was made from.
    public func copyProperties(from other: borrowing AudioBlock) {
        pts = other.pts
        duration = other.duration
        capturedAt = other.capturedAt
        sequenceNumber = other.sequenceNumber
        isDiscontinuity = other.isDiscontinuity
    }

    /// Makes a second lease of the same samples.
    public func share() -> AudioBlock {
        let other = record.pointee.owner.share(record)
        other.pointee.hand(to: record.pointee.keeper)
        other.pointee.keep()
        return AudioBlock(Lease(other))
    }

    /// Lends the samples to `body` to read: ``sampleCount`` times ``channelCount`` floats, interleaved.
    public func withSamples<Result>(_ body: (UnsafeBufferPointer<Float>) throws -> Result) rethrows -> Result {
        try body(UnsafeBufferPointer(samples))
    }

    /// Lends the samples to `body` to fill, before the block is emitted. They are not cleared.
    public mutating func withMutableSamples<Result>(_ body: (UnsafeMutableBufferPointer<Float>) throws -> Result)
        rethrows -> Result
    { try body(samples) }

    private var samples: UnsafeMutableBufferPointer<Float> {
        let count = sampleCount * channelCount
        return UnsafeMutableBufferPointer(
            start: record.pointee.base?.bindMemory(to: Float.self, capacity: count), count: count)
    }
}
