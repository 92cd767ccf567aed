// SPDX-License-Identifier: Apache-2.0

import Glibc

@testable import FrameCore

/// Stages that do what a ``KindsGraph/Part`` says, with random stalls.

struct KindOptions: StageOptions {
    @Option(help: "Pictures kept after a call.", range: 0...16) var hold = 0
    @Option(help: "Items unanswered.", range: 0...16) var delay = 0
    @Option(help: "Items a source gives.") var count = 60
    @Option(help: "Time of the first item in microseconds.") var first = 0
    @Option(help: "Microseconds from item to item.") var period = 1000
    @Option(help: "How far a filter looks ahead, in microseconds.") var ahead = 0
    @Option(help: "A filter checks that what it needs has come.") var checks = false
    @Option(help: "Live.") var live = false
    @Option(help: "A live source is silent for a while before it ends.") var falls = false
    @Option(help: "What the dice begin with.") var seed = 1

    func time(of item: Int) -> MediaTime { MediaTime(nanoseconds: Int64(first + item * period) * 1000) }
}

class KindSourceBase {
    var options: KindOptions
    let context: StageContext
    fileprivate var dice: Hoard
    fileprivate var next = 0

    required init(options: KindOptions, context: StageContext) {
        self.options = options
        self.context = context
        dice = Hoard(seed: options.seed)
    }

    fileprivate func demand(_ declared: StageDemand) -> StageDemand {
        var demand = declared
        demand.isLive = options.live
        demand.delay = options.delay
        demand.slabBytes = 64 << 10
        return demand
    }

    /// The time of the next item; nil when there is none.
    fileprivate func nextTime() -> MediaTime? {
        guard next < options.count else {
            if options.falls { _ = context.sleep(until: context.clock.now() + 5_000_000) }
            return nil
        }
        dice.stall()
        if options.live { usleep(30) }
        defer { next += 1 }
        return options.time(of: next)
    }
}

private func emitMotion(at time: MediaTime, _ output: Output) throws {
    var sample = MotionSample(time: time)
    sample.contents = .rotationRate
    try output.emit(output.makeMotionBlock([sample].span))
}

final class KindMotionSource: KindSourceBase, Source {
    static let info = StageInfo(id: "kind-motion-source", summary: "Moves.", output: .motion)
    var demand: StageDemand { demand(Self.declaredDemand) }
    func negotiate() throws -> MediaFormat { .motion(MotionFormat(contents: .rotationRate, sampleRate: 1000)) }
    func produce(_ output: Output) throws -> SourceProgress {
        guard let time = nextTime() else { return .ended }
        try emitMotion(at: time, output)
        return .more
    }
}

final class KindSoundSource: KindSourceBase, Source {
    static let info = StageInfo(id: "kind-sound-source", summary: "Sounds.", output: .audio)
    var demand: StageDemand { demand(Self.declaredDemand) }
    func negotiate() throws -> MediaFormat { .audio(AudioFormat(sampleRate: 1000, channelCount: 1)) }
    func produce(_ output: Output) throws -> SourceProgress {
        guard let time = nextTime() else { return .ended }
        var block = try output.makeAudioBlock(sampleCount: 4)
        block.withMutableSamples { $0.update(repeating: 0.5) }
        block.pts = time
        block.duration = MediaTime(nanoseconds: Int64(options.period) * 1000)
        try output.emit(block)
        return .more
    }
}

/// Motion, late.
final class KindMotionRelay: KindSourceBase, Transform {
    static let info = StageInfo(
        id: "kind-motion-relay", summary: "Delays motion.", input: .motion, output: .motion, delay: 16)
    private var times = TimeRing()
    var demand: StageDemand { demand(Self.declaredDemand) }
    var held: Int { times.count }
    func negotiate(_ input: MediaFormat) throws -> MediaFormat { input }

