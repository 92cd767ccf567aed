// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// Options of ``AudioResample``.
struct AudioResampleOptions: StageOptions {
    @Option(help: "Samples per second of the output. Default: the input's rate.", range: 1_000...384_000, unit: "Hz")
    var sampleRate: Int? = nil
    @Option(
        help: "Channels of the output, in their usual layout. Default: as many as the input has, in its layout.",
        range: 1...8) var channels: Int? = nil
    @Option(
        help:
            "Loudspeakers that the channels of the output are for, by FFmpeg's names: mono, stereo, 3.0, quad, 5.1, 5.1(side), 7.1 and others."
    ) var layout: String? = nil

    /// The names that ``layout`` may have.
    static let layouts = ChannelLayout.names.filter { ChannelLayout($0).map { $0.channelCount <= 8 } == true }

    func validate() throws(OptionFault) {
        if sampleRate == nil, channels == nil, layout == nil {
            throw OptionFault(
                "none of 'sampleRate', 'channels' and 'layout' is set",
                remedy: "Set one of them: \"sampleRate\": 48000.", options: ["sampleRate", "channels", "layout"])
        }
        guard let layout else { return }
        guard Self.layouts.contains(layout), let found = ChannelLayout(layout) else {
            throw OptionFault(
                "'layout' must be a layout of 1 to 8 channels, but is '\(layout)'",
                remedy: "Use one of these: \(Self.layouts.joined(separator: ", ")).", options: ["layout"])
        }
        if let channels, channels != found.channelCount {
            throw OptionFault(
                "'layout' \(layout) has \(found.channelCount) channels, but 'channels' is \(channels)",
                remedy: "Leave 'channels' out.", options: ["layout", "channels"])
        }
    }

    /// The format of the output.
    func output(_ input: AudioFormat) -> AudioFormat {
        let layout = layout.flatMap { ChannelLayout($0) }
        let count = layout?.channelCount ?? channels ?? input.channelCount
        return AudioFormat(
            sampleRate: sampleRate ?? input.sampleRate, channelCount: count,
            layout: layout ?? (count == input.channelCount ? input.layout : nil))
    }
}

/// Gives sound another sample rate, or mixes its channels for other loudspeakers.
///
/// Times are counted in samples of the output from the first block's PTS on. At a gap in the input the samples
/// inside are given, and the count starts again, so that the gap stays where it is.
final class AudioResample: Transform {
    /// The most blocks that may come before the first sample leaves: tiny ones.
    private static let mostDelay = 8

    static let info = StageInfo(
        id: "audio-resample", summary: "Gives sound another sample rate, number of channels or channel layout.",
        input: .audio,
        output: .audio, delay: mostDelay)

    var options: AudioResampleOptions
    private let context: StageContext
    private var resampler: ResampleHandle?
    private var timeline = SampleTimeline(AudioFormat(sampleRate: 48_000, channelCount: 1))
    private var target = AudioFormat(sampleRate: 48_000, channelCount: 1)
    /// The tick of the next sample of the output.
    private var nextTick: Int64 = 0
    private var blockCount: UInt64 = 0
    private var capturedAt: Int64 = 0
    private var isAfterGap = false
    /// Blocks that came in and have not been answered.
    private(set) var held = 0

    /// [control thread] Opens nothing.
    init(options: AudioResampleOptions, context: StageContext) {
        self.options = options
        self.context = context
    }

    /// [control thread]
    func negotiate(_ input: MediaFormat) throws -> MediaFormat {
        guard let format = input.audio else {
            throw FrameHostError(.broken, what: "audio-resample needs sound, but got \(input)")
        }
        target = options.output(format)
        timeline = SampleTimeline(format)
        resampler = try ResampleHandle(from: format, to: target)
        return .audio(target)
    }

    var demand: StageDemand {
        var demand = Self.declaredDemand
        demand.slabBytes = audioSlabBytes(target)
        return demand
    }

    /// [stage thread] Takes one block; gives one, as a rule.
    func process(_ input: consuming Sample, _ output: Output) throws {
        guard case .audioBlock(let block) = consume input, let resampler else {
            throw FrameHostError(.broken, what: "audio-resample was handed something other than sound")
        }
        let isFirst = timeline.next == nil
        let step = timeline.step(to: block.pts, isDiscontinuity: block.isDiscontinuity)
        if isFirst || step != .follows { try begin(at: block.pts, isFirst: isFirst, resampler, output) }
        if block.isDiscontinuity { isAfterGap = true }
        timeline.advance(Int64(block.sampleCount))
        capturedAt = block.capturedAt
        if held == Self.mostDelay { output.absorb() } else { held += 1 }
        var first = 0
        while first < block.sampleCount {
            try block.withSamples { samples in
                let (taken, result) = try resampler.convert(samples, from: first)
                first += taken
                try emit(result, output)
            }
        }
    }

    /// [stage thread] Gives what is still inside.
    func drain(_ output: Output) throws {
        if let resampler { try flush(resampler, output) }
        for _ in 0..<held { output.absorb() }
        held = 0
    }

    /// [stage thread] Closes the resampler.
    func stop() { resampler = nil }

    private func begin(at pts: MediaTime, isFirst: Bool, _ resampler: ResampleHandle, _ output: Output) throws {
        var tick = target.timeBase.ticks(of: pts)
        if !isFirst {
            try flush(resampler, output)
            try resampler.restart()
            timeline.restart(at: pts)
            isAfterGap = true
            // Times rise, also where a block overlaps the one before.
            tick = max(tick, nextTick)
        }
        nextTick = tick
    }

    private func flush(_ resampler: ResampleHandle, _ output: Output) throws {
        while true {
            let rest = try resampler.flush()
            if rest.isEmpty { return }
            try emit(rest, output)
        }
    }

    private func emit(_ samples: UnsafeBufferPointer<Float>, _ output: Output) throws {
        let count = samples.count / target.channelCount
        guard count > 0 else { return }
        var block = try output.makeAudioBlock(sampleCount: count)
        block.withMutableSamples { _ = $0.update(fromContentsOf: samples) }
        block.pts = target.timeBase.time(ofTicks: nextTick)
        nextTick += Int64(count)
        block.duration = target.timeBase.time(ofTicks: nextTick) - block.pts
        block.capturedAt = capturedAt
        block.sequenceNumber = blockCount
        block.isDiscontinuity = isAfterGap
        isAfterGap = false
        blockCount += 1
        // It answers the last block that came, and contains the sound of those before.
        let answered = held
        held = 0
        for _ in 1..<max(answered, 1) { output.absorb() }
        try output.emit(block, as: answered > 0 ? .answer : .made)
    }
}
