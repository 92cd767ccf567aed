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
                remedy: isRelative ? "Correct 'path', which begins at the chain file's folder." : "Correct 'path'.")
        }
        switch status.st_mode & S_IFMT {
        case S_IFREG: break
        case S_IFDIR: return FrameHostError(.unavailable, what: "'\(path)' is a folder", remedy: "Name a file in it.")
        case S_IFCHR:
            return FrameHostError(
                .unavailable, what: "'\(path)' is a device",
                remedy: "'file-source' plays files: name one.")
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
            remedy: code == EACCES || code == EPERM
                ? "Give this user the right to read it." : "Look at the disk it is on.")
    }

    static func notMedia(_ path: String, cause: String) -> FrameHostError {
        FrameHostError(
            .invalidMedia, what: "'\(path)' is no media file that libavformat can read",
            remedy: "If it is a recording, it may not have been finished: look at it with 'ffprobe'.", cause: cause)
    }

    static func tooLarge(_ path: String, width: Int, height: Int) -> FrameHostError {
        FrameHostError(
            .invalidMedia,
            what: "the pictures in '\(path)' are \(width)x\(height), and a side may have 65536 pixels at most",
            remedy: "Scale them down first, with ffmpeg for example.")
    }

    /// - Parameter tracks: What there is instead: `audio aac`.
    static func noVideo(_ path: String, tracks: [String]) -> FrameHostError {
        FrameHostError(
            .invalidMedia,
            what: "'\(path)' has no video track" + (tracks.isEmpty ? "" : ", only " + tracks.joined(separator: ", ")),
            remedy: "Name a file with video.")
    }

    static func noDecoder(_ path: String, codec: String) -> FrameHostError {
        FrameHostError(
            .invalidMedia, what: "the video in '\(path)' is \(codec), which this libavcodec cannot decode",
            remedy: "Convert the file to H.264 first.")
    }

    static func noPicture(_ path: String) -> FrameHostError {
        FrameHostError(
            .invalidMedia, what: "the size of the pictures in '\(path)' is unknown: not one could be read",
            remedy: "The file may be damaged: look at it with 'ffprobe'.")
    }

    static func noTrack(_ path: String, _ number: Int, of tracks: [String]) -> FrameHostError {
        let list = tracks.enumerated().map { "\($0 + 1) (\($1))" }.joined(separator: ", ")
        return FrameHostError(
            .invalidConfiguration, what: "'track' is \(number), and the video tracks of '\(path)' are \(list)",
            remedy: "Use one of these, or leave the key out for the first good one.")
    }

    static func playlist(_ path: String, kind: String) -> FrameHostError {
        FrameHostError(
            .invalidMedia, what: "'\(path)' has no pictures of its own: it is a list of other files (\(kind))",
            remedy: "Name one of the files in it.")
    }

    static func decoderFailed(_ path: String, codec: String, reason: String, cause: String) -> FrameHostError {
        FrameHostError(.callFailed, what: "the decoder for '\(path)' (\(codec)) does not open: \(reason)", cause: cause)
    }

    static func unconvertible(_ pixels: String, width: Int, height: Int) -> FrameHostError {
        FrameHostError(
            .invalidMedia, what: "the pictures are \(pixels) \(width)x\(height), which libswscale cannot convert",
            remedy: "Convert the file to H.264 first.")
    }

    static func noFilterLibrary(_ library: String, cause: String) -> FrameHostError {
        FrameHostError(
            .unavailable, what: "'deinterlace' needs \(library), which cannot be loaded",
            remedy: "Install it: apt-get install \(package(of: library)).", cause: cause)
    }

    /// Debian names a library's package after its file: `libavfilter.so.8` is in `libavfilter8`.
    private static func package(of library: String) -> String { library.split(separator: ".so.").joined() }

    /// - Parameter length: Of the file, where it is known.
    static func startsBehindEnd(_ path: String, start: Double, length: MediaTime) -> FrameHostError {
        FrameHostError(
            .invalidConfiguration, what: "'start' is \(start) s, and '\(path)' is \(length.seconds) s long",
            remedy: "Begin before its end.")
    }

    // MARK: Access units as they are

    private static let decodeInstead = "Leave 'decode' out and put an encoder behind this stage"

    static func passesOnlyH264(_ path: String, codec: String) -> FrameHostError {
        FrameHostError(
            .invalidMedia,
            what: "'decode' is false, the video of '\(path)' is \(codec), and only H.264 is passed on as it is",
            remedy: "\(decodeInstead).")
    }

    /// - Parameter format: libavformat's name of it.
    static func hasNoTimes(_ path: String, format: String) -> FrameHostError {
        FrameHostError(
            .invalidMedia,
            what:
                "'decode' is false, '\(path)' is of the format \(format), and H.264 is passed on as it is only from MP4, MOV, Matroska, MPEG-TS and FLV",
            remedy: "\(decodeInstead).")
    }

    static func noKeyframe(_ path: String) -> FrameHostError {
        FrameHostError(
            .invalidMedia,
            what:
                "'decode' is false, and '\(path)' has no keyframe (IDR picture) among its first \(UnitReader.mostPacketsBeforeKeyframe) access units, where a stream could begin",
            remedy: "\(decodeInstead).")
    }

    static func noParameterSets(_ path: String) -> FrameHostError {
        FrameHostError(
            .invalidMedia,
            what:
                "'decode' is false, and neither '\(path)' nor its first keyframe has the parameter sets (SPS and PPS) that a decoder needs",
            remedy: "The file may be damaged: look at it with 'ffprobe'.")
    }

    static func unreadableParameterSets(_ path: String, cause: String) -> FrameHostError {
        FrameHostError(
            .invalidMedia, what: "'decode' is false, and the parameter sets of '\(path)' cannot be read",
            remedy: "The file may be damaged: look at it with 'ffprobe'.", cause: cause)
    }

    static func packetTooLarge(_ path: String, bytes: Int) -> FrameHostError {
        FrameHostError(
            .invalidMedia,
            what:
                "'decode' is false, and '\(path)' has an access unit of \(bytes) bytes, of which 268435456 are passed on at most",
            remedy: "The file may be damaged: look at it with 'ffprobe'.")
    }

    static func nothingPlayed(_ path: String, packets: Int) -> FrameHostError {
        packets == 0
            ? FrameHostError(
                .invalidMedia, what: "'\(path)' has no picture in the part that is to be played",
                remedy: "Look at it with 'ffprobe', and at 'start' and 'duration'.")
            : FrameHostError(
                .invalidMedia,
                what: "not one picture of '\(path)' could be shown, of \(packets) packets that were read",
                remedy: "The file may be damaged, or have no keyframe: look at it with 'ffprobe'.")
    }

    static func changed(_ path: String) -> FrameHostError {
        FrameHostError(
            .invalidMedia, what: "'\(path)' is another file than the one that was opened", remedy: "Start again.")
    }
}
