// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// Options of ``ToneSource``.
struct ToneSourceOptions: StageOptions {
    @Option(help: "What is played: one tone, a beep of 100 ms on each whole second, or silence.")
    var pattern = TonePattern.tone
    @Option(help: "Samples per second.", range: 8_000...192_000, unit: "Hz") var sampleRate = 48_000
    @Option(help: "How many channels. All have the same sound.", range: 1...8) var channels = 2
    @Option(help: "Frequency of the tone: at most half of sampleRate.", range: 1...96_000, unit: "Hz")
    var frequency = 1000.0
    @Option(help: "Peak level of the tone: 0 is full scale.", range: -120...0, unit: "dBFS") var level = -20.0
    @Option(help: "How much sound a block has.", range: 1...1000, unit: "ms") var blockMs = 10
    @Option(help: "Ends after this many blocks. Default: runs until stopped.", range: 1...1_000_000_000)
    var blocks: Int? = nil
    @Option(help: "Ends after this much sound. Default: runs until stopped.", range: 0.001...1_000_000_000, unit: "s")
    var seconds: Double? = nil
    @Option(
        help:
            "Gives each block when its time is over, like a microphone. false gives blocks as fast as the chain takes them."
    )
    var live = false

    func validate() throws(OptionFault) {
        guard frequency <= Double(sampleRate) / 2 else {
            throw OptionFault(
                "'frequency' is \(frequency.optionJSON.text()) Hz, but \(sampleRate) samples per second carry at most \(sampleRate / 2) Hz",
                remedy: "Lower 'frequency', or raise 'sampleRate'.", options: ["frequency"])
        }
        guard blocks == nil || seconds == nil else {
            throw OptionFault(
                "'blocks' and 'seconds' both say where the sound ends", remedy: "Leave one of them out.",
                options: ["blocks", "seconds"])
        }
    }
}
