// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// Asks an encoder for a keyframe as soon as possible: a reader has joined, or a loss was reported.
///
/// Several requests before the next picture count as one. A sink finds it as ``StageContext/keyframeRequest``.
public final class KeyframeRequest: Sendable {
    private let isRaised = Atomic<Bool>(false)
    /// The encoder's request, where this one belongs to a stage behind it. It changes when the encoder is replaced.
    private let target: Locked<KeyframeRequest?>

    init(to target: KeyframeRequest? = nil) { self.target = Locked(target) }

    /// [any thread] Requests a keyframe. Never waits for a stage.
    public func raise() {
        if let target = target.withLock({ $0 }) { return target.raise() }
        isRaised.store(true, ordering: .releasing)
    }

    /// [control thread] Sends requests to `target` from now on.
    func redirect(to target: KeyframeRequest) { self.target.withLock { $0 = target } }

    /// [encoder's stage thread] True once for all requests since the last call.
    @inline(__always)
    func take() -> Bool { isRaised.load(ordering: .relaxed) && isRaised.exchange(false, ordering: .acquiring) }
}
