// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// Options of ``AudioMix``.
struct AudioMixOptions: StageOptions {
    @Option(
        help:
            "Gains in dB by the inputs' ids, from -120 (silence) to 60: { \"mic\": 3, \"music\": -12 }. Other inputs have 0.",
        live: true)
    var gains = MixGains()
    @Option(
        help: "Live chains: how long the mix waits for an input that gives no sound, which then counts as silent.",
        range: 10...5000, unit: "ms", live: true)
    var waitMs = 500
    @Option(
        help:
            "What becomes of a sum beyond full scale: soft bends it from -0.9 dBFS on, so that nothing clips; off leaves it.",
        live: true)
    var limit = MixLimit.soft
}

/// Adds several sounds, each with a gain of its own, sample by sample at their times.
///
/// Before a time for which no input can give anything any more, the sum is complete (``MultiTransform``). So files are
/// mixed exactly and as fast as they are read, and live inputs as soon as all of them have given their sound.
final class AudioMix: MultiTransform {
    static let info = StageInfo(
        id: "audio-mix", summary: "Mixes several sounds into one, each with a gain of its own.", input: .audio,
        furtherInputs: .audio, output: .audio, events: events)

    private static let blocksPerSecond = 100
    private static let rampsPerSecond = 100
    /// Where no input has sound for longer than that, the times jump: so an encoder's `maxGapSeconds` decides.
    private static let mostSilentSeconds: Int64 = 2
    /// Sound that is taken before its turn is kept so long at most.
    private static let mostKeptSeconds: Int64 = 60
    /// While no input gives anything, silence is given in such steps.
    private static let idleStep: Int64 = 20_000_000
    /// How much later than it comes the sound of a played file is heard, so that it need not come to the moment.
    private static let alignedMilliseconds: Int64 = 50

    private struct Input {
        var timeline: SampleTimeline
        var ramp: GainRamp
        /// Samples that are added to its times.
        var offset: Int64 = 0
        var isLost = false
        var late = SoundReport()

        /// The number of the sample after its last one; nil before the first.
        var position: Int64? { timeline.next.map { $0 + offset } }
    }

    private struct Figures {
        var isLost: [Bool] = []
        var lateSamples: [Int64] = []
    }

    var options: AudioMixOptions
    private let context: StageContext
    private var format = AudioFormat(sampleRate: 48_000, channelCount: 2)
    private var inputs: [Input] = []
    private var sum = MixSum(channelCount: 2, capacity: 0)
    private var scratch: [Float] = []
    private var hasBegun = false
    /// The number of the first sample of all.
    private var origin: Int64 = 0
    private var isAfterGap = false
    private var blockCount: UInt64 = 0
    /// When the newest sound came by which the mix goes, and when silence was given last: chain clock.
    private var heardAt: Int64 = 0
    private var idledAt: Int64 = 0
    /// When the sample number `origin` was captured.
    private var captured: (origin: Int64, at: Int64) = (0, 0)
    private let figures = Locked(Figures())

    /// [control thread] Opens nothing.
    init(options: AudioMixOptions, context: StageContext) {
        self.options = options
        self.context = context
    }

    /// [control thread]
    ///
    /// - Throws: ``FrameHostError`` for inputs of several formats, and for gains of inputs that do not exist.
    func negotiate(_ inputs: [MediaFormat]) throws -> MediaFormat {
        let formats = inputs.compactMap(\.audio)
        guard let format = formats.first, formats.count == inputs.count else {
            throw FrameHostError(.broken, what: "audio-mix needs sound on every input, but got \(inputs)")
        }
        for (index, other) in formats.enumerated() where other != format {
            throw FrameHostError(
                .invalidConfiguration, place: "from",
                what:
                    "the inputs of a mix must have one format, but '\(name(of: 0))' gives \(format), and '\(name(of: index))' gives \(other)",
                remedy:
                    "Put a stage after '\(name(of: index))' and name that one here: { \"use\": \"audio-resample\", \"sampleRate\": \(format.sampleRate), \"channels\": \(format.channelCount) }."
            )
        }
        self.format = format
        self.inputs = inputs.indices.map { index in
            Input(
                timeline: SampleTimeline(format),
                ramp: GainRamp(
                    options.gains.factor(of: name(of: index)), rampSamples: format.sampleRate / Self.rampsPerSecond))
        }
        sum = MixSum(channelCount: format.channelCount, capacity: format.sampleRate)
        try checkGains()
        return .audio(format)
    }

    private func name(of index: Int) -> String {
        context.inputIDs.indices.contains(index) ? context.inputIDs[index] : "\(index)"
    }

