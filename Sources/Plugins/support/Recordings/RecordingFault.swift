// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Glibc

/// Why a recording cannot be written, as sentences.
package enum RecordingFault {
    /// What is wrong with the place of a new file; nil when it can be written. Creates nothing.
    package static func ofPath(_ path: String, overwrite: Bool) -> FrameHostError? {
        if let fault = ofLength(path) { return fault }
        var status = stat()
        if stat(path, &status) == 0 {
            if status.st_mode & S_IFMT == S_IFDIR {
                return FrameHostError(
                    .invalidConfiguration, what: "'\(path)' is a folder", remedy: "Name a file in it.", option: "path")
            }
            // The writer of a pipe would wait for a reader, and cannot seek in it.
            let isPipe = status.st_mode & S_IFMT == S_IFIFO
            if isPipe || status.st_mode & S_IFMT == S_IFSOCK {
                return FrameHostError(
                    .invalidConfiguration,
                    what: "'\(path)' must be a regular file, but is a \(isPipe ? "pipe" : "socket")",
                    remedy: "Name a file.", option: "path")
            }
            if !overwrite { return exists(path) }
            if access(path, W_OK) != 0 { return unwritable(path, errno) }
            guard status.st_mode & S_IFMT == S_IFREG else { return nil }
            if status.st_mode & 0o222 == 0 { return FileRefusal.isProtected.fault(path) }
        }
        // A link that leads nowhere has the name too.
        if !overwrite, lstat(path, &status) == 0 { return exists(path) }
        // The file is replaced by a new one, so its folder must be writable too.
        return ofFolder(FileNames.folder(of: overwrite ? FileNames.followed(path) : path))
    }

    /// The fault of a name or path that is too long for its file system; nil for any other.
    package static func ofLength(_ path: String) -> FrameHostError? {
        var status = stat()
        guard stat(path, &status) != 0, errno == ENAMETOOLONG else { return nil }
        return FrameHostError(
            .invalidConfiguration, what: "'\(path)' is too long for a file name", remedy: "Shorten 'path'.",
            option: "path")
    }

    /// What is wrong with a folder for new files; nil when they can be made there.
    package static func ofFolder(_ folder: String) -> FrameHostError? {
        var status = stat()
        guard stat(folder, &status) == 0 else {
            return errno == ENOENT ? missing(folder) : unwritable(folder: folder, errno)
        }
        guard status.st_mode & S_IFMT == S_IFDIR else {
            return FrameHostError(
                .invalidConfiguration, what: "'\(folder)' must be a folder, but is a file", remedy: "Correct 'path'.",
                option: "path")
        }
        return access(folder, W_OK | X_OK) == 0 ? nil : unwritable(folder: folder, errno)
    }

    package static func missing(_ folder: String) -> FrameHostError {
        FrameHostError(
            .unavailable, what: "the folder '\(folder)' does not exist", remedy: "Create it, or correct 'path'.",
            option: "path")
    }

    /// - Parameter isReplaceable: Whether the file is replaced with `overwrite`.
    package static func exists(_ path: String, isReplaceable: Bool = true) -> FrameHostError {
        FrameHostError(
            .invalidConfiguration, what: "'\(path)' exists already",
            remedy: isReplaceable ? "Name another file, or set \"overwrite\": true to replace it." : moveAway,
            option: "path")
    }

    package static let moveAway = "Move it away, or record under another name."

    /// The fault of a pattern whose next names are all taken.
    package static func noName(from first: String, count: Int) -> FrameHostError {
        FrameHostError(
            .invalidConfiguration,
            what: "there is no free name for a new file: '\(first)' and the next \(count - 1) names are taken",
            remedy: "Move these files away, or record under another name.", option: "path")
    }

    /// What keeps a file of this name from being made.
    ///
    /// - Parameter holder: Under which name stages of this kind hold their files.
    package static func refused(_ path: String, _ refusal: FileRefusal, holder: String) -> FrameHostError {
        switch refusal {
        case .exists: return exists(path)
        case .failed(let code): return unwritable(path, code)
        case .writtenElsewhere:
            return FrameHostError(
                .invalidConfiguration, what: "'\(path)' is being written by another chain or program",
                remedy: "Wait until it has finished, or give this \(holder) another 'path'.", option: "path")
        case .writtenHere(holder):
            return FrameHostError(
                .invalidConfiguration, what: "'\(path)' is being written by another \(holder)",
                remedy: "Give each \(holder) its own 'path'.", option: "path")
        default:
            var fault = refusal.fault(path)
            fault.code = .invalidConfiguration
            return fault
        }
    }

    package static func unwritable(_ path: String, _ code: Int32) -> FrameHostError {
        unwritable(path, code, "'\(path)' cannot be written")
    }

    package static func unwritable(folder: String, _ code: Int32) -> FrameHostError {
        unwritable(folder, code, "no file can be made in the folder '\(folder)'")
    }

    /// The remedies name 'path', by which the fault finds its place: the sentence may have only the folder.
    package static func unwritable(_ path: String, _ code: Int32, _ what: String) -> FrameHostError {
        let remedy =
            switch code {
            case EMFILE, ENFILE: "Raise the limit of open files (ulimit -n)."
            case ENOSPC, EDQUOT: "Free some space, or name another disk in 'path'."
            // A folder in which no file can be made, such as /proc, gives it too.
            case ENOENT:
                access(FileNames.folder(of: path), F_OK) == 0
                    ? "Name another folder in 'path'." : "Create the folder again, or correct 'path'."
            case ENOTDIR, ELOOP, ENAMETOOLONG: "Correct 'path'."
            case EROFS: "Name another disk in 'path'."
            default: "Correct 'path': name a folder where this user may write."
            }
        return FrameHostError(
            .unavailable, what: "\(what): \(String(cString: strerror(code)))", remedy: remedy, reason: .of(errno: code),
            option: "path")
    }
}
