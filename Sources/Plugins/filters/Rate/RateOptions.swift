// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// Options of ``Rate``.
struct RateOptions: StageOptions {
    @Option(help: "Frames per second of the output. Required.", range: FrameRate(1, 1000)...FrameRate(100_000))
    var rate: FrameRate? = nil
    @Option(help: "Repeats the previous frame where one is missing. false only drops surplus frames.")
    var repeats = true
    @Option(
        help:
            "Longest gap to fill; a longer gap stays and gives the event 'gap'. Default: 2 in live chains, 3600 in others.",
        range: 0.001...1_000_000, unit: "s") var maxGapSeconds: Double? = nil

    func validate() throws(OptionFault) {
        guard rate == nil else { return }
        throw OptionFault(
            "'rate' is missing", remedy: "Set the frames per second: \"rate\": 30, or \"30000/1001\".",
            options: ["rate"])
    }
}