    private func checkGains() throws {
        let names = inputs.indices.map(name)
        guard let stranger = options.gains.list.first(where: { !names.contains($0.input) }) else { return }
        throw FrameHostError(
            .invalidConfiguration, place: "gains", what: "'\(stranger.input)' must be an input of this stage",
            remedy: "Use one of its inputs: \(names.map { "'\($0)'" }.joined(separator: ", ")).")
    }

    var demand: StageDemand {
        var demand = Self.declaredDemand
        demand.slabBytes = audioSlabBytes(format)
        return demand
    }

    /// [setup thread]
    func start() throws {
        let names = inputs.indices.map(name)
        figures.withLock {
            $0.isLost = names.map { _ in false }
            $0.lateSamples = names.map { _ in 0 }
        }
        context.showFigures { [figures, rate = Int64(format.sampleRate)] in
            let now = figures.withLock { $0 }
            return [
                "inputs": .object(
                    names.enumerated().map { index, name -> (String, JSONNode) in
                        let late = now.lateSamples[index] * 1000 / rate
                        return (name, ["isLost": JSONNode(.bool(now.isLost[index])), "lateMs": .number(late)])
                    })
            ]
        }
    }

    /// [stage thread] The ramps begin with the inputs' next blocks.
    ///
    /// - Throws: ``FrameHostError`` for gains of inputs that do not exist.
    func optionsChanged() throws {
        try checkGains()
        for index in inputs.indices { inputs[index].ramp.move(to: options.gains.factor(of: name(of: index))) }
    }

    // MARK: Sound

    var longestWait: MediaTime { MediaTime(nanoseconds: wait) }
    private var wait: Int64 { Int64(options.waitMs) * 1_000_000 }
    private var waitSamples: Int64 { Int64(options.waitMs) * Int64(format.sampleRate) / 1000 }

    /// [stage thread] Adds a block to the sum, and gives what is complete. Allocates nothing once warm.
    func process(_ input: consuming Sample, from index: Int, isInTurn: Bool, _ output: Output) throws {
        guard case .audioBlock(let block) = consume input, inputs.indices.contains(index) else {
            throw FrameHostError(.broken, what: "audio-mix was handed something other than sound")
        }
        output.absorb()
        let isFirst = inputs[index].position == nil
        let step = inputs[index].timeline.step(to: block.pts, isDiscontinuity: block.isDiscontinuity)
        if case .gap = step { inputs[index].timeline.restart(at: block.pts) }
        let count = Int64(block.sampleCount)
        if context.isLiveChain { align(index, isFirst: isFirst, cameAt: block.capturedAt) }
        let next = inputs[index].position!
        // Of sound that comes twice, the first is taken.
        let overlap = if case .overlap(let samples) = step { min(samples, count) } else { Int64(0) }
        let first = next - overlap
        inputs[index].timeline.advance(count - overlap)
        if !hasBegun {
            hasBegun = true
            origin = context.isLiveChain ? min(next, now) : next
            sum.restart(at: origin)
        }
        // Before its turn nothing is complete, and by an input that goes by when it comes only where no other is there.
        let isComplete = isInTurn && (inputs[index].offset == 0 || !hasOthersByTheClock)
        // Sound that is moved to later is ahead of the clock, and others are not.
        let end = min(next - (inputs[index].offset == 0 ? 0 : aligned), context.isLiveChain ? now : .max)
        if isComplete || next - sum.begin > mostKept { try give(to: end, output) }
        captured = (first, block.capturedAt)
        // What lies before the first sample of all is not missing anywhere.
        noteSound(of: index, late: min(max(sum.begin - max(next, origin), 0), count - overlap))
        add(block, index, at: first, after: Int(overlap))
        if isComplete || heardAt == 0 { heardAt = context.clock.now() }
        if context.isLiveChain { noteLost(at: end) }
    }

    /// A file that is played in real time has times of its own, by which its sound would come too late in a live chain. Such
    /// an input goes by when it comes.
    ///
    /// - Parameter moment: When the sound came, chain clock. The mix may get it later.
    private func align(_ index: Int, isFirst: Bool, cameAt moment: Int64) {
        guard isFirst || inputs[index].isLost, let next = inputs[index].timeline.next else { return }
        let came = moment == 0 ? now : format.timeBase.ticks(of: MediaTime(nanoseconds: moment))
        guard next + inputs[index].offset < came - waitSamples else { return }
        inputs[index].offset = came + aligned - next
    }

    /// The number of the sample that is heard now, by the chain clock.
    private var now: Int64 { format.timeBase.ticks(of: MediaTime(nanoseconds: context.clock.now())) }
    private var aligned: Int64 { Self.alignedMilliseconds * Int64(format.sampleRate) / 1000 }
    private var hasOthersByTheClock: Bool { inputs.contains { $0.offset == 0 && !$0.isLost && $0.position != nil } }

