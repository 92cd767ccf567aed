// SPDX-License-Identifier: Apache-2.0

import Glibc

/// An open file that other stages and programs leave alone: it stands in the list `HeldFiles`, and is locked where the
/// file system has locks.
///
/// A reader has a shared lock, a writer an exclusive one. One thread at a time uses it; ``RunFiles`` makes it.
public final class HeldFile {
    /// The file's name, which ``RunFiles/exchange(_:over:meant:own:)`` changes.
    public internal(set) var path: String
    /// Device and inode of the file.
    public let identity: FileIdentity
    /// Whether it is a regular file. Any other file is written into as it is, and never emptied, cut or removed.
    public let isRegular: Bool
    /// False where the file system has no locks, and where a reader's file is being written.
    public private(set) var isLocked: Bool
    /// −1 once closed.
    public private(set) var descriptor: Int32
    let hold: UInt64

    init(path: String, descriptor: Int32, identity: FileIdentity, isRegular: Bool, hold: UInt64, isLocked: Bool) {
        self.path = path
        self.descriptor = descriptor
        self.identity = identity
        self.isRegular = isRegular
        self.hold = hold
        self.isLocked = isLocked
    }

    deinit { close() }

    /// Ends the hold and closes the file. A second call does nothing.
    ///
    /// - Returns: 0, or errno: some network file systems say only here that they had no room.
    @discardableResult
    public func close() -> Int32 {
        guard descriptor >= 0 else { return 0 }
        // Closing alone would leave the lock to a child process that was forked a moment ago and has not begun its
        // own program yet.
        if isLocked { _ = flock(descriptor, LOCK_UN) }
        // Removed before the close: from then on the inode of a file without a name is free, and a new file may get
        // it.
        HeldFiles.shared.remove(identity, hold)
        // An interrupted close closes the file too (close(2), on Linux).
        let result = Glibc.close(descriptor) == 0 || errno == EINTR ? 0 : errno
        descriptor = -1
        return result
    }

    /// Whether the name still leads to this file.
    public var hasItsName: Bool {
        var status = stat()
        return lstat(path, &status) == 0 && FileIdentity(status) == identity
    }

    /// Whether the name leads to this file, links followed.
    public var hasItsFile: Bool { FileIdentity(path: path) == identity }

    /// Writes all of `bytes` where the last write ended.
    ///
    /// - Parameters:
    ///   - bytes: What to write.
    ///   - patience: For a pipe: how long its reader may take nothing, in nanoseconds; nil waits for ever.
    /// - Returns: 0, or errno.
    public func write(_ bytes: UnsafeRawBufferPointer, patience: Int64? = nil) -> Int32 {
        Transfer.write(bytes, to: descriptor, patience: patience)
    }
}