    func process(_ input: consuming Sample, _ output: Output) throws {
        guard case .motionBlock(let block) = consume input else { return output.drop(.byStage) }
        dice.stall()
        times.push(block.pts, block.sequenceNumber)
        if times.count > options.delay { try answer(output) }
    }
    private func answer(_ output: Output) throws {
        if let time = times.pop() { try emitMotion(at: time.pts, output) }
    }
    func drain(_ output: Output) throws { while times.count > 0 { try answer(output) } }
}

/// One motion of several: at the time of each item that comes in its turn, unless it has given that time.
final class KindMixer: KindSourceBase, MultiTransform {
    static let info = StageInfo(
        id: "kind-mixer", summary: "Mixes motion.", input: .motion, furtherInputs: .motion, output: .motion)
    private var rising = Rising()
    private var last: MediaTime?
    var longestWait: MediaTime { MediaTime(nanoseconds: 2_000_000) }
    var demand: StageDemand { demand(Self.declaredDemand) }
    func negotiate(_ inputs: [MediaFormat]) throws -> MediaFormat { inputs[0] }

    func process(_ input: consuming Sample, from index: Int, isInTurn: Bool, _ output: Output) throws {
        guard case .motionBlock(let block) = consume input else { return output.drop(.byStage) }
        dice.stall()
        output.absorb()
        try rising.check(block.pts, index)
        guard isInTurn, last.map({ $0 < block.pts }) ?? true else { return }
        last = block.pts
        var sample = MotionSample(time: block.pts)
        sample.contents = .rotationRate
        try output.emit(output.makeMotionBlock([sample].span), as: .made)
    }
}

/// An encoder of sound: two blocks become one access unit.
final class KindSoundEncoder: KindSourceBase, Transform {
    static let info = StageInfo(
        id: "kind-sound-encoder", summary: "Encodes sound.", input: .audio, output: .encoded(.aac))
    private var begin: MediaTime?
    var demand: StageDemand { demand(Self.declaredDemand) }

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
        dice.stall()
        output.absorb()
        guard let first = begin else { return begin = block.pts }
        try give(first, output)
    }
    private func give(_ time: MediaTime, _ output: Output) throws {
        begin = nil
        let unit = try output.makeAccessUnit(byteCount: 64)
        unit.pts = time
        unit.dts = time
        unit.isKeyframe = true
        try output.emit(unit, as: .made)
    }
    func drain(_ output: Output) throws { if let begin { try give(begin, output) } }
}

/// Checks that the items of each input come in the order of their time.
private struct Rising {
    private var last: [Int: MediaTime] = [:]

    mutating func check(_ time: MediaTime, _ index: Int) throws {
        if let before = last[index], time <= before {
            throw FrameHostError(.broken, what: "input \(index): \(time) after \(before)")
        }
        last[index] = time
    }
}

class KindFilterBase {
    var options: KindOptions
    fileprivate var hoard: Hoard
    private var rising = Rising()
    private var came = 0
    required init(options: KindOptions, context: StageContext) {
        self.options = options
        hoard = Hoard(seed: options.seed, most: options.hold)
    }
    var lookAhead: MediaTime { MediaTime(nanoseconds: Int64(options.ahead) * 1000) }
    var longestWait: MediaTime { MediaTime(nanoseconds: 2_000_000) }
    func negotiate(_ format: VideoFormat, further: [MediaFormat]) throws {}

    func receive(_ item: consuming Sample, from index: Int) throws {
        hoard.stall()
        switch consume item {
        case .motionBlock(let block): try rising.check(block.pts, index)
        case .audioBlock(let block): try rising.check(block.pts, index)
        case .frame: throw FrameHostError(.broken, what: "input \(index) gives pictures")
        case .accessUnit: throw FrameHostError(.broken, what: "input \(index) gives access units")
        }
        if index == 1 { came += 1 }
    }

