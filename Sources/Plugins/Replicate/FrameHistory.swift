import FrameCore

/// The last frames that came, each a lease of its buffer.
///
/// Room is made once. Belongs to the stage thread.
final class FrameHistory {
    private let capacity: Int
    private let slots: UnsafeMutablePointer<Frame?>
    /// Index of the newest.
    private var newest = 0
    private(set) var count = 0

    /// - Parameter capacity: Most frames kept.
    init(capacity: Int) {
        self.capacity = capacity
        slots = .allocate(capacity: max(capacity, 1))
        for index in 0..<max(capacity, 1) { (slots + index).initialize(to: nil) }
    }

    deinit {
        slots.deinitialize(count: max(capacity, 1))
        slots.deallocate()
    }

    /// Keeps a frame; the oldest goes when there is no room.
    func add(_ frame: consuming Frame) {
        guard capacity > 0 else { return }
        newest = (newest + 1) % capacity
        slots[newest] = consume frame
        count = min(count + 1, capacity)
    }

    /// The picture of `age` frames before the newest kept (0 is that itself), to read, for `body` alone.
    func withPicture(age: Int, _ body: (Picture) -> Void) {
        let index = ((newest - age) % capacity + capacity) % capacity
        (slots + index).pointee?.withPicture(body)
    }

    func removeAll() {
        for index in 0..<max(capacity, 1) { slots[index] = nil }
        count = 0
    }
}
