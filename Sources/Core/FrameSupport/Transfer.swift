// SPDX-License-Identifier: Apache-2.0

import Glibc

/// Moves all of a number of bytes from or to a descriptor: calls that a signal interrupted (EINTR, signal(7)) are made
/// again, and calls that moved a part go on after it. [any thread]
public enum Transfer {
    /// Writes all bytes. A descriptor that another program has made non-blocking is waited for.
    ///
    /// - Parameters:
    ///   - offset: Where in a file they are put (pwrite(2)); nil for where its last write ended.
    ///   - patience: The longest wait for room, nanoseconds; nil where it may last for ever.
    ///   - done: How many bytes are written now, after each call. For who must know where a failure left it.
    /// - Returns: 0, or errno; `ETIMEDOUT` where there was no room for too long.
    public static func write(
        _ bytes: UnsafeRawBufferPointer, to file: Int32, at offset: Int64? = nil, patience: Int64? = nil,
        done: (Int) -> Void = { _ in }
    ) -> Int32 {
        var sum = 0
        while sum < bytes.count {
            let (rest, left) = (bytes.baseAddress! + sum, bytes.count - sum)
            let count = offset.map { pwrite(file, rest, left, Int($0) + sum) } ?? Glibc.write(file, rest, left)
            if count > 0 {
                sum += count
                done(sum)
                continue
            }
            let code = count == 0 ? EIO : errno
            if code == EINTR { continue }
            guard code == EAGAIN else { return code }
            var room = pollfd(fd: file, events: Int16(POLLOUT), revents: 0)
            if poll(&room, 1, patience.map { Int32(clamping: $0 / 1_000_000) } ?? -1) == 0 { return ETIMEDOUT }
        }
        return 0
    }

    /// Writes all of a small number of bytes.
    ///
    /// - Returns: 0, or errno.
    public static func write(_ bytes: [UInt8], to file: Int32) -> Int32 {
        bytes.withUnsafeBytes { write($0, to: file) }
    }

    /// Fills a buffer as far as the file goes.
    ///
    /// - Parameter offset: Where in the file they lie (pread(2)); nil for where its last read ended.
    /// - Returns: How many bytes were read, and 0 or the errno that ended it.
    public static func read(
        into buffer: UnsafeMutableRawBufferPointer, from file: Int32, at offset: Int64? = nil
    ) -> (count: Int, code: Int32) {
        var sum = 0
        while sum < buffer.count {
            let (rest, left) = (buffer.baseAddress! + sum, buffer.count - sum)
            let count = offset.map { pread(file, rest, left, Int($0) + sum) } ?? Glibc.read(file, rest, left)
            if count < 0, errno == EINTR { continue }
            if count < 0 { return (sum, errno) }
            if count == 0 { break }
            sum += count
        }
        return (sum, 0)
    }
}
