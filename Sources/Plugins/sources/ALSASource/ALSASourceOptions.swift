// SPDX-License-Identifier: Apache-2.0

import FrameCore
import LiveStates

struct ALSASourceOptions: StageOptions {
    @Option(
        help:
            "The ALSA device; `framehost describe alsa-source` lists the devices. After a loss, a card named by its number is found again by its id."
    )
    var device = "default"
    @Option(
        help: "Samples per second of the output. A card that runs at another rate is resampled.",
        range: 8_000...192_000, unit: "Hz")
    var sampleRate = 48_000
    @Option(help: "Channels of the output. The card's own channels are mixed to this number.", range: 1...8)
    var channels = 2
    @Option(
        help:
            "How much sound is read at a time, which sets the latency. The nearest length that the card supports is used.",
        range: 2...100, unit: "ms")
    var periodMs = 10
    @Option(help: "What happens when the device is not there at the start.") var ifMissing = IfMissing.fail
    @Option(help: "What is given while the device is lost.") var whileLost = WhileSilent.silence

    func validate() throws(OptionFault) {
        guard !DeviceName.isPlain(device) else { return }
        throw OptionFault(
            "'device' must be a plain name, such as 'default', or a card's device, such as 'hw:1,0' or 'plughw:CARD=Webcam', but is '\(device)'",
            remedy:
                "Use a name that `framehost describe alsa-source` lists, or define a device in ~/.asoundrc and use its plain name.",
            options: ["device"])
    }
}

/// Names of ALSA devices.
///
/// alsa-lib takes whole configurations as a name: `tee:null,'|command',raw` runs a command, `file:…` writes a file. A
/// chain file must do neither.
enum DeviceName {
    /// Kinds of device that only lead to a card. They take a card and its parts as arguments.
    private static let kinds: Set<String> = [
        "default", "sysdefault", "hw", "plughw", "front", "rear", "center_lfe", "side", "surround21", "surround40",
        "surround41", "surround50", "surround51", "surround71", "iec958", "hdmi", "dsnoop", "usbstream",
    ]

    /// Whether it is a name without arguments, or a card's device: `mic`, `hw:CARD=PCH,DEV=0`, `plughw:1,0`.
    static func isPlain(_ name: String) -> Bool {
        func isWord(_ part: Substring, _ more: String) -> Bool {
            part.utf8.allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                    UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"), UInt8(ascii: "-"), UInt8(ascii: "."):
                    true
                default: more.utf8.contains(byte)
                }
            }
        }
        let parts = name.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        guard let kind = parts.first, !kind.isEmpty, isWord(kind, "") else { return false }
        guard parts.count == 2 else { return true }
        return kinds.contains(String(kind)) && isWord(parts[1], "=,")
    }
}

/// What is given while a source of sound is away.
enum WhileSilent: String, OptionChoice {
    /// Silence at the chain's rate, until the device is back.
    case silence
    /// Nothing: the stage fails.
    case stop
}
