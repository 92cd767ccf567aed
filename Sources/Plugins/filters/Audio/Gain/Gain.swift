// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Glibc

/// Options of ``Gain``.
struct GainOptions: StageOptions {
    @Option(
        help: "How much louder the sound becomes. A value below 0 makes it softer.", range: -120...60, unit: "dB",
        live: true)
    var db = 0.0
    @Option(help: "Silences the sound.", live: true) var mute = false

    /// What samples are multiplied with.
    var factor: Float { mute ? 0 : Float(pow(10, db / 20)) }
}

/// Makes sound louder, softer or silent. Changes while the chain runs take 10 ms.
final class Gain: Transform {
    static let info = StageInfo(
        id: "gain", summary: "Makes sound louder, softer or silent.", input: .audio, output: .audio)

    private static let rampsPerSecond = 100

    var options: GainOptions
    private var ramp: GainRamp
    private var slabBytes = 1 << 20

    /// [control thread] Opens nothing.
    init(options: GainOptions, context: StageContext) {
        self.options = options
        ramp = GainRamp(options.factor, rampSamples: 1)
    }

    /// [control thread]
    func negotiate(_ input: MediaFormat) throws -> MediaFormat {
        guard let format = input.audio else {
            throw FrameHostError(.broken, what: "gain needs sound, but got \(input)")
        }
        ramp = GainRamp(options.factor, rampSamples: format.sampleRate / Self.rampsPerSecond)
        slabBytes = audioSlabBytes(format)
        return input
    }

    var demand: StageDemand {
        var demand = Self.declaredDemand
        demand.slabBytes = slabBytes
        return demand
    }

    /// [stage thread] The ramp begins with the next block.
    func optionsChanged() { ramp.move(to: options.factor) }

    /// [stage thread] One block in, one out. The input is only read, since other stages may have it too.
    func process(_ input: consuming Sample, _ output: Output) throws {
        guard case .audioBlock(let block) = consume input else {
            throw FrameHostError(.broken, what: "gain was handed something other than sound")
        }
        var result = try output.makeAudioBlock(sampleCount: block.sampleCount)
        let channelCount = block.channelCount
        block.withSamples { source in
            result.withMutableSamples { ramp.apply(source, to: $0, channelCount: channelCount) }
        }
        result.copyProperties(from: block)
        try output.emit(result)
    }
}
