// SPDX-License-Identifier: Apache-2.0

import Glibc

extension FileRefusal {
    /// The refusal as an error about the file `path`.
    ///
    /// - Parameters:
    ///   - path: The file, as the user named it.
    ///   - overwriting: What lets a file be replaced, for the remedy: `add --overwrite`.
    public func fault(_ path: String, overwriting: String? = nil) -> FrameHostError {
        func fault(_ what: String, _ remedy: String, _ code: Int32 = 0) -> FrameHostError {
            FrameHostError(.unavailable, what: what, remedy: remedy, reason: .of(errno: code))
        }
        let another = "Name another file."
        switch self {
        case .exists:
            return fault(
                "'\(path)' already exists",
                overwriting.map { "Name another file, or \($0) to replace it." } ?? another)
        case .absent: return fault("'\(path)' no longer exists", "")
        case .isFolder: return fault("'\(path)' is a folder", "Name a file in it.")
        case .notRegular: return fault("'\(path)' must be a regular file", another)
        case .changed:
            return fault(
                "another program has created, replaced or removed '\(path)' in the meantime",
                "Let no other program change files that a run uses.")
        case .readHere(let name):
            return fault("'\(path)' is being read \(Self.by(name))", another)
        case .writtenHere(let name):
            return fault("'\(path)' is being written \(Self.by(name))", another)
        case .readElsewhere:
            return fault("'\(path)' is being read by another program", "Wait for that program, or name another file.")
        case .writtenElsewhere:
            return fault(
                "'\(path)' is being written by another program", "Wait for that program, or name another file.")
        case .noLocks:
            return fault(
                "'\(path)' is on a file system without locks, so it is unknown whether another program uses it",
                "Remove the file yourself, or name a file on another file system.")
        case .isOwn: return fault("'\(path)' was written by this run", another)
        case .isProtected:
            return fault("'\(path)' is write-protected", "Make it writable (chmod u+w), or name another file.")
        case .noReader: return fault("no program reads the pipe '\(path)'", "First start the program that reads it.")
        case .unknown(let code):
            return fault(
                "framehost cannot find out whether '\(path)' is in use: \(String(cString: strerror(code)))",
                code == EMFILE || code == ENFILE ? "Raise the limit of open files (ulimit -n)." : another, code)
        case .failed(let code):
            return fault("'\(path)' cannot be written: \(String(cString: strerror(code)))", Self.remedy(code), code)
        }
    }

    /// A file that is only looked at has a user without a name for a moment.
    private static func by(_ name: String) -> String { name.isEmpty ? "in this run" : "by '\(name)' of this run" }

    private static func remedy(_ code: Int32) -> String {
        switch code {
        case EMFILE, ENFILE: "Raise the limit of open files (ulimit -n)."
        case ENOSPC, EDQUOT: "Free some space, or name a file on another disk."
        case ENOENT: "Create the folder, or correct the name."
        case ENOTDIR: "Correct the name: one of the folders in it is a file."
        case ENAMETOOLONG: "Use a shorter name."
        case EBADF: "Start the program without '>&-', or name another file."
        case EIO: "Check the disk, or name a file on another disk."
        case EFBIG: "Raise the limit of a file's size (ulimit -f), or name a file on another file system."
        case ETIMEDOUT: "Check the program that reads it: it takes no data."
        case EPIPE: "Check the program that read it: it has gone."
        default: "Name a file in a folder you may write to."
        }
    }
}
