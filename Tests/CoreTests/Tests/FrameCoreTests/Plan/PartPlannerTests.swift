// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import FrameCore

/// A film of numbered frames, a millisecond each, of which it can give a part.
final class FilmSource: Source {
    static let info = StageInfo(id: "film", summary: "Plays a film.", output: .video(.gray8))
    struct Options: StageOptions {
        @Option(help: "Frames.") var count = 40
    }
    static let frame: Int64 = 1_000_000

    var options: Options
    private let context: StageContext
    private var next = 0
    private var last = 0

    init(options: Options, context: StageContext) {
        self.options = options
        self.context = context
    }
    var demand: StageDemand {
        var demand = Self.declaredDemand
        demand.isDivisible = true
        return demand
    }
    func negotiate() throws -> MediaFormat {
        .video(VideoFormat(.gray8, width: 16, height: 16, frameRate: Rational(1000)))
    }
    func start() throws {
        last = options.count
        guard let part = context.part else { return }
        let begin = max(part.begin.nanoseconds / Self.frame, 0)
        let warm = max(Int64(part.warmUp.frames), part.warmUp.time.nanoseconds / Self.frame)
        next = max(Int(begin - warm), 0)
        if let end = part.end { last = min(last, Int(end.nanoseconds / Self.frame) + part.lookAhead) }
    }
    func produce(_ output: Output) throws -> SourceProgress {
        guard next < last, var frame = try output.makeFrame() else { return .ended }
        frame.pts = MediaTime(nanoseconds: Int64(next) * Self.frame)
        let value = UInt8(truncatingIfNeeded: next * next)
        frame.withMutablePlane(0) { plane in for y in 0..<plane.height { plane.row(y).update(repeating: value) } }
        next += 1
        try output.emit(frame)
        return .more
    }
}

/// Adds the values of the last frames.
final class SumOfLast: Filter {
    static let info = StageInfo(
        id: "sum-of-last", summary: "Adds.", input: .video(.gray8), output: .sameAsInput, access: .modify)
    struct Options: StageOptions {
        @Option(help: "Frames before.") var past = 5
        @Option(help: "What it says of them; -1 for never.") var says = 5
    }
    var options: Options
    private var values: [UInt8] = []
    init(options: Options, context: StageContext) { self.options = options }
    var demand: StageDemand {
        var demand = Self.declaredDemand
        demand.warmUp = options.says < 0 ? .never("remembers everything") : WarmUp(frames: options.says)
        return demand
    }
    func process(_ frame: inout Frame) throws -> Verdict {
        values.append(frame.withPlane(0) { $0.row(0)[0] })
        if values.count > options.past + 1 { values.removeFirst() }
        let sum = values.reduce(0, &+)
        frame.withMutablePlane(0) { plane in
            for y in 0..<plane.height { for x in 0..<plane.rowBytes { plane.row(y)[x] = sum } }
        }
        return .forward
    }
}

/// Notes times and values.
final class FilmSink: Sink {
    static let info = StageInfo(id: "film-sink", summary: "Notes.", input: .video(.gray8))
    struct Options: StageOptions {
        @Option(help: "Name of the list.") var log = ""
        @Option(help: "Takes parts.") var divisible = true
    }
    static let logs = Locked<[String: [String]]>([:])
    var options: Options
    init(options: Options, context: StageContext) { self.options = options }
    var demand: StageDemand {
        var demand = Self.declaredDemand
        demand.isDivisible = options.divisible
        return demand
    }
    func consume(_ input: consuming Sample) throws -> SinkVerdict {
        guard case .frame(let frame) = consume input else { return .dropped(.byStage) }
        let line = "\(frame.pts.nanoseconds) \(frame.withPlane(0) { $0.row(0)[0] })"
        Self.logs.withLock { $0[options.log, default: []].append(line) }
        return .delivered
    }
}