    func process(_ frame: inout Frame) throws -> Verdict {
        try rising.check(frame.pts, 0)
        let end = frame.pts + lookAhead
        // Those up to there, that moment included.
        let needed = options.checks ? (0..<options.count).prefix { options.time(of: $0) <= end }.count : 0
        guard came >= needed else {
            throw FrameHostError(.broken, what: "the picture of \(frame.pts) has \(came) of \(needed) items")
        }
        hoard.see(frame)
        return .forward
    }
    func stop() throws { hoard.clear() }
}

final class KindFilter: KindFilterBase, MultiFilter {
    static let info = StageInfo(
        id: "kind-filter", summary: "Reads.", input: .video(.gray8), furtherInputs: .several([.motion, .audio]),
        output: .sameAsInput, hold: 16)
    var demand: StageDemand {
        var demand = Self.declaredDemand
        demand.hold = options.hold
        return demand
    }
}

final class KindWriter: KindFilterBase, MultiFilter {
    static let info = StageInfo(
        id: "kind-writer", summary: "Writes.", input: .video(.gray8), furtherInputs: .several([.motion, .audio]),
        output: .sameAsInput, access: .modify, hold: 16)
    var demand: StageDemand {
        var demand = Self.declaredDemand
        demand.hold = options.hold
        return demand
    }
}

/// Takes encoded pictures and what goes with them.
final class KindRecorder: MultiSink {
    static let info = StageInfo(id: "kind-recorder", summary: "Records.", input: .any, furtherInputs: .any)
    var options: KindOptions
    private var dice: Hoard
    private var rising = Rising()
    init(options: KindOptions, context: StageContext) {
        self.options = options
        dice = Hoard(seed: options.seed)
    }
    func negotiate(_ inputs: [MediaFormat]) throws {}

    func consume(_ input: consuming Sample, from index: Int) throws -> SinkVerdict {
        dice.stall()
        switch consume input {
        case .accessUnit(let unit): try rising.check(unit.dts, index)
        case .motionBlock(let block): try rising.check(block.pts, index)
        case .audioBlock(let block): try rising.check(block.pts, index)
        case .frame: throw FrameHostError(.broken, what: "a picture that is not encoded")
        }
        return .delivered
    }
}

extension KindsGraph {
    /// What the chain is made of in place of ``GraphChain``'s own stages.
    func types(seed: UInt64) -> [Int: GraphChain.Chosen] {
        var types: [Int: GraphChain.Chosen] = [:]
        let taking = EarlyTaking(BudgetTopology(graph)).inputs
        for (index, stage) in stages {
            let node = graph.nodes[index]
            let common =
                #""hold": \#(node.hold), "delay": \#(node.delay), "live": \#(node.isLive), "seed": \#(seed % 1_000_000 * 100 + UInt64(index))"#
            func chosen(_ type: any Stage.Type, _ more: String = "") -> GraphChain.Chosen {
                GraphChain.Chosen(type: type, options: "{\(common)\(more)}")
            }
            func times(_ times: Times) -> String {
                #", "count": \#(times.count), "first": \#(times.first), "period": \#(times.period)"#
            }
            types[index] =
                switch stage {
                case .motionSource(let when):
                    chosen(KindMotionSource.self, times(when) + #", "falls": \#(node.isLive && seed % 3 == 0)"#)
                case .soundSource(let when):
                    chosen(KindSoundSource.self, times(when) + #", "falls": \#(node.isLive && seed % 3 == 0)"#)
                case .motionRelay: chosen(KindMotionRelay.self)
                case .soundEncoder: chosen(KindSoundEncoder.self)
                case .mixer: chosen(KindMixer.self)
                case .filter(let ahead, let when):
                    chosen(
                        node.modifies ? KindWriter.self : KindFilter.self,
                        #", "ahead": \#(ahead), "checks": \#(when != nil && losesNothing && taking[index]!.leaves[0] == .ownTurn)"#
                            + times(when ?? Times()))
                case .recorder: chosen(KindRecorder.self)
                }
        }
        return types
    }
}
