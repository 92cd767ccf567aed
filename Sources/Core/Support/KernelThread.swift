// SPDX-License-Identifier: Apache-2.0

import Glibc

/// What the kernel says of a thread of this process: proc(5).
enum KernelThread {
    /// [the thread itself] Its number; 0 where the kernel does not say. Swift's Glibc does not show gettid(2).
    static var currentNumber: Int32 {
        var name = [CChar](repeating: 0, count: 64)
        // "PID/task/TID"
        let count = readlink("/proc/thread-self", &name, name.count)
        guard count > 0 else { return 0 }
        let number = name[..<count].split(separator: CChar(UInt8(ascii: "/"))).last ?? []
        return number.reduce(0) { $0 &* 10 &+ Int32($1) &- 48 }
    }

    /// [any thread] Whether a thread sleeps until something wakes it. A thread that runs, or that waits for a processor
    /// or a disk, does not. True where the kernel does not say, which is not so where only descriptors or memory lack.
    static func isAsleep(_ number: Int32) -> Bool {
        let file = open("/proc/self/task/\(number)/stat", O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { return ![EMFILE, ENFILE, ENOMEM, EINTR].contains(errno) }
        defer { close(file) }
        // "TID (NAME) STATE …"; the name has at most 64 bytes, and may contain anything.
        var bytes = [UInt8](repeating: 0, count: 256)
        let count = read(file, &bytes, bytes.count)
        guard count > 0, let end = bytes[..<count].lastIndex(of: UInt8(ascii: ")")), end + 2 < count else {
            return true
        }
        return bytes[end + 2] == UInt8(ascii: "S")
    }
}
