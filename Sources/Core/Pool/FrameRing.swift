/// The last frames that a stage was handed, oldest first: what an Array cannot hold, since a ``Frame`` moves and is
/// never copied.
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
/// Each frame in it keeps a buffer of the chain leased: declare the capacity as `hold`. Room is made once, so that
/// adding and taking allocate nothing; what is left goes back when the ring ends. Belongs to the stage thread.
public struct FrameRing: ~Copyable {
    /// Most frames that are kept.
    public let capacity: Int
    /// Frames that are kept now.
    public private(set) var count = 0
    /// Initialised where a frame is kept.
    private let slots: UnsafeMutablePointer<Frame>
    /// Index of the oldest.
    private var first = 0

    /// - Parameter capacity: 0 keeps nothing.
    public init(capacity: Int) {
        precondition(capacity >= 0, "a ring of \(capacity) frames")
        self.capacity = capacity
        slots = .allocate(capacity: max(capacity, 1))
    }

    deinit {
        for offset in 0..<count { _ = (slots + index(of: offset)).move() }
        slots.deallocate()
    }

    public var isEmpty: Bool { count == 0 }
    public var isFull: Bool { count == capacity }

    /// Keeps a frame as the newest. The oldest goes when there is no room; a ring of capacity 0 lets the frame itself
    /// go.
    public mutating func append(_ frame: consuming Frame) {
        guard capacity > 0 else { return }
        if isFull { _ = takeOldest() }
        (slots + index(of: count)).initialize(to: frame)
        count += 1
    }

    /// Takes out the frame that came first; nil when there is none.
    public mutating func takeOldest() -> Frame? {
        guard count > 0 else { return nil }
        let frame = (slots + first).move()
        first = index(of: 1)
        count -= 1
        return frame
    }

    /// Looks at a frame without taking it out.
    ///
    /// - Parameter age: 0 is the newest, `count - 1` the oldest.
    /// - Returns: what `body` returned; nil, without calling it, when no frame of this age is kept.
    public func withFrame<Result>(age: Int, _ body: (borrowing Frame) throws -> Result) rethrows -> Result? {
        guard age >= 0, age < count else { return nil }
        return try body(slots[index(of: count - 1 - age)])
    }

    /// Lets go of all frames, as a stage does in `stop` and `releaseCaches`.
    public mutating func removeAll() {
        while count > 0 { _ = takeOldest() }
    }

    /// Of the frame `offset` places behind the oldest; `offset` is at most `capacity`.
    private func index(of offset: Int) -> Int {
        let index = first + offset
        return index < capacity ? index : index - capacity
    }
}