/// Parts of a timeline: what stages need beside them, what is dropped, what cannot be divided.
@Suite struct PartPlannerTests {
    private func sketch(_ log: String, past: Int = 5, says: Int = 5, delay: Int = 3, divisible: Bool = true) throws
        -> ChainSketch
    {
        var sketch = ChainSketch()
        try sketch.add(FilmSource.self, "film")
        try sketch.add(SumOfLast.self, "sum", options: #"{"past": \#(past), "says": \#(says)}"#)
        try sketch.add(LateWriter.self, "late", options: #"{"delay": \#(delay)}"#)
        try sketch.add(FilmSink.self, "sink", options: #"{"log": "\#(log)", "divisible": \#(divisible)}"#)
        return sketch
    }

    private func part(_ index: Int64, of length: Int64, isLast: Bool = false) -> TimelinePart {
        TimelinePart(
            begin: MediaTime(nanoseconds: index * length * FilmSource.frame),
            end: isLast ? nil : MediaTime(nanoseconds: (index + 1) * length * FilmSource.frame))
    }

    /// What all parts, each run by itself, give together.
    private func parts(_ name: String, says: Int = 5, delay: Int = 3) throws -> [String] {
        for index in 0..<4 as Range<Int64> {
            var sketch = try sketch(name, says: says, delay: delay)
            sketch.request.part = part(index, of: 10, isLast: index == 3)
            #expect(ChainTests.run(try Chain(sketch.request)).result.isSuccess)
        }
        return FilmSink.logs.withLock { $0[name] ?? [] }
    }

    @Test func givesTogetherWhatAWholeRunGives() throws {
        #expect(ChainTests.run(try Chain(sketch("whole").request)).result.isSuccess)
        let whole = FilmSink.logs.withLock { $0["whole"] ?? [] }
        #expect(whole.count == 40)
        #expect(try parts("parts") == whole)
        // The warm-up is what makes them equal: with one frame less, and no other stage's, they are not.
        #expect(try parts("exact", delay: 0) == whole)
        #expect(try parts("short", says: 4, delay: 0) != whole)
    }

    @Test func addsWhatStagesNeedAlongAPath() throws {
        var sketch = try sketch("plan")
        sketch.request.part = part(2, of: 10)
        let plan = try Chain.plan(sketch.request)
        // The filter that delays by 3 holds 3, and needs 3 frames more.
        #expect(plan.part?.warmUp == WarmUp(frames: 5 + 6) && plan.part?.lookAhead == 3)
        #expect(plan.stages.map(\.use) == ["film", "sum-of-last", "late-writer", "part-gate", "film-sink"])
        // The longest of two paths counts.
        try sketch.add(FilmSink.self, "other", options: #"{"log": "other"}"#, from: ["film"])
        #expect(try Chain.plan(sketch.request).part?.warmUp.frames == 11)
        #expect(try Chain.plan(sketch.request).stages.filter { $0.use == "part-gate" }.count == 2)
    }

    @Test func namesWhatCannotBeDivided() throws {
        func fault(_ sketch: ChainSketch) -> String {
            var sketch = sketch
            sketch.request.part = part(1, of: 10)
            do {
                _ = try Chain.plan(sketch.request)
                return "none"
            } catch { return "\(error)" }
        }
        #expect(
            fault(try sketch("never", says: -1)).contains(
                "a part of a file cannot be made by this chain: 'sum' remembers everything. Leave the stage out, or process the file as a whole, without --parts."
            ))
        #expect(fault(try sketch("sink", divisible: false)).contains("'sink' (film-sink) takes whole runs only"))
        var live = ChainSketch()
        try live.add(CountingSource.self, "src")
        try live.add(FilmSink.self, "sink", options: #"{"log": "live"}"#)
        #expect(fault(live).contains("'src' (counting-source) cannot begin in the middle"))
        // Whole runs are as they were.
        #expect(ChainTests.run(try Chain(live.request)).result.isSuccess)
        #expect(FilmSink.logs.withLock { $0["live"]?.count } == 100)
    }
}