    private var mostKept: Int64 { Self.mostKeptSeconds * Int64(format.sampleRate) }
    /// In a live chain silence is given by the clock, unless the times jump.
    private var mostSilent: Int64 {
        context.isLiveChain ? mostKept : Self.mostSilentSeconds * Int64(format.sampleRate)
    }

    private func add(_ block: borrowing AudioBlock, _ index: Int, at first: Int64, after skipped: Int) {
        let channelCount = format.channelCount
        block.withSamples { samples in
            if scratch.count < samples.count { scratch = [Float](repeating: 0, count: samples.count) }
            scratch.withUnsafeMutableBufferPointer { scratch in
                let scaled = UnsafeMutableBufferPointer(rebasing: scratch[..<samples.count])
                inputs[index].ramp.apply(samples, to: scaled, channelCount: channelCount)
                sum.add(
                    UnsafeBufferPointer(rebasing: scaled[(skipped * channelCount)...]), at: first + Int64(skipped))
            }
        }
    }

    /// In a live chain, silence goes on where no input gives anything.
    var idleTime: MediaTime? {
        guard hasBegun, heardAt > 0 else { return nil }
        return MediaTime(nanoseconds: max(heardAt + wait, idledAt + Self.idleStep))
    }

    /// [stage thread] Gives silence up to the time that inputs would have by now, less the time that they may be late.
    func idle(_ output: Output) throws {
        idledAt = context.clock.now()
        try give(to: now - waitSamples, output)
        noteLost(at: now)
    }

    /// [stage thread] Gives the rest.
    func drain(_ output: Output) throws { try giveRest(output) }

    /// Gives the sum up to a sample, in whole blocks. Longer silence of all inputs is left out: the times jump.
    private func give(to end: Int64, _ output: Output) throws {
        if end - sum.end > mostSilent {
            try giveRest(output)
            sum.restart(at: end)
            isAfterGap = true
        }
        while end - sum.begin >= blockLength { try give(blockLength, output) }
    }

    private func giveRest(_ output: Output) throws {
        while sum.begin < sum.end { try give(min(blockLength, sum.end - sum.begin), output) }
    }

    private var blockLength: Int64 { Int64(max(format.sampleRate / Self.blocksPerSecond, 1)) }

    private func give(_ count: Int64, _ output: Output) throws {
        let first = sum.begin
        var block = try output.makeAudioBlock(sampleCount: Int(count))
        let limit = options.limit
        sum.take(to: first + count) { samples in
            block.withMutableSamples { result in
                for index in result.indices { result[index] = limit(samples[index]) }
            }
        }
        let timeBase = format.timeBase
        block.pts = timeBase.time(ofTicks: first)
        block.duration = timeBase.time(ofTicks: first + count) - block.pts
        let distance = block.pts - timeBase.time(ofTicks: captured.origin)
        block.capturedAt = captured.at + distance.nanoseconds
        block.sequenceNumber = blockCount
        block.isDiscontinuity = isAfterGap
        isAfterGap = false
        blockCount += 1
        try output.emit(block, as: .made)
    }

    // MARK: Inputs

    private func noteSound(of index: Int, late: Int64) {
        if late > 0 {
            figures.withLock { $0.lateSamples[index] += late }
            if let samples = inputs[index].late.add(late, at: context.clock.now()) {
                let milliseconds = Double(samples) * 1000 / Double(format.sampleRate)
                context.post(
                    "input-late", level: .warning,
                    text:
                        "\(context.stageID): \(Int(milliseconds.rounded(.up))) ms of '\(name(of: index))' came too late for the mix and are left out. Raise 'waitMs' if that goes on.",
                    details: ["input": .string(name(of: index)), "milliseconds": .number(milliseconds)])
            }
        }
        if inputs[index].isLost { say(index, isLost: false) }
    }

    /// Finds the inputs that the mix has not waited for any longer.
    private func noteLost(at now: Int64) {
        guard !context.isEnded else { return }
        for index in inputs.indices where !inputs[index].isLost {
            if now - (inputs[index].position ?? origin) > waitSamples { say(index, isLost: true) }
        }
    }

    private func say(_ index: Int, isLost: Bool) {
        inputs[index].isLost = isLost
        figures.withLock { $0.isLost[index] = isLost }
        let id = name(of: index)
        context.post(
            isLost ? "input-lost" : "input-back", level: isLost ? .warning : .info,
            text: isLost
                ? "\(context.stageID): '\(id)' gives no sound and counts as silent."
                : "\(context.stageID): '\(id)' gives sound again.",
            details: ["input": .string(id)])
    }
}
