// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Glibc

/// What a parser found wrong with its input.
struct MotionFault: Error, Equatable {
    /// Follows the name of the faulty place, without a full stop: `must have 7 columns, but has 3`.
    var what: String
    /// Where it is, in bytes from the start of what the parser was given.
    var offset = 0

    init(_ what: String, at offset: Int = 0) { (self.what, self.offset) = (what, offset) }

    /// The same in a line without a line end, with which a file ends: it may have been cut there.
    var inLastLine: MotionFault { MotionFault("\(what) (the file ends in this line)", at: offset) }
}

/// Why a source of motion cannot go on, as sentences.
enum MotionText {
    private static let mostQuoted = 24

    /// Bytes from outside in a form that can be shown: printable ASCII, and not many.
    static func quoted(_ bytes: some Collection<UInt8>) -> String {
        let shown = bytes.prefix(mostQuoted).map { 32...126 ~= $0 ? $0 : UInt8(ascii: "?") }
        return "'\(String(decoding: shown, as: UTF8.self))\(bytes.count > mostQuoted ? "…" : "")'"
    }

    /// Damage in a file of lines.
    static func damagedLine(_ path: String, line: Int, byte: Int, _ fault: MotionFault, given: Int) -> FrameHostError {
        FrameHostError(
            .invalidMedia, place: "path", what: "line \(line) of '\(path)' (byte \(byte)) \(fault.what)",
            remedy: correction(given))
    }

    static func damagedPacket(
        _ path: String, byte: Int64, at time: MediaTime, _ fault: MotionFault, given: Int
    ) -> FrameHostError {
        let place = byte >= 0 ? "byte \(byte + Int64(fault.offset))" : "byte \(fault.offset) of its packet"
        return FrameHostError(
            .invalidMedia, place: "path",
            what: "the motion of '\(path)' at \(time.seconds) s (\(place)) \(fault.what)",
            remedy: passedOn(given, before: "the fault") + recordAgain)
    }

    static func cut(_ path: String, packets: Int, of whole: Int, given: Int) -> FrameHostError {
        FrameHostError(
            .invalidMedia, place: "path",
            what: "'\(path)' ends within its motion track: only \(packets) of \(whole) packets are there",
            remedy: passedOn(given, before: "the end") + recordAgain)
    }

    static func damaged(_ path: String, cause: String, given: Int) -> FrameHostError {
        FrameHostError(
            .invalidMedia, place: "path", what: "the motion of '\(path)' is damaged",
            remedy: passedOn(given, before: "the fault") + recordAgain, cause: cause)
    }

    private static let recordAgain = "Copy the file again, or record it again."

    private static func correction(_ given: Int) -> String {
        passedOn(given, before: "the fault")
            + (given == 0
                ? "Correct the file, or record it again." : "Correct this line, or remove it.")
    }

    /// Followed by a space; empty where no sample was passed on.
    private static func passedOn(_ given: Int, before place: String) -> String {
        guard given > 0 else { return "" }
        return given == 1
            ? "The sample before \(place) was passed on. " : "The \(given) samples before \(place) were passed on. "
    }

    static func empty(_ path: String) -> FrameHostError {
        FrameHostError(
            .invalidMedia, place: "path", what: "'\(path)' has no samples of motion",
            remedy: "Name a file with at least one.")
    }

    static func missing(_ path: String, isRelative: Bool) -> FrameHostError {
        FrameHostError(
            .unavailable, place: "path", what: "'\(path)' does not exist",
            remedy: isRelative
                ? "Correct 'path'. A relative path starts at the chain file's folder." : "Correct 'path'.")
    }

    static func noFile(_ path: String, isFolder: Bool) -> FrameHostError {
        FrameHostError(
            .unavailable, place: "path",
            what: "'\(path)' must be a regular file, but is \(isFolder ? "a folder" : "a device, a pipe or a socket")",
            remedy: "Name a file.")
    }

    static func unreadable(_ path: String, _ code: Int32) -> FrameHostError {
        let remedy =
            switch code {
            case EACCES, EPERM: "Let the user who runs framehost read it."
            case EMFILE, ENFILE: "Raise the limit of open files (ulimit -n)."
            case ELOOP, ENAMETOOLONG: "Correct 'path'."
            case ENOMEM: "Free some memory on this machine."
            default: "Check the disk that it is on."
            }
        return FrameHostError(
            .unavailable, place: "path", what: "'\(path)' cannot be read: \(ErrorText.of(code))", remedy: remedy)
    }

    static func notMedia(_ path: String, cause: String) -> FrameHostError {
        FrameHostError(
            .invalidMedia, place: "path", what: "'\(path)' is not an MP4 or MOV file that can be read",
            remedy: "Name a complete file: a recording that was not finished cannot be read.", cause: cause)
    }

    /// - Parameter tracks: The tracks that it has instead: `video h264`.
    static func noTrack(_ path: String, tracks: [String]) -> FrameHostError {
        FrameHostError(
            .invalidMedia, place: "path",
            what: "'\(path)' has no track of motion (GPMF or CAMM)"
                + (tracks.isEmpty ? "" : ", only " + tracks.joined(separator: ", ")),
            remedy: "Name a video from a camera that records motion, or a .csv, .gcsv or .jsonl file.")
    }
}
