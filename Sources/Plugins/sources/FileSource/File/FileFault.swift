// SPDX-License-Identifier: Apache-2.0

import CodedVideo
import Glibc
import FrameCore

/// Why a file cannot be played, as sentences.
enum FileFault {
    /// What is wrong with a path before any library looks at it; nil when it is a file that may be read.
    ///
    /// - Parameters:
    ///   - isRelative: Whether it was written relative to the chain file's folder.
    ///   - wasThere: Whether the file was found before, so that the path is right.
    static func ofPath(_ path: String, isRelative: Bool, wasThere: Bool = false) -> FrameHostError? {
        var status = stat()
        guard stat(path, &status) == 0 else {
            let code = errno
            guard code == ENOENT || code == ENOTDIR else { return unreadable(path, code) }
            if let fault = brokenLink(path) { return fault }
            if wasThere { return unreadable(path, code) }
            return FrameHostError(
                .unavailable, what: "'\(path)' does not exist",
                remedy: isRelative
                    ? "Correct 'path'. A relative path starts at the chain file's folder." : "Correct 'path'.",
                option: "path")
        }
        switch status.st_mode & S_IFMT {
        case S_IFREG: break
        case S_IFDIR:
            return FrameHostError(
                .unavailable, what: "'\(path)' is a folder", remedy: "Name a file in it.", option: "path")
        case S_IFCHR:
            return FrameHostError(
                .unavailable, what: "'\(path)' is a device",
                remedy: "Name a file, or use 'v4l2-source' for a camera.", option: "path")
        default:
            return FrameHostError(
                .unavailable, what: "'\(path)' must be a regular file, but is a pipe, a socket or a block device",
                remedy: "Name a file.", option: "path")
        }
        if access(path, R_OK) != 0 { return unreadable(path, errno) }
        if status.st_size == 0 {
            return FrameHostError(
                .invalidMedia, what: "'\(path)' is empty", remedy: "Copy or record it again.", option: "path")
        }
        return nil
    }

    /// The fault of a link whose file is not there; nil where the path is no link.
    static func brokenLink(_ path: String) -> FrameHostError? {
        var status = stat()
        guard lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFLNK else { return nil }
        return FrameHostError(
            .unavailable, what: "'\(path)' is a link to a file that does not exist", remedy: "Correct the link.",
            option: "path")
    }

    /// What is wrong with a path that is a network address; nil where it is none.
    ///
    /// - Parameters:
    ///   - kind: What the path must be: "a file".
    ///   - remedy: What takes the address of a stream.
    static func ofAddress(_ path: String, kind: String, remedy: String) -> OptionFault? {
        guard let mark = path.firstRange(of: "://"), mark.lowerBound != path.startIndex,
            path[..<mark.lowerBound].allSatisfy(\.isLetter)
        else { return nil }
        let address = Address(path)
        let isOfStream = NetworkAddress.Scheme(rawValue: address.scheme) != nil
        return OptionFault(
            "'path' must be \(kind), but is the address \(address)",
            remedy: address.scheme == "file"
                ? "Write only the path, without file://."
                : isOfStream ? remedy : "Copy what is there to this machine first, and name the copy.",
            options: ["path"])
    }

    static func unreadable(_ path: String, _ code: Int32) -> FrameHostError {
        let remedy =
            switch code {
            case EACCES, EPERM:
                "Give the user who runs framehost permission to read it and to enter the folders above it."
            case ELOOP, ENAMETOOLONG: "Correct 'path'."
            case ENOENT, ENOTDIR: "Put it back, and leave it there while the chain runs."
            case EMFILE, ENFILE: "Raise the limit of open files (ulimit -n)."
            case EINVAL: "Check it with 'ffprobe'."
            case ENOMEM: "Free some memory. If there is enough, check the file with 'ffprobe': it may be damaged."
            default: "Check the disk that it is on, and the file itself with 'ffprobe'."
            }
        return FrameHostError(
            .unavailable, what: "'\(path)' cannot be read: \(String(cString: strerror(code)))", remedy: remedy,
            reason: .of(errno: code), option: "path")
    }

    static func notMedia(_ path: String, cause: String) -> FrameHostError {
        FrameHostError(
            .invalidMedia, what: "'\(path)' is not a media file that libavformat can read",
            remedy:
                "Name a media file. If this is an MP4 whose recording was interrupted, record it again, or repair it with a tool such as untrunc.",
            cause: cause, option: "path")
    }

