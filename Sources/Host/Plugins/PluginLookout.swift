// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Glibc
import Synchronization

/// Looks for rebuilt plugins on a thread of its own. What stands under a plugin's name may be large, or lie on a drive
/// that does not answer, and whoever waits for it controls no chain. docs/design/011-hot-swap.md.
final class PluginLookout: Sendable {
    /// Time between two looks, µs.
    private static let pause: useconds_t = 50_000

    private let watch: Locked<PluginWatch>
    private let isOver = Atomic<Bool>(false)

    /// - Throws: ``FrameHostError`` where the system's limit of inotify instances is reached.
    init() throws { watch = Locked(try PluginWatch()) }

    /// Begins to look.
    ///
    /// - Parameter look: Called at each look, on the thread, with the paths of the plugins whose file has changed.
    /// - Throws: ``FrameHostError`` `.exhausted` where no thread could be started.
    func start(_ look: @escaping @Sendable ([String]) -> Void) throws {
        let clock = ChainClock()
        do {
            try ServiceThread.start(name: "plugin-watch", mostlyWaits: true) { [self] in
                while !isOver.load(ordering: .relaxed) {
                    look(watch.withLock { $0.changed(now: clock.now()) })
                    usleep(Self.pause)
                }
            }
        } catch {
            var fault = FrameHostError.wrap(error)
            fault.place = FaultPlace(argument: "--watch-plugins")
            throw fault
        }
    }

    /// [any thread] No look begins any more. One that is under way is not waited for.
    func stop() { isOver.store(true, ordering: .relaxed) }
}
