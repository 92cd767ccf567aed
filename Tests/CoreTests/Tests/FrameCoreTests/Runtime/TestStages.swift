// SPDX-License-Identifier: Apache-2.0

import Glibc

@testable import FrameCore

/// Stages for tests: small, and each able to do one thing wrong.

/// Gives `count` frames of 16x16 GRAY8 with PTS counted in milliseconds.
final class CountingSource: Source {
    static let info = StageInfo(id: "counting-source", summary: "Counts.", output: .video(.gray8))

    struct Options: StageOptions {
        @Option(help: "Frames.") var count = 100
        @Option(help: "Live.") var live = false
        @Option(help: "Milliseconds between frames of a live source.", range: 0...600_000) var everyMs = 0
        @Option(help: "Buffers the source itself keeps.", range: 0...8) var floor = 0
        @Option(help: "Width and height.", range: 1...64) var side = 16
    }

    var options: Options
    let context: StageContext
    private var next = 0
    private var kept: [Int] = []

    init(options: Options, context: StageContext) {
        self.options = options
        self.context = context
    }

    var demand: StageDemand {
        var demand = Self.declaredDemand
        demand.isLive = options.live
        demand.floor = options.floor
        return demand
    }

    func negotiate() throws -> MediaFormat {
        .video(VideoFormat(.gray8, width: options.side, height: options.side, frameRate: Rational(1000)))
    }

    func produce(_ output: Output) throws -> SourceProgress {
        guard next < options.count else { return .ended }
        if options.everyMs > 0, !context.sleep(until: context.clock.now() + Int64(options.everyMs) * 1_000_000) {
            return .ended
        }
        guard var frame = try output.makeFrame() else {
            next += 1
            return next < options.count ? .more : .ended
        }
        frame.pts = MediaTime(nanoseconds: Int64(next) * 1_000_000)
        let value = UInt8(truncatingIfNeeded: next)
        frame.withMutablePlane(0) { plane in for y in 0..<plane.height { plane.row(y).update(repeating: value) } }
        next += 1
        try output.emit(frame)
        return .more
    }
}

/// Lets frames through; can keep shares, drop, throw, block, take its time.
final class ProbeFilter: Filter {
    static let info = StageInfo(id: "probe", summary: "Looks.", input: .anyVideo, output: .sameAsInput, hold: 8)

    struct Options: StageOptions {
        @Option(help: "Frames kept.", range: 0...8) var keep = 0
        @Option(help: "Declared hold; −1 for `keep`.", range: -1...8) var declared = -1
        @Option(help: "Drops every n-th frame.", range: 0...1000) var dropEvery = 0
        @Option(help: "Throws at this frame.", range: -1...100_000) var failAt = -1
        @Option(help: "Blocks in pause() at this frame.", range: -1...100_000) var pauseAt = -1
        @Option(help: "Microseconds per frame.", range: 0...1_000_000) var sleepUs = 0
        @Option(help: "A live value.", live: true) var level = 0
        @Option(help: "Throws once, at this frame or the next that comes.", live: true) var failFrom = -1
    }

    var options: Options
    private var keptFrames = FrameRing(capacity: 9)
    private var hasFailed = false

    init(options: Options, context: StageContext) { self.options = options }

    var demand: StageDemand {
        var demand = Self.declaredDemand
        demand.hold = options.declared < 0 ? options.keep : options.declared
        return demand
    }

    func process(_ frame: inout Frame) throws -> Verdict {
        let number = Int(frame.sequenceNumber)
        if options.sleepUs > 0 { usleep(UInt32(options.sleepUs)) }
        let failsNow = options.failFrom >= 0 && number >= options.failFrom && !hasFailed
        if number == options.failAt || failsNow {
            hasFailed = true
            throw FrameHostError(.callFailed, what: "the probe was told to fail", remedy: "Tell it otherwise.")
        }
        while number == options.pauseAt { pause() }
        if options.keep > 0 { keptFrames.push(frame.share(), keeping: options.keep) }
        if options.dropEvery > 0, number % options.dropEvery == 0 { return .drop(.byStage) }
        return .forward
    }

    func stop() { while keptFrames.pop() != nil {} }
}

