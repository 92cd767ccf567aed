import Glibc

extension FileRefusal {
    /// As a sentence about the file `path`.
    public func fault(_ path: String) -> FrameHostError {
        func fault(_ what: String, _ remedy: String) -> FrameHostError {
            FrameHostError(.unavailable, what: what, remedy: remedy)
        }
        let another = "Name another file."
        switch self {
        case .exists: return fault("'\(path)' exists already", another)
        case .absent: return fault("'\(path)' is not there any more", "")
        case .isFolder: return fault("'\(path)' is a folder", "Name a file in it.")
        case .notRegular: return fault("'\(path)' is not a regular file", another)
        case .changed: return fault("somebody has put another file in the place of '\(path)'", "It is left alone.")
        case .readHere(let name): return fault("'\(path)' is being read by '\(name)' of this run", another)
        case .writtenHere(let name): return fault("'\(path)' is being written by '\(name)' of this run", another)
        case .readElsewhere:
            return fault("'\(path)' is being read by another program", "Wait for that program, or name another file.")
        case .writtenElsewhere:
            return fault(
                "'\(path)' is being written by another program", "Wait for that program, or name another file.")
        case .noLocks:
            return fault(
                "'\(path)' lies on a file system without locks, so nobody can say whether another program uses it",
                "Remove it yourself, or name a file on another file system.")
        case .isOwn: return fault("'\(path)' was written by this run", another)
        case .isProtected:
            return fault("'\(path)' is write-protected", "Make it writable (chmod u+w), or name another file.")
        case .noReader: return fault("nobody reads the pipe '\(path)'", "Start its reader first.")
        case .unknown(let code):
            return fault(
                "whether '\(path)' is in use cannot be found out: \(String(cString: strerror(code)))",
                code == EMFILE || code == ENFILE ? "Raise the limit of open files (ulimit -n)." : another)
        case .failed(let code):
            return fault("'\(path)' cannot be written: \(String(cString: strerror(code)))", Self.remedy(code))
        }
    }

    private static func remedy(_ code: Int32) -> String {
        switch code {
        case EMFILE, ENFILE: "Raise the limit of open files (ulimit -n)."
        case ENOSPC, EDQUOT: "Make room, or name a file on another disk."
        case ENOENT: "Make the folder, or correct the name."
        case ETIMEDOUT: "Its reader takes nothing: look at that program."
        case EPIPE: "Its reader has gone: look at that program."
        default: "Name a file in a folder you may write to."
        }
    }
}
