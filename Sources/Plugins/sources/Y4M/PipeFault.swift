// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Glibc

/// What is wrong with a stream and its pipe, as sentences.
enum PipeFault {
    static func unreadable(_ path: String, _ code: Int32) -> FrameHostError {
        FrameHostError(
            .unavailable, place: "path", what: "'\(path)' cannot be read: \(String(cString: strerror(code)))",
            remedy: unreadableRemedy(code))
    }

    private static func unreadableRemedy(_ code: Int32) -> String {
        switch code {
        case ENOENT: "Create the pipe with 'mkfifo', or correct 'path'."
        case EACCES, EPERM: "Give this user permission to read it."
        case EMFILE, ENFILE: "Raise the limit of open files (ulimit -n)."
        // What open(2) says of a socket.
        case ENXIO: "Name a pipe or a file in 'path', not a socket or a device."
        default: "Correct 'path'."
        }
    }

    static func noPipe(_ path: String, isFolder: Bool) -> FrameHostError {
        FrameHostError(
            .unavailable, place: "path",
            what: "'\(path)' must be a pipe or a file, but is \(isFolder ? "a folder" : "a device")",
            remedy: "Name a pipe or a file, or leave 'path' out for standard input.")
    }

    private static let pipeIn =
        "Pipe the output of a program into framehost: `ffmpeg -i … -f yuv4mpegpipe - | framehost chain.json`."

    static func inputIsTerminal() -> FrameHostError {
        FrameHostError(.unavailable, what: "standard input is a terminal", remedy: pipeIn)
    }

    static func inputIsTaken() -> FrameHostError {
        FrameHostError(
            .invalidConfiguration, place: "path", what: "another stage reads standard input already",
            remedy:
                "Name a pipe made with 'mkfifo'. Or, if the other stage is in this chain, leave this stage out and name the other one in 'from' of the stages that need its pictures."
        )
    }

    static func outputIsTerminal() -> FrameHostError {
        FrameHostError(
            .unavailable, what: "standard output is a terminal",
            remedy: "Pipe it into a program: `framehost chain.json | mpv -`.")
    }

    static func outputIsClosed() -> FrameHostError {
        FrameHostError(
            .unavailable, what: "standard output is closed",
            remedy:
                "Start the program without '>&-', with standard output piped into another program: `framehost chain.json | mpv -`."
        )
    }

    // MARK: Streams

    /// The option that names the stream: none for standard input, which is the default.
    private static func option(of name: String) -> String? {
        name == StandardStream.input.rawValue ? nil : "path"
    }

    /// - Parameter name: `standard input`, or the quoted path.
    static func noHeader(_ name: String, seconds: Int) -> FrameHostError {
        FrameHostError(
            .unavailable, what: "no y4m header arrived from \(name) within \(seconds) s",
            remedy: "Check that the program that writes there is running and writes y4m.", option: option(of: name))
    }

    static func empty(_ name: String) -> FrameHostError {
        FrameHostError(
            .invalidMedia, what: "\(name) ended before a y4m header",
            remedy: name == StandardStream.input.rawValue
                ? "Check the command whose output is piped into framehost, such as `ffmpeg -i … -f yuv4mpegpipe - | framehost chain.json`."
                : "Check the program that writes it. \(Y4MHeader.makeIt).", option: option(of: name))
    }

    static func header(_ fault: Y4MHeader.Fault, _ name: String) -> FrameHostError {
        FrameHostError(
            .invalidMedia, what: "\(name) cannot be read as a y4m stream: it \(fault.what)",
            remedy: fault.remedy.isEmpty ? "" : "\(fault.remedy).", option: option(of: name))
    }

    static func noRate(_ name: String) -> FrameHostError {
        FrameHostError(
            .invalidMedia, what: "the stream of \(name) does not declare its frame rate",
            remedy: "Set the option 'rate' of this stage.",
            option: name == StandardStream.input.rawValue ? "rate" : "path")
    }

    static func noPicture(_ name: String) -> FrameHostError {
        FrameHostError(
            .invalidMedia, what: "\(name) ended before its first picture",
            remedy: "Check the program that writes there.", option: option(of: name))
    }

    static func cut(_ name: String, picture: Int, bytes: Int, of whole: Int) -> FrameHostError {
        FrameHostError(
            .invalidMedia,
            what:
                "\(name) ended in the middle of picture \(number(picture)): \(bytes == 0 ? "none" : "only \(bytes)") of its \(whole) bytes arrived",
            remedy: "Check the program that writes there."
                + (picture == 0 ? "" : " All earlier pictures were passed on."), option: option(of: name))
    }

    private static func number(_ picture: Int) -> String { "\(picture) (counted from 0)" }

    static func noFrame(_ name: String, picture: Int) -> FrameHostError {
        FrameHostError(
            .invalidMedia,
            what:
                "picture \(number(picture)) of \(name) must start with FRAME: there are too few or too many bytes before it",
            remedy: "Check the program that writes there, and that no other program reads or writes there.",
            option: option(of: name))
    }

    static func readFailed(_ name: String, _ code: Int32) -> FrameHostError {
        FrameHostError(
            .unavailable, what: "\(name) cannot be read: \(String(cString: strerror(code)))",
            remedy: "Check the program that writes it, or the disk that the file is on.", reason: .of(errno: code),
            option: option(of: name))
    }

    // MARK: Writing

    static func readerGone(_ name: String) -> FrameHostError {
        FrameHostError(
            .unavailable, what: "the program that reads \(name) has closed it",
            remedy: "Start the chain again together with that program, and let that program run as long as the chain.")
    }

    static func endedWithoutReader(_ path: String) -> FrameHostError {
        FrameHostError(.stopped, what: "the run ended while '\(path)' waited for its reader")
    }

    static func writeFailed(_ name: String, _ code: Int32) -> FrameHostError {
        FrameHostError(
            .unavailable, what: "\(name) cannot be written: \(String(cString: strerror(code)))",
            remedy: code == ENOSPC || code == EDQUOT
                ? "Free some space."
                : code == EFBIG
                    ? "Raise the limit of `ulimit -f`, or use a disk whose file system permits larger files."
                    : "Check the program that reads it, or the disk that the file is on.", reason: .of(errno: code))
    }

    static func noRateToWrite() -> FrameHostError {
        FrameHostError(
            .invalidConfiguration,
            what: "y4m needs a constant frame rate, but the rate of the pictures varies",
            remedy: "Put a stage 'rate' before this one.", option: "rate")
    }
}
