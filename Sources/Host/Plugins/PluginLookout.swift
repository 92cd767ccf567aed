// SPDX-License-Identifier: Apache-2.0

import FrameCore
import FrameSupport

/// Looks for rebuilt plugins on a thread of its own. What stands under a plugin's name may be large, or lie on a drive
/// that does not answer, and whoever waits for it controls no chain. docs/design/011-hot-swap.md.
final class PluginLookout: Sendable {
    /// Time between two looks, ms.
    private static let pause = 50

    private let watch: Locked<PluginWatch>
    private let isOver = WaitableFlag()

    /// - Throws: ``FrameHostError`` where the system's limit of inotify instances is reached.
    init() throws { watch = Locked(try PluginWatch()) }

    /// Begins to look.
    ///
    /// - Parameter look: Called at each look, on the thread, with the paths of the plugins whose file has changed.
    /// - Throws: ``FrameHostError`` `.exhausted` where no thread could be started.
    func start(_ look: @escaping @Sendable ([String]) -> Void) throws {
        do {
            try ServiceThread.start(name: "plugin-watch", mostlyWaits: true) { [self] in
                while !isOver.isRaised {
                    look(watch.withLock { $0.changed(now: MonotonicTime.now()) })
                    isOver.wait(milliseconds: Self.pause)
                }
            }
        } catch {
            var fault = FrameHostError.wrap(error)
            fault.place = FaultPlace(argument: "--watch-plugins")
            throw fault
        }
    }

    /// [any thread] No look begins any more. One that is under way is not waited for.
    func stop() { isOver.raise() }
}
