// SPDX-License-Identifier: Apache-2.0

/// Samples of motion, one after the other in time, leased from a slab of the chain.
///
/// A block moves and is never copied; ``share()`` makes a second lease of the same samples. Nobody writes the samples
/// once the block is emitted.
public struct MotionBlock: ~Copyable, @unchecked Sendable {
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

    /// The time of the first sample, on the chain's timeline.
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

    /// How many samples there are.
    public var sampleCount: Int { record.pointee.byteCount / MemoryLayout<MotionSample>.stride }

    /// Makes a second lease of the same samples.
    public func share() -> MotionBlock {
        let other = record.pointee.owner.share(record)
        other.pointee.hand(to: record.pointee.keeper)
        other.pointee.keep()
        return MotionBlock(Lease(other))
    }

    /// The sample at `index`, with its time on the chain's timeline.
    public subscript(index: Int) -> MotionSample {
        let samples = samples
        precondition(
            samples.indices.contains(index),
            "sample \(index) is not one of the \(samples.count) samples, which are counted from 0")
        var sample = samples[index]
        sample.time = sample.time + pts
        return sample
    }

    /// Takes over these samples, of which there are ``sampleCount``. Their times rise; that of the first becomes
    /// ``pts``.
    mutating func fill(_ source: Span<MotionSample>) {
        let samples = samples
        precondition(source.count == samples.count && !samples.isEmpty)
        let begin = source[0].time
        for index in samples.indices {
            samples[index] = source[index]
            // Relative to the first, so that the block can be moved on the timeline.
            samples[index].time = source[index].time - begin
        }
        pts = begin
        duration = source[source.count - 1].time - begin
    }

    private var samples: UnsafeMutableBufferPointer<MotionSample> {
        let count = sampleCount
        return UnsafeMutableBufferPointer(
            start: record.pointee.base?.bindMemory(to: MotionSample.self, capacity: count), count: count)
    }
}
