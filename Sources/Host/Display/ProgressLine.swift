// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Glibc

/// The line of a terminal that shows the progress and is overwritten each time. Any line of the log clears it
/// first. [any thread]
final class ProgressLine: Sendable {
    private let isOpen = Locked(false)

    /// Writes over the line.
    func show(_ text: String) {
        isOpen.withLock { isOpen in
            Terminal.write("\r\(text.printable())\u{1b}[K", to: .log, as: .progress)
            isOpen = true
        }
    }

    /// Clears the line where there is one, and calls `write` to write other lines in its place.
    func clear(_ write: () -> Void = {}) {
        isOpen.withLock { isOpen in
            if isOpen { Terminal.write("\r\u{1b}[K", to: .log, as: .progress) }
            isOpen = false
            write()
        }
    }
}
