// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Synchronization

/// What a stage and the window thread share about one window: the newest picture, and how to show it.
final class WindowSlot: Sendable {
    let title: String
    let size: PictureSize?
    let format: VideoFormat
    /// [window thread] Called with what the user does to the window.
    let report: @Sendable (WindowEvent) -> Void

    private let newest = Mutex(FrameRing(capacity: 1))
    private let wanted: Locked<WindowView>
    private let shown = Atomic<Int>(0)
    private let closed = Atomic<Bool>(false)
    private let isAwaited = Atomic<Bool>(false)

    init(
        title: String, size: PictureSize?, format: VideoFormat, view: WindowView,
        report: @escaping @Sendable (WindowEvent) -> Void
    ) {
        self.title = title
        self.size = size
        self.format = format
        wanted = Locked(view)
        self.report = report
    }

    var view: WindowView {
        get { wanted.withLock { $0 } }
        set { wanted.withLock { $0 = newValue } }
    }

    /// Pictures that were drawn.
    var drawn: Int { shown.load(ordering: .relaxed) }
    /// Whether the user has closed the window. Pictures for it are then released at once.
    var isClosed: Bool {
        get { closed.load(ordering: .acquiring) }
        set { closed.store(newValue, ordering: .releasing) }
    }

    /// [stage thread] Replaces a picture that was not drawn yet.
    ///
    /// - Returns: Whether the window thread must be told. Otherwise it knows of an earlier picture already.
    func put(_ frame: consuming Frame) -> Bool {
        // For the compiler a closure may be called twice, but a frame can only be moved once.
        var given: Frame? = consume frame
        newest.withLock { if let frame = given.take() { $0.append(frame) } }
        return !isAwaited.exchange(true, ordering: .acquiringAndReleasing)
    }

    /// [window thread]
    func take() -> Frame? {
        isAwaited.store(false, ordering: .releasing)
        return newest.withLock { $0.takeOldest() }
    }

    /// [window thread]
    func countDrawn() { shown.add(1, ordering: .relaxed) }

    /// [any thread] Releases a picture that was not drawn.
    func empty() { newest.withLock { $0.removeAll() } }
}

/// What the user does to a window.
enum WindowEvent: Sendable {
    /// A key, by SDL's name of it in lower case: "s", "f5", "left".
    case key(String)
    case closed
    /// Not by the user: a picture could not be drawn.
    case failed(FrameHostError)
}
