// SPDX-License-Identifier: Apache-2.0

import Glibc

/// How much a pipe holds before its writer has to wait.
enum PipeRoom {
    /// F_SETPIPE_SZ of fcntl(2), which Swift's Glibc does not show.
    private static let setSize: Int32 = 1031
    /// What the kernel allows every user by default (/proc/sys/fs/pipe-max-size).
    private static let bytes: Int32 = 1 << 20

    /// Enlarges a pipe's buffer, so that there are fewer switches between the two programs. Does nothing for a
    /// descriptor that is not a pipe, or where the system does not allow it.
    static func widen(_ descriptor: Int32) { _ = fcntl(descriptor, setSize, bytes) }

    /// Bytes that are in a pipe (pipe(7), FIONREAD), from either end; nil for a descriptor that is not a pipe.
    static func unread(_ descriptor: Int32) -> Int? {
        var status = stat()
        var count: Int32 = 0
        guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFIFO,
            ioctl(descriptor, UInt(FIONREAD), &count) == 0
        else { return nil }
        return Int(count)
    }
}
