// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Glibc

/// Tells whether a file has changed since the last look, by its identity, size and time, and where only the time of its
/// last change (ctime) differs, by its content: a file may be written in place with the same size, and its time set
/// back. [control thread]
struct FileWatch {
    /// Nanoseconds from one look to the next.
    private static let interval: Int64 = 500_000_000
    /// A file with more bytes is not compared: it counts as changed.
    private static let mostBytes = 16 << 20

    private struct Look {
        var inode: UInt
        var size: Int
        var written: timespec
        var changed: timespec
        /// A sum over the content; nil of what is not compared.
        var sum: UInt64?

        /// Whether the file was written, replaced or emptied, as its entry tells.
        func isWritten(since other: Look) -> Bool {
            inode != other.inode || size != other.size || !FileWatch.isSame(written, other.written)
        }
    }

    private let path: String
    private var seen: Look?
    private var nextLook: Int64 = 0

    init(_ path: String) {
        self.path = path
        seen = Self.look(path, isCompared: true)
    }

    /// True once for each change. A file that is gone has not changed: an editor may be about to put a new one there.
    mutating func hasChanged(now: Int64) -> Bool {
        guard now >= nextLook else { return false }
        nextLook = now + Self.interval
        guard var look = Self.look(path, isCompared: false) else { return false }
        guard let seen else {
            self.seen = Self.look(path, isCompared: true) ?? look
            return true
        }
        guard look.isWritten(since: seen) || !Self.isSame(look.changed, seen.changed) else { return false }
        look = Self.look(path, isCompared: true) ?? look
        self.seen = look
        return look.isWritten(since: seen) || look.sum == nil || look.sum != seen.sum
    }

    /// Whether there is a file now.
    var isThere: Bool { Self.look(path, isCompared: false) != nil }

    private static func isSame(_ one: timespec, _ other: timespec) -> Bool {
        one.tv_sec == other.tv_sec && one.tv_nsec == other.tv_nsec
    }

    private static func look(_ path: String, isCompared: Bool) -> Look? {
        var status = stat()
        guard stat(path, &status) == 0 else { return nil }
        // Before the content is read: what is written meanwhile is a change.
        var look = Look(
            inode: UInt(status.st_ino), size: Int(status.st_size), written: status.st_mtim, changed: status.st_ctim)
        if isCompared, status.st_mode & S_IFMT == S_IFREG, status.st_size <= mostBytes { look.sum = sum(path) }
        return look
    }

    /// FNV-1a, 64 bits, over the content; nil where it cannot be read.
    private static func sum(_ path: String) -> UInt64? {
        let file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
        guard file >= 0 else { return nil }
        defer { close(file) }
        var (sum, total): (UInt64, Int) = (0xcbf2_9ce4_8422_2325, 0)
        var buffer = [UInt8](repeating: 0, count: 1 << 16)
        while total <= mostBytes {
            let count = SystemCall.retrying { read(file, &buffer, buffer.count) }
            guard count >= 0 else { return nil }
            if count == 0 { return sum }
            total += count
            for byte in buffer[..<count] { sum = (sum ^ UInt64(byte)) &* 0x100_0000_01b3 }
        }
        return nil
    }
}
