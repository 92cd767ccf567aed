// SPDX-License-Identifier: Apache-2.0

import Glibc

/// What the machine lacks where a plugin's file cannot be opened or loaded: the file itself is not to blame then.
enum Shortage {
    /// What to do about it; nil for an error that is no shortage.
    static func remedy(_ code: Int32) -> String? {
        switch code {
        case EMFILE, ENFILE: "Raise the limit of open files (ulimit -n)."
        case ENOMEM: "Free some memory on this machine."
        default: nil
        }
    }

    /// Which shortage kept dlopen(3) from loading the file at `path`; nil where it was none. The dynamic linker gives a
    /// sentence alone, so the file is opened once more.
    ///
    /// - Parameter code: `errno` after the call.
    static func ofLoading(_ path: String, _ code: Int32) -> Int32? {
        if remedy(code) != nil { return code }
        let file = open(path, O_RDONLY | O_CLOEXEC)
        guard file < 0 else {
            close(file)
            return nil
        }
        let code = errno
        return remedy(code) == nil ? nil : code
    }
}
