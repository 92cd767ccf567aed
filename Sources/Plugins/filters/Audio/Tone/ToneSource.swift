// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// Gives sound for tests: as fast as it is taken, or live.
///
/// The PTS of a block is its first sample's number divided by the rate, exactly. Live, the numbers begin with the chain
/// clock's time at the first block, rounded to a sample, so a beep stands on a whole second of the chain's timeline in
/// both cases.
final class ToneSource: Source {
    static let info = StageInfo(
        id: "tone-source", summary: "Gives sound for tests: a tone, beeps on each whole second, silence.",
        output: .audio,
        events: [
            EventDeclaration(
                "late",
                "The source could not give blocks in time: the machine or the chain is too slow, or the program was stopped for a while.",
                [.number("missed", "How many blocks were skipped since the last event of this name.")])
        ], realTime: StageInfo.RealTime(with: "live", .bool(true)))

    /// A live block that is later than this is skipped, as by a sound card whose buffer is full. Nanoseconds.
    static let patience: Int64 = 200_000_000
    private static let reportInterval: Int64 = 60_000_000_000

    var options: ToneSourceOptions
    private let context: StageContext
    private let format: AudioFormat
    private let wave: ToneWave
    private let grid: BlockGrid
    /// The number of samples after which the sound ends.
    private let mostSamples: Int64
    /// The next block, counted from the start; skipped ones count.
    private var index: Int64 = 0
    private var given = 0
    /// Live: the time of block 0 in samples.
    private var origin: Int64?
    /// The end of the last pause for which the pace was adjusted.
    private var lastResume: Int64 = 0
    private var hasGap = false
    private var missed: Int64 = 0
    private var lastReport = Int64.min / 2

    /// [control thread] Opens nothing.
    init(options: ToneSourceOptions, context: StageContext) {
        self.options = options
        self.context = context
        format = AudioFormat(sampleRate: options.sampleRate, channelCount: options.channels)
        wave = ToneWave(
            options.pattern, sampleRate: options.sampleRate, channelCount: options.channels,
            frequency: options.frequency, level: options.level)
        grid = BlockGrid(sampleRate: Int64(options.sampleRate), blockMs: Int64(options.blockMs))
        mostSamples =
            options.seconds.map { max(1, Int64(($0 * Double(options.sampleRate)).rounded())) } ?? .max
    }

    var demand: StageDemand {
        var demand = Self.declaredDemand
        demand.isLive = options.live
        demand.slabBytes = max(1 << 20, 8 * Int(grid.start(of: 1) + 1) * format.bytesPerMoment)
        if let blocks = options.blocks {
            demand.expectedItems = blocks
            demand.expectedDuration = format.timeBase.time(ofTicks: grid.start(of: Int64(blocks)))
        } else if options.seconds != nil {
            demand.expectedItems = Int(grid.block(at: mostSamples - 1) + 1)
            demand.expectedDuration = format.timeBase.time(ofTicks: mostSamples)
        }
        return demand
    }

    func negotiate() -> MediaFormat { .audio(format) }

    /// [setup thread]
    func start() {
        index = 0
        given = 0
        origin = nil
    }

    /// [stage thread] One block. Live: sleeps until its last sample is over.
    func produce(_ output: Output) throws -> SourceProgress {
        if isOver { return .ended }
        if options.live, !waitUntilDue() { return .ended }
        if isOver { return .ended }
        let first = grid.start(of: index)
        let end = min(grid.start(of: index + 1), mostSamples)
        index += 1
        given += 1
        let number = (origin ?? 0) + first
        var block = try output.makeAudioBlock(sampleCount: Int(end - first))
        block.withMutableSamples { wave.fill($0, from: number) }
        block.pts = format.timeBase.time(ofTicks: number)
        block.duration = format.timeBase.time(ofTicks: number + end - first) - block.pts
        if options.live {
            block.capturedAt = block.pts.nanoseconds
            block.isDiscontinuity = hasGap
            hasGap = false
        }
        try output.emit(block)
        return isOver ? .ended : .more
    }

    /// [stage thread] Reports what was skipped since the last report.
    func stop() { report(context.clock.now()) }

    private var isOver: Bool { grid.start(of: index) >= mostSamples || options.blocks.map { given >= $0 } == true }

    /// False when the run ends. Skips the blocks that have been over for longer than ``patience``, and those of a
    /// pause.
    private func waitUntilDue() -> Bool {
        let start = origin ?? format.timeBase.ticks(of: MediaTime(nanoseconds: context.clock.now()))
        origin = start
        if context.resumedAt > lastResume {
            lastResume = context.resumedAt
            let samples = format.timeBase.ticks(of: MediaTime(nanoseconds: lastResume)) - start
            index = max(index, grid.block(at: max(samples, 0)))
        }
        let now = context.clock.now()
        if now - due(start) > Self.patience {
            let current = grid.block(at: max(format.timeBase.ticks(of: MediaTime(nanoseconds: now)) - start, 0))
            skip(to: max(current, index), now)
        }
        return context.sleep(until: due(start))
    }

    /// When the next block is over, nanoseconds of the chain clock.
    private func due(_ start: Int64) -> Int64 {
        format.timeBase.time(ofTicks: start + grid.start(of: index + 1)).nanoseconds
    }

    private func skip(to block: Int64, _ now: Int64) {
        missed += block - index
        index = block
        hasGap = true
        if now - lastReport >= Self.reportInterval { report(now) }
    }

    private func report(_ now: Int64) {
        guard missed > 0 else { return }
        context.post(
            "late", level: .warning,
            text:
                "This source skipped \(missed == 1 ? "1 block" : "\(missed) blocks") of \(options.blockMs) ms: the machine or the chain is too slow, or the program was stopped for a while.",
            details: ["missed": .number(missed)])
        missed = 0
        lastReport = now
    }
}
