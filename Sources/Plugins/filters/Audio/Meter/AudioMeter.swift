// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Synchronization

/// Options of ``AudioMeter``.
struct AudioMeterOptions: StageOptions {
    @Option(
        help: "Momentary loudness below which the sound counts as silent, after silenceSeconds.", range: -120...0,
        unit: "LUFS", live: true)
    var silenceLufs = -60.0
    @Option(
        help: "How long the loudness must stay below silenceLufs for the sound to count as silent.", range: 0.1...3600,
        unit: "s", live: true)
    var silenceSeconds = 2.0
}

/// Measures the loudness of what passes, and reports when it falls silent.
///
/// Blocks are passed on unchanged. The figures are updated after every 100 ms of sound.
final class AudioMeter: Transform {
    static let info = StageInfo(
        id: "audio-meter", summary: "Measures loudness (EBU R 128) and true peak. Tells when the sound falls silent.",
        input: .audio, output: .sameAsInput, events: events)

    /// Momentary loudness is that of 400 ms; it is not known before that much sound has come.
    private static let windowsPerSecond = 10
    private static let momentaryWindows = 4

    /// Written by the stage's thread, read by any.
    private final class Shown: Sendable {
        struct State {
            var loudness = Loudness()
            var isSilent = false
        }
        let state = Mutex(State())

        var figures: JSONNode {
            let state = state.withLock { $0 }
            return state.loudness.figures(isSilent: state.isSilent)
        }
    }

    var options: AudioMeterOptions
    private let context: StageContext
    private var meter: MeterHandle?
    private let shown = Shown()
    private var silence = SilenceWatch()
    private var sampleRate = 48_000
    /// Samples since the last look, and looks so far.
    private var samples = 0
    private var looks = 0
    /// Whether a sample other than 0 came since the loudness fell below the bound.
    private var isHeard = false
    private var wasBelow = false

    /// [control thread] Opens nothing.
    init(options: AudioMeterOptions, context: StageContext) {
        self.options = options
        self.context = context
    }

    /// [control thread]
    func negotiate(_ input: MediaFormat) throws -> MediaFormat {
        guard let format = input.audio else {
            throw FrameHostError(.broken, what: "audio-meter needs sound, but got \(input)")
        }
        meter = try MeterHandle(format)
        sampleRate = format.sampleRate
        return input
    }

    /// [setup thread]
    func start() {
        context.showFigures { [shown] in shown.figures }
    }

    /// [any thread] What is known now.
    var figures: JSONNode { shown.figures }

    /// [stage thread] Measures, and passes the block on. Allocates only for an event.
    func process(_ input: consuming Sample, _ output: Output) throws {
        guard case .audioBlock(let block) = consume input, let meter else {
            throw FrameHostError(.broken, what: "audio-meter was handed something other than sound")
        }
        let window = sampleRate / Self.windowsPerSecond
        let channelCount = block.channelCount
        try block.withSamples { all in
            var first = 0
            while first < block.sampleCount {
                let count = min(window - samples, block.sampleCount - first)
                let part = UnsafeBufferPointer(
                    rebasing: all[first * channelCount..<(first + count) * channelCount])
                if try meter.add(part) { isHeard = true }
                samples += count
                first += count
                if samples == window { look(meter, window) }
            }
        }
        try output.emit(block)
    }

    /// [stage thread] Closes the meter. The figures stay.
    func stop() { meter = nil }

    private func look(_ meter: MeterHandle, _ window: Int) {
        samples = 0
        looks += 1
        let loudness = meter.loudness
        guard looks >= Self.momentaryWindows else { return }
        let isBelow = loudness.momentary < options.silenceLufs
        let needed = Int64(options.silenceSeconds * Double(sampleRate))
        let change = silence.look(isBelow: isBelow, samples: Int64(window), needed: needed)
        shown.state.withLock { $0 = Shown.State(loudness: loudness, isSilent: silence.isSilent) }
        if let change { post(change) }
        if !isBelow || !wasBelow { isHeard = false }
        wasBelow = isBelow
    }

    private func post(_ change: SilenceWatch.Change) {
        switch change {
        case .began(let samples):
            let seconds = seconds(samples)
            context.post(
                "silence-began", level: .warning,
                text:
                    "The sound has been silent (below \(options.silenceLufs.optionJSON.text()) LUFS) for \(seconds.optionJSON.text()) s\(isHeard ? "" : ": every sample is 0").",
                details: ["seconds": .number(seconds), "isDigital": .bool(!isHeard)])
        case .ended(let samples):
            let seconds = seconds(samples)
            context.post(
                "silence-ended", text: "The sound is back after \(seconds.optionJSON.text()) s of silence.",
                details: ["seconds": .number(seconds)])
        }
    }

    private func seconds(_ samples: Int64) -> Double { (Double(samples) / Double(sampleRate) * 10).rounded() / 10 }
}
