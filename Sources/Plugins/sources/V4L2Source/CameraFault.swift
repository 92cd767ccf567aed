// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Glibc

/// Why a camera cannot be used, as sentences.
enum CameraFault {
    /// The fault of a driver's answer that this plugin cannot use.
    static func answered(_ what: String) -> FrameHostError {
        FrameHostError(
            .callFailed, what: "the camera's driver gives \(what)",
            remedy: "Choose another 'size' or 'format'. `framehost devices` lists them.", option: "size")
    }

    /// - Parameter mayWait: Whether `"ifMissing": "wait"` would help.
    static func none(asked: String?, there: [FoundCamera], mayWait: Bool) -> FrameHostError {
        let advice =
            there.isEmpty
            ? "\(asked == nil ? "" : "No camera was found. ")Plug one in, or load its driver."
            : "Plug it in, or use \(there.count == 1 ? "" : "one of ")\(there.map { $0.name.isEmpty ? $0.path : "'\($0.name)' (\($0.path))" }.joined(separator: ", ")); `framehost devices` shows details."
        let remedy = advice + (mayWait ? " Set \"ifMissing\": \"wait\" to start the chain without a camera." : "")
        return FrameHostError(
            .unavailable, place: asked == nil ? "" : "device",
            what: asked.map { "there is no camera '\($0)'" } ?? "there is no camera", remedy: remedy)
    }

    static func several(_ asked: String, _ found: [FoundCamera]) -> FrameHostError {
        FrameHostError(
            .invalidConfiguration, place: "device",
            what: "'\(asked)' names \(found.count) cameras: \(found.map(\.path).joined(separator: ", "))",
            remedy: "Use one of their stable ids, which `framehost devices` lists, or a path.")
    }

    static func noCamera(_ path: String, _ identity: V4L2Device.Identity) -> FrameHostError {
        FrameHostError(
            .unavailable, place: "device",
            what: "'\(path)' (\(identity.name)) must be a capture device that supports streaming",
            remedy:
                "Use a device that `framehost devices` lists. A camera often has a second device that gives no pictures."
        )
    }

    static func noFormat(_ path: String, asked: CameraPixels?, there: [FourCC]) -> FrameHostError {
        let known = there.filter { code in
            CameraPixels(code).map { pixels in asked.map { pixels == $0 } ?? (pixels != .h264) } ?? false
        }
        guard known.isEmpty else {
            return answered("no usable size for \(known.map(\.description).joined(separator: ", "))")
        }
        let own = there.isEmpty ? "no format at all" : there.map(\.description).joined(separator: ", ")
        let others = there.compactMap { CameraPixels($0) }
        let remedy =
            others.contains(.h264)
            ? "Set \"format\": \"h264\" to pass on what the camera encodes."
            : there.isEmpty
                ? "If this is a virtual camera, first start the program that writes to it. Otherwise use another camera."
                : "Use another camera."
        guard let asked else {
            return FrameHostError(
                .unavailable,
                what:
                    "'\(path)' must give one of \(CameraPixels.byCost.map(\.rawValue).joined(separator: ", ")), but has \(own)",
                remedy: remedy, option: "device")
        }
        return FrameHostError(
            .invalidConfiguration, place: "format", what: "'\(path)' does not support \(asked.rawValue); it has \(own)",
            remedy: others.contains { $0 != .h264 } ? "Leave 'format' out to use one that the camera has." : remedy)
    }

    static func noPictures(_ path: String, seconds: Int) -> FrameHostError {
        FrameHostError(
            .callFailed, place: "format",
            what: "'\(path)' gave no picture within \(seconds) s",
            remedy: "Plug the camera in again, or use another 'format' with an encoder after this stage.")
    }

    static func noSets(_ path: String, _ why: String) -> FrameHostError {
        FrameHostError(
            .callFailed, place: "format",
            what: "'\(path)' gives no H.264 with parameter sets: \(why)",
            remedy: "Use another 'format' with an encoder after this stage.")
    }

    static func gone(_ path: String, cause: String = "") -> FrameHostError {
        FrameHostError(
            .unavailable, what: "'\(path)' has disappeared", remedy: "Check its cable and `dmesg`.", cause: cause,
            reason: .deviceGone,
            option: "device")
    }

    /// Whether an error says that the camera has disappeared, and not that it cannot be used.
    static func isOfGone(_ error: any Error) -> Bool {
        if let call = error as? CallFault { return [ENOENT, ENODEV, ENXIO].contains(call.errno) }
        return (error as? FrameHostError)?.reason == .deviceGone
    }

    /// The fault for an error of the kernel, with a remedy: the group to join, or the program that has the device open.
    ///
    /// - Parameter calls: Used to look up both.
    static func of(_ fault: CallFault, _ path: String, _ calls: any DeviceCalls) -> FrameHostError {
        switch fault.errno {
        // What the device cgroup of a container refuses.
        case EPERM:
            return FrameHostError(
                .unavailable, what: "this user may not open '\(path)'",
                remedy:
                    "Give the container this device (`--device=\(path)`); in a systemd service, allow it with DeviceAllow= and restart the service.",
                cause: fault.text, option: "device")
        case EACCES:
            let group = calls.group(of: path)
            return FrameHostError(
                .unavailable, what: "this user may not open '\(path)'",
                remedy: group.map {
                    "Join the group '\($0)', which may open it: `sudo usermod -aG \($0) $USER`. Then log in again."
                } ?? "Give this user permission to read and write it.", cause: fault.text, option: "device")
        case EBUSY:
            let holders = DeviceHolders.of(path, calls)
            return FrameHostError(
                .unavailable,
                what: "'\(path)' is in use" + (holders.isEmpty ? "" : " by \(holders.joined(separator: ", "))"),
                remedy:
                    "End \(holders.isEmpty ? "the program that uses it" : holders.count == 1 ? "that program" : "these programs"). Only one program can use a camera.\(holders.isEmpty ? " If this chain itself uses it, restart the chain to make this change." : "")",
                cause: fault.text, option: "device")
        case ENOENT, ENODEV, ENXIO: return gone(path, cause: fault.text)
        // A file, a pipe or another device gives the first, a folder the second.
        case ENOTTY where fault.call == "VIDIOC_QUERYCAP", EISDIR:
            return FrameHostError(
                .unavailable, place: "device", what: "'\(path)' is not a camera",
                remedy: "Use a camera that `framehost devices` lists.", cause: fault.text)
        default:
            return FrameHostError(
                .callFailed, what: "a call to the driver of '\(path)' failed",
                remedy: "Check `dmesg` for messages of the driver.", cause: fault.text, option: "device")
        }
    }
}

/// The programs that have a device open, as far as /proc lets this user see (proc(5), `fd`).
enum DeviceHolders {
    /// `obs (pid 4711)`, without this process.
    static func of(_ path: String, _ calls: any DeviceCalls) -> [String] {
        let node = calls.realPath(path) ?? path
        let own = "\(getpid())"
        return calls.names(in: "/proc").filter { $0.allSatisfy(\.isNumber) && $0 != own }.filter { process in
            calls.names(in: "/proc/\(process)/fd").contains { calls.link("/proc/\(process)/fd/\($0)") == node }
        }.map { "\(calls.text(of: "/proc/\($0)/comm") ?? "a program") (pid \($0))" }
    }
}
