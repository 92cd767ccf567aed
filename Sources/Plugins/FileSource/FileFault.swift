import Glibc
import FrameCore

/// Why a file cannot be played, as sentences.
enum FileFault {
    /// What is wrong with a path before any library looks at it; nil when it is a file that may be read.
    ///
    /// - Parameter isRelative: It was written relative to the chain file's folder.
    static func ofPath(_ path: String, isRelative: Bool) -> FrameHostError? {
        var status = stat()
        guard stat(path, &status) == 0 else {
            let code = errno
            guard code == ENOENT || code == ENOTDIR else { return unreadable(path, code) }
            return FrameHostError(
                .unavailable, what: "'\(path)' does not exist",
                remedy: isRelative ? "Correct 'path'; it is meant from the chain file's folder." : "Correct 'path'.")
        }
        switch status.st_mode & S_IFMT {
        case S_IFREG: break
        case S_IFDIR: return FrameHostError(.unavailable, what: "'\(path)' is a folder", remedy: "Name a file in it.")
        case S_IFCHR:
            return FrameHostError(
                .unavailable, what: "'\(path)' is a device", remedy: "Use 'v4l2-source' for a camera; 'file-source' plays files.")
        default: return FrameHostError(.unavailable, what: "'\(path)' is not a regular file", remedy: "Name a file.")
        }
        if access(path, R_OK) != 0 { return unreadable(path, errno) }
        if status.st_size == 0 {
            return FrameHostError(.invalidMedia, what: "'\(path)' is empty", remedy: "Copy or record it again.")
        }
        return nil
    }

    static func unreadable(_ path: String, _ code: Int32) -> FrameHostError {
        FrameHostError(
            .unavailable, what: "'\(path)' cannot be read: \(String(cString: strerror(code)))",
            remedy: "Give this user the right to read it.")
    }

    static func notMedia(_ path: String, cause: String) -> FrameHostError {
        FrameHostError(
            .invalidMedia, what: "'\(path)' is no media file that libavformat can read",
            remedy: "If it is a recording, it may not have been finished: look at it with 'ffprobe'.", cause: cause)
    }

    /// - Parameter tracks: What there is instead: `audio aac`.
    static func noVideo(_ path: String, tracks: [String]) -> FrameHostError {
        FrameHostError(
            .invalidMedia, what: "'\(path)' has no video track" + (tracks.isEmpty ? "" : ", only " + tracks.joined(separator: ", ")),
            remedy: "Name a file with video.")
    }

    static func noDecoder(_ path: String, codec: String) -> FrameHostError {
        FrameHostError(
            .invalidMedia, what: "the video in '\(path)' is \(codec), which this libavcodec cannot decode",
            remedy: "Convert the file to H.264 first.")
    }

    static func noPicture(_ path: String, cause: String) -> FrameHostError {
        FrameHostError(
            .invalidMedia, what: "the size of the pictures in '\(path)' is unknown: not one could be read",
            remedy: "The file may be damaged: look at it with 'ffprobe'.", cause: cause)
    }

    static func changedFormat(_ path: String, from old: String, to new: String) -> FrameHostError {
        FrameHostError(
            .invalidMedia, what: "the pictures of '\(path)' change from \(old) to \(new), and a running chain keeps its format",
            remedy: "Convert the file to one size first; what came before is complete.")
    }
}