    static func tooLarge(_ path: String, width: Int, height: Int) -> FrameHostError {
        FrameHostError(
            .invalidMedia,
            what: "'\(path)' is \(width)x\(height) pixels large, but each side must be at most 65536 pixels",
            remedy: "Scale it down first, for example with ffmpeg.", option: "path")
    }

    /// - Parameter tracks: The tracks that there are instead: `audio aac`.
    static func noVideo(_ path: String, tracks: [String]) -> FrameHostError {
        FrameHostError(
            .invalidMedia,
            what: "'\(path)' has no video track" + (tracks.isEmpty ? "" : ", only " + tracks.joined(separator: ", ")),
            remedy: "Name a file with video.", option: "path")
    }

    static func noDecoder(_ path: String, codec: String) -> FrameHostError {
        FrameHostError(
            .invalidMedia,
            what: codec == "none"
                ? "the video in '\(path)' has a codec that this libavcodec does not know"
                : "the video in '\(path)' is \(codec), which this libavcodec cannot decode",
            remedy: codec == "h264"
                ? "Install a libavcodec that can decode H.264, such as the one from your distribution."
                : "Convert the file to H.264 first.", option: "path")
    }

    static func noPicture(_ path: String) -> FrameHostError {
        FrameHostError(
            .invalidMedia,
            what:
                "the size or pixel format of the pictures in '\(path)' is unknown, because none of them could be decoded",
            remedy: "Check the file with 'ffprobe': it may be damaged.", option: "path")
    }

    static func noTrack(_ path: String, _ number: Int, of tracks: [String]) -> FrameHostError {
        let list = tracks.enumerated().map { "\($0 + 1) (\($1))" }.joined(separator: ", ")
        return FrameHostError(
            .invalidConfiguration,
            what: tracks.count == 1
                ? "'track' is \(number), but the only video track of '\(path)' is \(list)"
                : "'track' is \(number), but the video tracks of '\(path)' are \(list)",
            remedy: tracks.count == 1
                ? "Leave 'track' out."
                : "Use one of these, or leave 'track' out for the first track that can be played.", option: "track")
    }

    static func playlist(_ path: String, kind: String) -> FrameHostError {
        FrameHostError(
            .invalidMedia,
            what: "'\(path)' contains no pictures: "
                + (kind == "sdp" ? "it describes a network stream (sdp)" : "it is a list of other files (\(kind))"),
            remedy: kind == "sdp"
                ? "If the stream has an address, such as rtsp://…, use 'network-source' with that address."
                : "Name one of the files in it.", option: "path")
    }

    static func decoderFailed(_ path: String, codec: String, reason: String, cause: String) -> FrameHostError {
        FrameHostError(
            .callFailed, what: "the decoder for '\(path)' (\(codec)) could not be opened: \(reason)",
            remedy: "Check '\(path)' with 'ffprobe'.", cause: cause, option: "path")
    }

    static func unconvertible(_ pixels: String, width: Int, height: Int) -> FrameHostError {
        FrameHostError(
            .invalidMedia, what: "libswscale cannot convert the pictures, which are \(pixels) \(width)x\(height)",
            remedy: "Convert the file, or set the sender of the stream, to another pixel format, such as yuv420p.")
    }

    static func noFilterLibrary(_ library: String, cause: String) -> FrameHostError {
        FrameHostError(
            .unavailable, what: "'deinterlace' needs \(library), which cannot be loaded",
            remedy: "Install it: apt-get install \(package(of: library)).", cause: cause, option: "deinterlace")
    }

    /// Debian names a library's package after its file: `libavfilter.so.8` is in `libavfilter8`.
    private static func package(of library: String) -> String { library.split(separator: ".so.").joined() }

    /// - Parameter length: The file's length, where it is known.
    static func startsBehindEnd(_ path: String, start: Double, length: MediaTime) -> FrameHostError {
        FrameHostError(
            .invalidConfiguration,
            what: "'start' must be less than the length of '\(path)', \(length.seconds) s, but is \(start) s",
            remedy: "Use a smaller 'start'.", option: "start")
    }

    // MARK: Access units as they are

    private static let decodeInstead = "Leave 'decode' out and put an encoder after this stage"

    static func isNotPassedOn(_ path: String, codec: String) -> FrameHostError {
        FrameHostError(
            .invalidMedia,
            what: "'decode' is false, which needs H.264, H.265, MJPEG or AV1, but the video of '\(path)' is \(codec)",
            remedy: "\(decodeInstead).", option: "decode")
    }

