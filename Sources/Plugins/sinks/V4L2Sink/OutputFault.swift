// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Glibc

/// Why a virtual camera cannot be used, as sentences.
enum OutputFault {
    /// The command that makes a virtual camera for OBS, Zoom and browsers.
    static let loadModule = OutputFault.loadCommand(for: nil)

    /// The same command, for the camera that the option `device` names: with the number of a path such as /dev/video9,
    /// or with a name that a shell takes as it is.
    static func loadCommand(for asked: String?) -> String {
        let name = asked.flatMap { $0.allSatisfy(isPlain) ? $0 : nil } ?? "framehost"
        return "sudo modprobe v4l2loopback video_nr=\(number(of: asked)) card_label=\(name) exclusive_caps=1"
    }

    private static let node = "/dev/video"

    private static func number(of path: String?) -> UInt8 {
        path.flatMap { $0.hasPrefix(node) ? UInt8($0.dropFirst(node.count)) : nil } ?? 10
    }

    private static func isPlain(_ character: Character) -> Bool {
        character.isASCII && (character.isLetter || character.isNumber || "-_.".contains(character))
    }

    /// - Parameter there: Output devices by path and name.
    static func none(asked: String?, there: [(path: String, name: String)]) -> FrameHostError {
        let made = "\(node)\(number(of: asked))"
        let isFound = asked.map { $0 == made || $0.allSatisfy(isPlain) } ?? true
        let remedy =
            there.isEmpty
            ? "Make one with v4l2loopback: `\(loadCommand(for: asked))` (Debian: first apt-get install v4l2loopback-dkms)."
                + (isFound ? "" : " Then set \"device\": \"\(made)\".")
            : "Use \(there.count == 1 ? "" : "one of ")\(there.map { "'\($0.name)' (\($0.path))" }.joined(separator: ", "))."
        return FrameHostError(
            .unavailable, place: asked == nil ? "" : "device",
            what: asked.map { "there is no virtual camera '\($0)'" } ?? "there is no virtual camera", remedy: remedy)
    }

    static func noOutput(_ path: String, name: String) -> FrameHostError {
        FrameHostError(
            .unavailable, place: "device",
            what: "'\(path)' (\(name)) does not accept pictures: it must be a video output",
            remedy: "Use a virtual camera; v4l2loopback makes one: `\(loadModule)`.")
    }

    /// The fault of a virtual camera that takes no pictures because another program writes to it.
    static func inUse(_ path: String, cause: String = "") -> FrameHostError {
        FrameHostError(
            .unavailable, what: "'\(path)' is in use",
            remedy:
                "End the program that writes to it. Only one program can write to a virtual camera. If this chain itself writes to it, restart the chain to make this change.",
            cause: cause, option: "device")
    }

    static func several(_ asked: String, _ paths: [String]) -> FrameHostError {
        FrameHostError(
            .invalidConfiguration, place: "device",
            what: "'\(asked)' names \(paths.count) devices: \(paths.joined(separator: ", "))",
            remedy: "Use one of their paths.")
    }

    static func oddSides(_ format: VideoFormat) -> FrameHostError {
        FrameHostError(
            .invalidConfiguration,
            what: "the pictures are \(format.width)x\(format.height), but a virtual camera needs even sides",
            remedy: "Put 'crop-orient' with an even 'size' before this stage.")
    }

    /// The fault of an answer that this plugin cannot use.
    static func answered(_ path: String, _ what: String) -> FrameHostError {
        FrameHostError(
            .unavailable, what: "the driver of '\(path)' gives \(what)",
            remedy:
                "End the other programs that use this device, then try again: the first program that reads from or writes to a device sets the format of that device.",
            option: "device"
        )
    }

    private static func noDevice(_ path: String, cause: String) -> FrameHostError {
        FrameHostError(
            .unavailable, place: "device", what: "'\(path)' is not a video device",
            remedy: "Name one, such as /dev/video10; v4l2loopback makes one: `\(loadModule)`.", cause: cause)
    }

    private static func isSocket(_ path: String) -> Bool {
        var status = stat()
        return stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFSOCK
    }

    /// The fault for an error of the kernel, with a remedy.
    static func of(_ call: String, _ code: Int32, _ path: String, group: String?) -> FrameHostError {
        let cause = "\(call): \(String(cString: strerror(code)))"
        switch code {
        // What the device cgroup of a container refuses.
        case EPERM:
            return FrameHostError(
                .unavailable, what: "this user may not open '\(path)'",
                remedy:
                    "Give the container this device (`--device=\(path)`); in a systemd service, allow it with DeviceAllow= and restart the service.",
                cause: cause, option: "device")
        case EACCES:
            return FrameHostError(
                .unavailable, what: "this user may not open '\(path)'",
                remedy: group.map {
                    "Join the group '\($0)', which may open it: `sudo usermod -aG \($0) $USER`. Then log in again."
                } ?? "Give this user permission to read and write it.", cause: cause, option: "device")
        case EBUSY:
            return inUse(path, cause: cause)
        // A file or pipe gives the first, a folder the second.
        case ENOTTY, EISDIR: return noDevice(path, cause: cause)
        case ENXIO where isSocket(path): return noDevice(path, cause: cause)
        case ENODEV, ENXIO, ENOENT:
            return FrameHostError(
                .unavailable, what: "'\(path)' has disappeared",
                remedy:
                    "Connect the device again. For a virtual camera, load its module again: `sudo modprobe -r v4l2loopback`, then `\(loadCommand(for: path))`, with the camera's own name as card_label.",
                cause: cause, option: "device")
        default:
            return FrameHostError(
                .callFailed, what: "a call to the driver of '\(path)' failed",
                remedy: "Check `dmesg` for messages of the driver.", cause: cause, option: "device")
        }
    }
}
