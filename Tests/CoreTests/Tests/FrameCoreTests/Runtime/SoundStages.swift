// SPDX-License-Identifier: Apache-2.0

import Glibc

@testable import FrameCore

/// Gives blocks of 10 ms of sound, one channel of 1,000 samples a second whose values count blocks.
final class BlockSource: Source {
    static let info = StageInfo(id: "block-source", summary: "Sounds.", output: .audio)

    struct Options: StageOptions {
        @Option(help: "Blocks.") var count = 100
        @Option(help: "Live.") var live = false
        @Option(help: "Milliseconds between blocks of a live source.", range: 0...1000) var everyMs = 0
        @Option(help: "Ends with a pause instead of its end.") var falls = false
    }

    var options: Options
    private let context: StageContext
    private var next = 0

    init(options: Options, context: StageContext) {
        self.options = options
        self.context = context
    }

    var demand: StageDemand {
        var demand = Self.declaredDemand
        demand.isLive = options.live
        demand.slabBytes = 64 << 10
        return demand
    }

    func negotiate() -> MediaFormat { .audio(AudioFormat(sampleRate: 1000, channelCount: 1)) }

    func produce(_ output: Output) throws -> SourceProgress {
        guard next < options.count else {
            if options.falls, context.sleep(until: context.clock.now() + 5_000_000) { return .more }
            return .ended
        }
        if options.everyMs > 0, !context.sleep(until: context.clock.now() + Int64(options.everyMs) * 1_000_000) {
            return .ended
        }
        var block = try output.makeAudioBlock(sampleCount: 10)
        let value = Float(next)
        block.withMutableSamples { $0.update(repeating: value) }
        block.pts = MediaTime(nanoseconds: Int64(next) * 10_000_000)
        block.duration = MediaTime(nanoseconds: 10_000_000)
        next += 1
        try output.emit(block)
        return .more
    }
}

/// An encoder of sound in the small: two blocks become one access unit, which begins one block early.
final class BlockEncoder: Transform {
    static let info = StageInfo(
        id: "block-encoder", summary: "Encodes sound.", input: .audio, output: .encoded(.aac))

    var options: NoOptions
    private var waiting = 0
    private var begin = MediaTime.zero

    init(options: NoOptions, context: StageContext) { self.options = options }

    func negotiate(_ input: MediaFormat) throws -> MediaFormat {
        guard let sound = input.audio else { throw FrameHostError(.broken, what: "no sound") }
        return .encoded(
            EncodedFormat(
                codec: .aac,
                audio: AudioTrackFormat(
                    codec: .aac, timeBase: sound.timeBase, sampleRate: sound.sampleRate,
                    channelCount: sound.channelCount, initialPadding: 10)))
    }

    func process(_ input: consuming Sample, _ output: Output) throws {
        guard case .audioBlock(let block) = consume input else { return output.drop(.byStage) }
        if waiting == 0 { begin = block.pts }
        waiting += 1
        output.absorb()
        if waiting == 2 { try give(output) }
    }

    private func give(_ output: Output) throws {
        var unit = try output.makeAccessUnit(byteCount: 16)
        unit.withMutableBytes { _ = $0.initializeMemory(as: UInt8.self, repeating: 7) }
        unit.pts = begin - MediaTime(nanoseconds: 10_000_000)
        unit.dts = unit.pts
        unit.duration = MediaTime(nanoseconds: 20_000_000)
        unit.isKeyframe = true
        waiting = 0
        try output.emit(unit, as: .made)
    }

    func drain(_ output: Output) throws { if waiting > 0 { try give(output) } }
}

/// Takes access units of several inputs and remembers in what order they came.
final class OrderSink: MultiSink {
    static let info = StageInfo(
        id: "order-sink", summary: "Takes several.", input: .encoded(.h264),
        furtherInputs: .several([.encoded(.aac, .opus), .motion]), service: .unbounded)

    struct Options: StageOptions {
        @Option(help: "Name under which the items are found.") var log = ""
        @Option(help: "Sleeps this long in each call.", range: 0...1_000_000) var sleepUs = 0
    }

    struct Entry: Equatable {
        var input: Int
        var milliseconds: Int
        var isKeyframe = true
        /// The number that the encoder gave to a picture's access unit.
        var number: UInt64 = 0
    }

    private static let logs = Locked<[String: [Entry]]>([:])
    static func log(_ name: String) -> [Entry] { logs.withLock { $0[name] ?? [] } }

    var options: Options
    private(set) var formats: [MediaFormat] = []

    init(options: Options, context: StageContext) { self.options = options }

    func negotiate(_ inputs: [MediaFormat]) throws { formats = inputs }

    func consume(_ input: consuming Sample, from index: Int) throws -> SinkVerdict {
        if options.sleepUs > 0 { usleep(UInt32(options.sleepUs)) }
        let entry: Entry
        switch consume input {
        case .accessUnit(let unit):
            entry = Entry(
                input: index, milliseconds: Int(unit.dts.nanoseconds / 1_000_000), isKeyframe: unit.isKeyframe,
                number: unit.sequenceNumber)
        case .motionBlock(let block):
            entry = Entry(input: index, milliseconds: Int(block.pts.nanoseconds / 1_000_000))
        case .frame: return .dropped(.byStage)
        case .audioBlock: return .dropped(.byStage)
        }
        Self.logs.withLock { $0[options.log, default: []].append(entry) }
        return .delivered
    }
}
