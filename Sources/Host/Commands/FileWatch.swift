// SPDX-License-Identifier: Apache-2.0

import Glibc

/// Tells whether a file has changed since the last look, by its identity, size and time. [control thread]
struct FileWatch {
    /// Nanoseconds from one look to the next.
    private static let interval: Int64 = 500_000_000

    private struct Look: Equatable {
        var inode: UInt
        var size: Int
        var seconds: Int
        var nanoseconds: Int
    }

    private let path: String
    private var seen: Look?
    private var nextLook: Int64 = 0

    init(_ path: String) {
        self.path = path
        seen = Self.look(path)
    }

    /// True once for each change. A file that is gone has not changed: an editor may be about to put a new one there.
    mutating func hasChanged(now: Int64) -> Bool {
        guard now >= nextLook else { return false }
        nextLook = now + Self.interval
        guard let look = Self.look(path), look != seen else { return false }
        seen = look
        return true
    }

    /// Whether there is a file now.
    var isThere: Bool { Self.look(path) != nil }

    private static func look(_ path: String) -> Look? {
        var status = stat()
        guard stat(path, &status) == 0 else { return nil }
        return Look(
            inode: UInt(status.st_ino), size: Int(status.st_size), seconds: status.st_mtim.tv_sec,
            nanoseconds: status.st_mtim.tv_nsec)
    }
}
