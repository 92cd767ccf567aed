// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Glibc

/// Own recordings that retention would remove and may not, and why. Pure.
///
/// Files in use are none of them: they go as soon as nobody uses them.
package struct KeptRecordings {
    package private(set) var count = 0
    package private(set) var bytes: Int64 = 0
    /// The first one, with its reason.
    package private(set) var first: (path: String, refusal: FileRefusal)?

    package mutating func add(_ file: RetentionPolicy.File, _ refusal: FileRefusal) {
        switch refusal {
        // Somebody else has just removed it.
        case .failed(ENOENT): return
        case .isProtected, .failed, .noLocks: break
        default: return
        }
        count += 1
        bytes = RetentionPolicy.sum(bytes, file.bytes)
        first = first ?? (file.path, refusal)
    }

    package init() {}

    /// What happened, and what to do; nil where there are none.
    package var text: String? {
        guard let (path, refusal) = first else { return nil }
        let others =
            count == 1 ? "" : " (and \(count - 1) more \(count == 2 ? "file" : "files"), \(bytes) bytes together)"
        let (reason, remedy) = Self.reason(refusal)
        return
            "'\(path)'\(others) stays although 'keepSeconds' or 'keepMegabytes' is reached: \(reason). Recordings like this take space beyond the limit. \(remedy)"
    }

    private static func reason(_ refusal: FileRefusal) -> (String, String) {
        switch refusal {
        case .isProtected:
            (
                "it is write-protected",
                "To let it go, make it writable (chmod u+w). To keep it without this warning, move it to another folder."
            )
        case .noLocks:
            (
                "it is on a file system without file locks, so another program may be using this file of an earlier run",
                "Remove it yourself, or record to another file system."
            )
        case .failed(EROFS): ("its file system is read-only", "Mount it writable.")
        case .failed(EPERM):
            (
                "the system does not permit its removal",
                "Check for the attribute 'immutable' (lsattr, chattr -i), and whether only the owner may remove files from the folder."
            )
        case .failed(let code):
            (
                "it cannot be removed (\(String(cString: strerror(code))))",
                "Give this user write permission to its folder, or remove the file yourself."
            )
        default: ("it cannot be removed", "Remove it yourself.")
        }
    }
}