extension FrameRing {
    /// As a queue that keeps `most` at a time.
    mutating func push(_ frame: consuming Frame, keeping most: Int) {
        while count >= most { _ = takeOldest() }
        append(frame)
    }

    mutating func pop() -> Frame? { takeOldest() }
}

/// Adds one to every pixel, in place.
final class AddOne: Filter {
    static let info = StageInfo(
        id: "add-one", summary: "Adds one.", input: .video(.gray8), output: .sameAsInput, access: .modify)
    typealias Options = NoOptions
    var options: NoOptions
    init(options: NoOptions, context: StageContext) { self.options = options }

    func process(_ frame: inout Frame) throws -> Verdict {
        frame.withMutablePlane(0) { plane in
            for y in 0..<plane.height { for x in 0..<plane.rowBytes { plane.row(y)[x] &+= 1 } }
        }
        return .forward
    }
}

/// Copies frames into its own pool, `delay` late; can swallow or double one.
final class CopyTransform: Transform {
    static let info = StageInfo(
        id: "copy", summary: "Copies.", input: .video(.gray8), output: .video(.gray8), hold: 8, delay: 16)

    struct Options: StageOptions {
        @Option(help: "Items kept before the first answer.", range: 0...8) var delay = 0
        @Option(help: "Swallows this frame.", range: -1...100_000) var swallow = -1
        @Option(help: "Gives this frame twice.", range: -1...100_000) var double = -1
    }

    var options: Options
    private var waiting = FrameRing(capacity: 9)

    init(options: Options, context: StageContext) { self.options = options }

    var demand: StageDemand {
        var demand = Self.declaredDemand
        demand.hold = options.delay
        demand.delay = options.delay
        return demand
    }
    var held: Int { waiting.count }

    func negotiate(_ input: MediaFormat) throws -> MediaFormat { input }

    func process(_ input: consuming Sample, _ output: Output) throws {
        guard case .frame(let frame) = consume input else { return }
        if Int(frame.sequenceNumber) == options.swallow { return }
        waiting.push(frame, keeping: options.delay + 1)
        if waiting.count > options.delay, let oldest = waiting.pop() { try answer(oldest, output) }
    }

    func drain(_ output: Output) throws {
        while let frame = waiting.pop() { try answer(frame, output) }
    }

    private func answer(_ frame: borrowing Frame, _ output: Output) throws {
        guard let copy = try output.makeFrame() else { return }
        copy.copyPixels(from: frame)
        copy.copyProperties(from: frame)
        if Int(frame.sequenceNumber) == options.double { try output.emit(copy.share()) }
        try output.emit(copy)
    }
}

/// Joins two inputs: the first one's frame goes on.
final class PairJoin: Join {
    static let info = StageInfo(id: "pair", summary: "Pairs.", input: .video(.gray8), output: .sameAsInput)
    typealias Options = NoOptions
    var options: NoOptions
    init(options: NoOptions, context: StageContext) { self.options = options }
    func negotiate(_ inputs: [MediaFormat]) throws -> MediaFormat { inputs[0] }

    func merge(_ inputs: JoinInputs, _ output: Output) throws {
        for index in 0..<inputs.count {
            if case .frame(let frame)? = inputs.take(index) { return try output.emit(frame) }
        }
    }
}

/// Remembers what it saw, for all tests to read.
final class RecordingSink: Sink {
    static let info = StageInfo(id: "recording-sink", summary: "Remembers.", input: .video(.gray8), hold: 8)

    struct Options: StageOptions {
        @Option(help: "Name under which the log is found.") var log = ""
        @Option(help: "Microseconds per frame.", range: 0...1_000_000) var sleepUs = 0
        @Option(help: "Frames kept.", range: 0...8) var keep = 0
        @Option(
            help: "Blocks in pause() at this frame, or the next that comes: a live source may drop it.",
            range: -1...100_000)
        var pauseAt = -1
        @Option(help: "Waits in each call until the run is stopped.") var waitsForStop = false
        @Option(help: "Throws at this frame.", range: -1...100_000) var failAt = -1
    }

    struct Entry: Sendable, Equatable {
        var sequence: UInt64
        var pixel: UInt8
    }

