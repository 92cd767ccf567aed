// SPDX-License-Identifier: Apache-2.0

/// Keeps the last frames that a stage was handed. An `Array` cannot hold them, since a ``Frame`` is never copied.
///
/// ```swift
/// private var last = FrameRing(capacity: 0)
/// func start() { last = FrameRing(capacity: options.frames) }
///
/// func process(_ frame: inout Frame) -> Verdict {
///     last.withFrame(age: 0) { previous in … }     // nil: none has come yet
///     last.append(frame.share())                   // the oldest goes when there is no room
///     return .forward
/// }
/// ```
/// Each frame in the ring leases a buffer of the chain: declare the capacity as ``StageDemand/hold``. The ring
/// allocates its room once, when it is made. It belongs to the stage's thread, and lets go of its frames when it ends.
public struct FrameRing: ~Copyable {
    /// How many frames it can keep.
    public let capacity: Int
    /// How many frames it keeps now.
    public private(set) var count = 0
    /// Initialised where a frame is kept.
    private let slots: UnsafeMutablePointer<Frame>
    /// Index of the oldest.
    private var first = 0

    /// Makes an empty ring for `capacity` frames; one for 0 frames keeps nothing.
    public init(capacity: Int) {
        precondition(capacity >= 0, "the capacity of a ring must be at least 0, but is \(capacity)")
        self.capacity = capacity
        slots = .allocate(capacity: max(capacity, 1))
    }

    deinit {
        for offset in 0..<count { _ = (slots + index(of: offset)).move() }
        slots.deallocate()
    }

    /// Whether it keeps no frame.
    public var isEmpty: Bool { count == 0 }
    /// Whether the next frame pushes out the oldest.
    public var isFull: Bool { count == capacity }

    /// Keeps a frame as the newest. A full ring lets go of the oldest; a ring of capacity 0 lets go of `frame` itself.
    public mutating func append(_ frame: consuming Frame) {
        guard capacity > 0 else { return }
        if isFull { _ = takeOldest() }
        (slots + index(of: count)).initialize(to: frame)
        count += 1
    }

    /// Takes out the oldest frame; nil when there is none.
    public mutating func takeOldest() -> Frame? {
        guard count > 0 else { return nil }
        let frame = (slots + first).move()
        first = index(of: 1)
        count -= 1
        return frame
    }

    /// Lends a frame to `body` without taking it out.
    ///
    /// - Parameters:
    ///   - age: 0 for the newest, `count - 1` for the oldest.
    ///   - body: Reads the frame.
    /// - Returns: What `body` returns; nil, without a call of `body`, when the ring has no frame of this age.
    public func withFrame<Result>(age: Int, _ body: (borrowing Frame) throws -> Result) rethrows -> Result? {
        guard age >= 0, age < count else { return nil }
        return try body(slots[index(of: count - 1 - age)])
    }

    /// Lets go of all frames, as a stage does in ``Stage/stop()`` and ``Stage/releaseCaches()``.
    public mutating func removeAll() {
        while count > 0 { _ = takeOldest() }
    }

    /// The slot of the frame `offset` places behind the oldest; `offset` is at most `capacity`.
    private func index(of offset: Int) -> Int {
        let index = first + offset
        return index < capacity ? index : index - capacity
    }
}
