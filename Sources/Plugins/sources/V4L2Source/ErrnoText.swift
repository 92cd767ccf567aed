// SPDX-License-Identifier: Apache-2.0

import Glibc

/// An errno in words and by its name, as people look it up.
enum ErrnoText {
    private static let names: [Int32: String] = [
        EACCES: "EACCES", EAGAIN: "EAGAIN", EBADF: "EBADF", EBUSY: "EBUSY", EFAULT: "EFAULT", EINTR: "EINTR",
        EINVAL: "EINVAL", EIO: "EIO", EMFILE: "EMFILE", ENFILE: "ENFILE", ENODEV: "ENODEV", ENOENT: "ENOENT",
        ENOMEM: "ENOMEM", ENOSPC: "ENOSPC", ENOTTY: "ENOTTY", ENXIO: "ENXIO", EPERM: "EPERM", EPIPE: "EPIPE",
        EPROTO: "EPROTO", ERANGE: "ERANGE", ESHUTDOWN: "ESHUTDOWN", ETIMEDOUT: "ETIMEDOUT",
    ]

    /// `No such device (ENODEV)`.
    static func of(_ code: Int32) -> String { "\(String(cString: strerror(code))) (\(names[code] ?? "errno \(code)"))" }
}
