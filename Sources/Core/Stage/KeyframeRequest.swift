import Synchronization

/// The wish of stages behind an encoder for a keyframe as soon as may be: a viewer has joined, a loss was reported.
/// Many wishes before the next picture are one.
public final class KeyframeRequest: Sendable {
    private let isRaised = Atomic<Bool>(false)

    init() {}

    /// [any thread] Never waits.
    public func raise() { isRaised.store(true, ordering: .releasing) }

    /// [encoder's stage thread] True once for all wishes since the last call.
    @inline(__always)
    func take() -> Bool { isRaised.load(ordering: .relaxed) && isRaised.exchange(false, ordering: .acquiring) }
}