    /// - Parameter format: libavformat's name of the format.
    static func hasNoTimes(_ path: String, format: String, of coding: UnitCoding) -> FrameHostError {
        let fit =
            switch coding {
            case .nal: "needs MP4, MOV, Matroska, MPEG-TS or FLV"
            case .jpeg: "needs MP4, MOV, Matroska or AVI for MJPEG"
            case .av1: "needs MP4 or Matroska for AV1"
            }
        return FrameHostError(
            .invalidMedia,
            what:
                "'decode' is false, which \(fit), but '\(path)' has the format \(format)",
            remedy: "\(decodeInstead).", option: "decode")
    }

    /// By an edit list.
    static func playsParts(_ path: String) -> FrameHostError {
        FrameHostError(
            .invalidMedia, place: "start",
            what:
                "'\(path)' plays several parts of its pictures one after the other (an edit list), so with \"decode\": false it cannot begin in the middle",
            remedy: "Leave 'start' out. Or \(decodeInstead.prefix(1).lowercased() + decodeInstead.dropFirst()).")
    }

    /// - Parameter searched: How many access units were searched; 0 where they were not counted.
    static func noKeyframe(_ path: String, searched: Int) -> FrameHostError {
        FrameHostError(
            .invalidMedia,
            what:
                "'decode' is false, which needs a keyframe (IDR, of H.265 also CRA or BLA, of AV1 a key frame that is shown) to start at, but '\(path)' has none"
                + (searched > 1 ? " among its first \(searched) access units" : ""),
            remedy: "\(decodeInstead).", option: "decode")
    }

    static func noParameterSets(_ path: String, _ coding: UnitCoding) -> FrameHostError {
        FrameHostError(
            .invalidMedia,
            what:
                "'decode' is false, which needs \(coding.nameOfSets), but neither the header of '\(path)' nor the first keyframe to be played has \(coding == .av1 ? "one" : "them")",
            remedy: "Check the file with 'ffprobe': it may be damaged.", option: "decode")
    }

    static func unreadableParameterSets(_ path: String, cause: String) -> FrameHostError {
        FrameHostError(
            .invalidMedia, what: "'decode' is false, which needs parameter sets, but those of '\(path)' cannot be read",
            remedy: "Check it with 'ffprobe': it may be damaged.", cause: cause, option: "decode")
    }

    static func packetTooLarge(_ path: String, bytes: Int) -> FrameHostError {
        FrameHostError(
            .invalidMedia,
            what:
                "with \"decode\": false an access unit must be at most 256 MiB, but '\(path)' has one of \((bytes + 1 << 20 - 1) >> 20) MiB",
            remedy: "Check the file with 'ffprobe': it may be damaged.", option: "path")
    }

    /// Pictures of a part whose times jump.
    static func timesJump(_ path: String, isWithoutTime: Bool, at pts: MediaTime) -> FrameHostError {
        FrameHostError(
            .invalidMedia, place: "path",
            what:
                "'\(path)' has a picture \(isWithoutTime ? "without a time" : "whose time steps back") at \(pts.seconds) s, so its parts would differ from a run of the whole file",
            remedy: "Process the file as a whole, without --parts, or copy it into an MP4 file with new times.")
    }

    /// - Parameters:
    ///   - packets: How many were read.
    ///   - isPart: Whether `start` or `duration` name a part of the file.
    static func nothingPlayed(_ path: String, packets: Int, isPart: Bool) -> FrameHostError {
        let check = isPart ? "Check 'start' and 'duration', and the file with 'ffprobe'" : "Check it with 'ffprobe'"
        return packets == 0
            ? FrameHostError(
                .invalidMedia, what: "'\(path)' has no picture\(isPart ? " in the part to play" : "")",
                remedy: "\(check).", option: "path")
            : FrameHostError(
                .invalidMedia,
                what: (isPart
                    ? "'\(path)' gave no picture for the part that 'start' and 'duration' choose"
                    : "no picture of '\(path)' could be played")
                    + "; \(packets == 1 ? "1 packet was" : "\(packets) packets were") read",
                remedy: "\(check): it may be damaged or have no keyframe.", option: "start")
    }

    static func changed(_ path: String) -> FrameHostError {
        FrameHostError(
            .invalidMedia, what: "'\(path)' was changed or replaced after it was opened",
            remedy: "Start the chain again.", option: "path")
    }
}
