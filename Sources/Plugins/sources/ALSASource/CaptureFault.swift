// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Glibc

/// Why a device cannot be used, as sentences.
enum CaptureFault {
    private static let names: [Int32: String] = [
        EACCES: "EACCES", EAGAIN: "EAGAIN", EBADFD: "EBADFD", EBUSY: "EBUSY", EINVAL: "EINVAL", EIO: "EIO",
        ENODEV: "ENODEV", ENOENT: "ENOENT", ENOMEM: "ENOMEM", ENOSYS: "ENOSYS", ENOTTY: "ENOTTY", ENXIO: "ENXIO",
        EPERM: "EPERM", EPIPE: "EPIPE", ESTRPIPE: "ESTRPIPE", ETIMEDOUT: "ETIMEDOUT", EHOSTDOWN: "EHOSTDOWN",
        ECONNREFUSED: "ECONNREFUSED",
    ]

    /// `snd_pcm_open: No such device (ENODEV)`.
    static func text(_ fault: CardFault) -> String {
        "\(fault.call): \(String(cString: strerror(fault.errno))) (\(names[fault.errno] ?? "errno \(fault.errno)"))"
    }

    /// The device is there: waiting for it would help as little as with a driver of impossible numbers.
    static func noFormat(_ name: String) -> FrameHostError {
        FrameHostError(
            .invalidConfiguration, place: "device",
            what:
                "'\(name)' offers none of the sample formats that this stage reads: interleaved 16-bit, 32-bit or float samples",
            remedy: name.hasPrefix("hw:")
                ? "Use 'plug\(name)', which converts rate and format."
                : "Use another device that `framehost describe alsa-source` lists.")
    }

    /// For a driver whose numbers no card can have.
    static func impossible(_ name: String, rate: Int, channels: Int, period: Int, buffer: Int) -> FrameHostError {
        let size = "\(channels == 1 ? "1 channel" : "\(channels) channels"), \(period) samples at a time"
        return FrameHostError(
            .callFailed, place: "device",
            what:
                "the driver of '\(name)' answers with impossible numbers: \(rate) Hz, \(size), a buffer of \(buffer) samples",
            remedy: "Use another device that `framehost describe alsa-source` lists.")
    }

    /// The fault for an answer of ALSA, with a remedy.
    ///
    /// - Parameter mayWait: Whether `"ifMissing": "wait"` would help.
    static func of(_ fault: CardFault, _ name: String, mayWait: Bool = false) -> FrameHostError {
        let cause = text(fault)
        let wait = mayWait ? " Set \"ifMissing\": \"wait\" to start the chain without the device." : ""
        switch fault.errno {
        case EACCES, EPERM:
            return FrameHostError(
                .unavailable, place: "device", what: "this user may not open '\(name)'",
                remedy:
                    "Join the group that may open the sound cards: `sudo usermod -aG audio $USER`. Then log in again.",
                cause: cause)
        case EBUSY:
            return FrameHostError(
                .unavailable, place: "device", what: "'\(name)' is in use",
                remedy:
                    name == "default"
                    ? "End the program that uses it, or use another device that `framehost describe alsa-source` lists."
                    : "End the program that uses it, or use a device that several programs can share, such as 'default'.",
                cause: cause)
        case ENOENT, ENODEV, ENXIO:
            // alsa-lib answers the same for a card that this user may not open.
            return FrameHostError(
                .unavailable, place: "device", what: "there is no device '\(name)' for capture",
                remedy:
                    "Plug it in, or use a device that `framehost describe alsa-source` lists. If a card that is plugged in is not listed, join the group 'audio' with `sudo usermod -aG audio $USER`, then log in again.\(wait)",
                cause: cause)
        case EHOSTDOWN, ECONNREFUSED:
            return FrameHostError(
                .unavailable, place: "device", what: "the sound server behind '\(name)' does not answer",
                remedy:
                    "Start the sound server (PipeWire or PulseAudio) as this user, or use a card: `framehost describe alsa-source` lists them.\(wait)",
                cause: cause)
        case EINVAL where fault.call == "snd_pcm_open":
            return FrameHostError(
                .unavailable, place: "device", what: "'\(name)' is not a device name that ALSA understands",
                remedy: "Use a device that `framehost describe alsa-source` lists.", cause: cause)
        default:
            return FrameHostError(
                .callFailed, place: "device", what: "a call to the device '\(name)' failed",
                remedy: "Check `dmesg` for messages from its driver"
                    + (name.hasPrefix("hw:") ? ", or use 'plug\(name)', which converts rate and format." : "."),
                cause: cause)
        }
    }
}