    struct Log: Sendable {
        var entries: [Entry] = []
        /// By entry.
        var milliseconds: [Int64] = []
        var followsGap: [Bool] = []
        var stops = 0
    }

    private static let logs = Locked<[String: Log]>([:])
    static func log(_ name: String) -> Log { logs.withLock { $0[name] ?? Log() } }

    var options: Options
    private let context: StageContext
    private var keptFrames = FrameRing(capacity: 9)

    init(options: Options, context: StageContext) {
        self.options = options
        self.context = context
    }

    var demand: StageDemand {
        var demand = Self.declaredDemand
        demand.hold = options.keep
        return demand
    }

    func consume(_ input: consuming Sample) throws -> SinkVerdict {
        guard case .frame(let frame) = consume input else { return .dropped(.byStage) }
        if options.sleepUs > 0 { usleep(UInt32(options.sleepUs)) }
        while options.pauseAt >= 0, Int(frame.sequenceNumber) >= options.pauseAt { pause() }
        while options.waitsForStop, !context.isStopped { usleep(1000) }
        if Int(frame.sequenceNumber) == options.failAt {
            throw FrameHostError(.exhausted, what: "the sink was told to fail")
        }
        let entry = Entry(sequence: frame.sequenceNumber, pixel: frame.withPlane(0) { $0.row(7)[7] })
        let (time, isGap) = (frame.pts.nanoseconds / 1_000_000, frame.isDiscontinuity)
        Self.logs.withLock { logs in
            logs[options.log, default: Log()].entries.append(entry)
            logs[options.log]?.milliseconds.append(time)
            logs[options.log]?.followsGap.append(isGap)
        }
        if options.keep > 0 { keptFrames.push(frame, keeping: options.keep) }
        return .delivered
    }

    func stop() throws {
        while keptFrames.pop() != nil {}
        Self.logs.withLock { $0[options.log, default: Log()].stops += 1 }
    }
}

/// Builds requests without a file.
struct ChainSketch {
    var request = ChainRequest(file: "test.json", folder: ".", stages: [])

    /// The same with every stage that nobody reads marked so.
    var requestWithOpenEnds: ChainRequest {
        var request = request
        let read = Set(request.stages.flatMap(\.from))
        for index in request.stages.indices
        where !read.contains(index) && request.stages[index].type.info.output != .none {
            request.stages[index].isUnread = true
        }
        return request
    }

    private static let types = Locked<[ObjectIdentifier: StageType]>([:])

    /// One object for each stage type, as a registry has.
    static func stageType<S: Stage>(_ type: S.Type) -> StageType {
        types.withLock { types in
            if let known = types[ObjectIdentifier(type)] { return known }
            let made = StageType(type)
            types[ObjectIdentifier(type)] = made
            return made
        }
    }

    /// Without the stages of these ids.
    func without(_ ids: String...) -> ChainSketch {
        var sketch = self
        let kept = request.stages.indices.filter { !ids.contains(request.stages[$0].id) }
        sketch.request.stages = kept.map { index in
            var stage = request.stages[index]
            stage.from = stage.from.map { kept.firstIndex(of: $0)! }
            return stage
        }
        return sketch
    }

    /// With other options for the stage `id`.
    func setting(_ id: String, _ options: String) throws -> ChainSketch {
        var sketch = self
        let index = sketch.request.stages.firstIndex { $0.id == id }!
        sketch.request.stages[index].options =
            try JSONReader.read(Array(options.utf8), file: "options").asObject ?? []
        return sketch
    }

    /// Adds a stage; its input is the one before it unless `from` says otherwise.
    mutating func add<S: Stage>(
        _ type: S.Type, _ id: String, options: String = "{}", from: [String]? = nil, link: LinkRequest = LinkRequest(),
        onError: OnError? = nil
    ) throws {
        let members = try JSONReader.read(Array(options.utf8), file: "options").asObject ?? []
        let inputs =
            from.map { $0.map { name in request.stages.firstIndex { $0.id == name }! } }
            ?? (S.info.input == .none ? [] : [request.stages.count - 1])
        request.stages.append(
            StageRequest(
                id: id, type: Self.stageType(type), options: members, from: inputs, link: link, onError: onError,
                fileIndex: request.stages.count))
    }
}
