// SPDX-License-Identifier: Apache-2.0

import FrameCore
import LiveInput

struct ALSASourceOptions: StageOptions {
    @Option(
        help:
            "The ALSA device, as `framehost describe alsa-source` lists them. A card that is named by its number is looked for by its id after a loss."
    )
    var device = "default"
    @Option(
        help: "Samples per second of the output. A card that runs at another rate is resampled.",
        range: 8_000...192_000, unit: "Hz")
    var sampleRate = 48_000
    @Option(help: "Channels of the output. What the card has is mixed to them.", range: 1...8) var channels = 2
    @Option(
        help: "How much sound is read at a time, which is the latency. The nearest that the card has is used.",
        range: 2...100, unit: "ms")
    var periodMs = 10
    @Option(help: "What happens when the device is not there at the start.") var ifMissing = IfMissing.fail
    @Option(help: "What is given while the device is lost.") var whileLost = WhileSilent.silence
}

/// What is given while a source of sound is away.
enum WhileSilent: String, OptionChoice {
    /// Silence at the chain's rate, until the device is back.
    case silence
    /// Nothing: the stage fails.
    case stop
}
