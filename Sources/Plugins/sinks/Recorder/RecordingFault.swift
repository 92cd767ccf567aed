// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Glibc

/// Why a recording cannot be written, as sentences.
enum RecordingFault {
    /// What is wrong with the place of a new file; nil when it can be written. Creates nothing.
    static func ofPath(_ path: String, overwrite: Bool) -> FrameHostError? {
        if let fault = ofLength(path) { return fault }
        var status = stat()
        if stat(path, &status) == 0 {
            if status.st_mode & S_IFMT == S_IFDIR {
                return FrameHostError(
                    .invalidConfiguration, what: "'\(path)' is a folder", remedy: "Name a file in it.")
            }
            // The writer of a pipe would wait for a reader, and cannot seek in it.
            let isPipe = status.st_mode & S_IFMT == S_IFIFO
            if isPipe || status.st_mode & S_IFMT == S_IFSOCK {
                return FrameHostError(
                    .invalidConfiguration,
                    what: "'\(path)' must be a regular file, but is a \(isPipe ? "pipe" : "socket")",
                    remedy: "Name a file.")
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
    static func ofLength(_ path: String) -> FrameHostError? {
        var status = stat()
        guard stat(path, &status) != 0, errno == ENAMETOOLONG else { return nil }
        return FrameHostError(
            .invalidConfiguration, what: "'\(path)' is too long for a file name", remedy: "Shorten 'path'.")
    }

    /// What is wrong with a folder for new files; nil when they can be made there.
    static func ofFolder(_ folder: String) -> FrameHostError? {
        var status = stat()
        guard stat(folder, &status) == 0 else {
            return errno == ENOENT ? missing(folder) : unwritable(folder: folder, errno)
        }
        guard status.st_mode & S_IFMT == S_IFDIR else {
            return FrameHostError(
                .invalidConfiguration, what: "'\(folder)' must be a folder, but is a file", remedy: "Correct 'path'.")
        }
        return access(folder, W_OK | X_OK) == 0 ? nil : unwritable(folder: folder, errno)
    }

    static func missing(_ folder: String) -> FrameHostError {
        FrameHostError(
            .unavailable, what: "the folder '\(folder)' does not exist", remedy: "Create it, or correct 'path'.")
    }

    /// - Parameter isReplaceable: Whether the file is replaced with `overwrite`.
    static func exists(_ path: String, isReplaceable: Bool = true) -> FrameHostError {
        FrameHostError(
            .invalidConfiguration, what: "'\(path)' exists already",
            remedy: isReplaceable ? "Name another file, or set \"overwrite\": true to replace it." : moveAway)
    }

    private static let moveAway = "Move it away, or record under another name."

    /// The fault of a file that has the name of a sidecar, and that no recorder has made.
    static func foreign(_ path: String) -> FrameHostError {
        FrameHostError(
            .invalidConfiguration, what: "'\(path)' was not made by a recorder, so it is not replaced",
            remedy: moveAway)
    }

    /// The fault of a pattern whose next names are all taken.
    static func noName(from first: String, count: Int) -> FrameHostError {
        FrameHostError(
            .invalidConfiguration,
            what: "there is no free name for a new file: '\(first)' and the next \(count - 1) names are taken",
            remedy: "Move these files away, or record under another name.")
    }

    /// What keeps a file of this name from being made.
    static func refused(_ path: String, _ refusal: FileRefusal) -> FrameHostError {
        switch refusal {
        case .exists: return exists(path)
        case .failed(let code): return unwritable(path, code)
        case .writtenElsewhere:
            return FrameHostError(
                .invalidConfiguration, what: "'\(path)' is being written by another chain or program",
                remedy: "Wait until it has finished, or give this recorder another 'path'.")
        case .writtenHere(OutputFile.holder):
            return FrameHostError(
                .invalidConfiguration, what: "'\(path)' is being written by another recorder",
                remedy: "Give each recorder its own 'path'.")
        default:
            var fault = refusal.fault(path)
            fault.code = .invalidConfiguration
            return fault
        }
    }

    static func unwritable(_ path: String, _ code: Int32) -> FrameHostError {
        unwritable(path, code, "'\(path)' cannot be written")
    }

    static func unwritable(folder: String, _ code: Int32) -> FrameHostError {
        unwritable(folder, code, "no file can be made in the folder '\(folder)'")
    }

    /// The remedies name 'path', by which the fault finds its place: the sentence may have only the folder.
    static func unwritable(_ path: String, _ code: Int32, _ what: String) -> FrameHostError {
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
        return FrameHostError(.unavailable, what: "\(what): \(String(cString: strerror(code)))", remedy: remedy)
    }

    /// - Parameter longest: The longest gap that a file of this kind can express.
    static func gap(_ path: String, _ container: Container, gap: MediaTime, longest: MediaTime) -> FrameHostError {
        FrameHostError(
            .invalidMedia,
            what:
                "'\(path)' is complete and ends here: the next picture comes \(shortSeconds(gap.seconds)) s later, but \(container.name) allows at most \(shortSeconds(longest.seconds)) s between two pictures",
            remedy: container == .mkv ? "Check the times of the recorded pictures." : "Record to .mkv.")
    }

    /// - Parameters:
    ///   - code: The errno; 0 where there is none.
    ///   - saved: Frames and seconds in the file that play.
    static func writing(_ path: String, reason: String, code: Int32, saved: (frames: Int, seconds: Double))
        -> FrameHostError
    {
        let span = "(\(shortSeconds(saved.seconds)) s)"
        let rest =
            switch saved.frames {
            case 0: "Nothing of the file was saved."
            case 1: "The first frame \(span) is saved and can be played."
            default: "The first \(saved.frames) frames \(span) are saved and can be played."
            }
        let remedy =
            switch code {
            case ENOSPC, EDQUOT: "Free some space, or record to another disk. "
            case EFBIG:
                "Set 'segmentMegabytes' below the limit (4000 suits FAT32) to continue in new files, raise the limit of file sizes (ulimit -f), or record to another disk. "
            case EIO: "Check the disk, or record to another one. "
            default: ""
            }
        return FrameHostError(
            .unavailable, what: "writing '\(path)' failed: \(reason)", remedy: remedy + rest)
    }

    /// The fault of a file that was deleted while it was written.
    static func removed(_ path: String) -> FrameHostError {
        FrameHostError(
            .unavailable, what: "'\(path)' was removed while it was being written; nothing of it was saved",
            remedy:
                "Record to a folder that no other program clears. To remove old files, use 'keepSeconds' and 'keepMegabytes'."
        )
    }

    /// The fault of a file that another program made shorter while it was written.
    static func shortened(_ path: String) -> FrameHostError {
        FrameHostError(
            .unavailable,
            what:
                "'\(path)' was shortened by another program while it was being written; the part that was cut off is lost",
            remedy: "Record to a folder in which no other program writes.")
    }

    /// `1 frame`, `87 frames`.
    static func count(_ frames: Int) -> String { frames == 1 ? "1 frame" : "\(frames) frames" }

    /// Why recordings cannot start as far back as 'preEventSeconds' says.
    static func ofPast(_ lack: PreEventRing.Lack, _ ring: PreEventRing, _ options: RecorderOptions) -> String {
        let hundredths = (Double(ring.byteCapacity) / 10_000).rounded()
        let room = lack.isOfBytes ? "\(hundredths / 100) MB" : "\(ring.unitCapacity) pictures"
        let what =
            lack.isOfOneGroup
            ? "is full before the next keyframe comes, so recordings may start without any of the past"
            : "holds less than \(shortSeconds(options.preEventSeconds)) s, so recordings start less far back"
        let more =
            options.preEventMegabytes == nil
            ? "Set 'preEventMegabytes' to more than \(hundredths / 100)" : "Raise 'preEventMegabytes'"
        let remedy =
            lack.isOfBytes
            ? "\(more), or lower the bitrate or the time between keyframes."
            : lack.isOfOneGroup
                ? "Lower the time between keyframes." : "Lower 'preEventSeconds' or the frame rate."
        return "The memory for the past (\(room)) \(what). \(remedy)"
    }

    /// One decimal, without Foundation.
    static func shortSeconds(_ seconds: Double) -> String {
        let tenths = Int((seconds * 10).rounded())
        return "\(tenths < 0 ? "-" : "")\(abs(tenths) / 10).\(abs(tenths) % 10)"
    }
}
