// SPDX-License-Identifier: Apache-2.0

import Glibc
import Testing

@testable import FrameCore

/// What becomes of each difference between the chain that runs and the one that is asked for, told frame by frame from
/// the pixels that reach the sink.
@Suite struct ReloadTableTests {
    /// A difference, and what is to become of it.
    struct Row: Sendable, CustomTestStringConvertible {
        var name: String
        var next: @Sendable (_ log: String) throws -> ChainSketch
        /// What the answer names: `"replaced"` and the stages.
        var said: [String: [String]] = [:]
        /// The pixel of the source's picture `number`, in every frame before the one that the answer tells.
        var before: @Sendable (Int) -> Int = { $0 * 3 + 1 }
        /// In that frame and every later one.
        var after: @Sendable (Int) -> Int = { $0 * 3 + 1 }
        /// How the fault begins where nothing may change.
        var fault: String?
        var testDescription: String { name }
    }

    /// The source's pictures, times three, and one more.
    private static func chain(
        _ log: String, source: String = #"{"count": 1000000, "everyMs": 1}"#,
        _ filters: [(id: String, options: String)] = [("times", #"{"times": 3}"#), ("plus", #"{"plus": 1}"#)]
    ) throws -> ChainSketch {
        var sketch = ChainSketch()
        sketch.request.spare = 4
        try sketch.add(CountingSource.self, "src", options: source)
        for filter in filters { try sketch.add(Arithmetic.self, filter.id, options: filter.options) }
        try sketch.add(RecordingSink.self, "file", options: #"{"log": "\#(log)"}"#)
        return sketch
    }

    static let rows: [Row] = [
        Row(name: "nothing", next: { try chain($0) }),
        Row(
            name: "a live option",
            next: { try chain($0, [("times", #"{"times": 3}"#), ("plus", #"{"plus": 9}"#)]) },
            said: ["set": ["plus"]], after: { $0 * 3 + 9 }),
        Row(
            name: "a live option that is left out",
            next: { try chain($0, [("times", #"{"times": 3}"#), ("plus", "{}")]) },
            said: ["set": ["plus"]], after: { $0 * 3 }),
        Row(
            name: "an option that is not live",
            next: { try chain($0, [("times", #"{"times": 5}"#), ("plus", #"{"plus": 1}"#)]) },
            said: ["replaced": ["times"]], after: { $0 * 5 + 1 }),
        Row(
            name: "options of two stages, one of them live",
            next: { try chain($0, [("times", #"{"times": 5}"#), ("plus", #"{"plus": 9}"#)]) },
            said: ["replaced": ["times"], "set": ["plus"]], after: { $0 * 5 + 9 }),
        Row(
            name: "a stage added in the middle",
            next: {
                try chain($0, [("times", #"{"times": 3}"#), ("two", #"{"plus": 2}"#), ("plus", #"{"plus": 1}"#)])
            },
            said: ["attached": ["two"]], after: { $0 * 3 + 3 }),
        Row(
            name: "a stage removed from the middle", next: { try chain($0, [("plus", #"{"plus": 1}"#)]) },
            said: ["detached": ["times"]], after: { $0 + 1 }),
        Row(
            name: "a stage in another's place",
            next: { try chain($0, [("times", #"{"times": 3}"#), ("seven", #"{"plus": 7}"#)]) },
            said: ["attached": ["seven"], "detached": ["plus"]], after: { $0 * 3 + 7 }),
        Row(
            name: "another plugin under the same id",
            next: { log in
                var sketch = try chain(log, [("times", #"{"times": 3}"#)])
                let sink = sketch.request.stages.removeLast()
                try sketch.add(AddTwo.self, "plus")
                try sketch.add(RecordingSink.self, sink.id, options: #"{"log": "\#(log)"}"#)
                return sketch
            }, said: ["replaced": ["plus"]], after: { $0 * 3 + 2 }),
        Row(
            name: "two stages that change places",
            next: { try chain($0, [("plus", #"{"plus": 1}"#), ("times", #"{"times": 3}"#)]) },
            after: { ($0 + 1) * 3 }),
        Row(
            name: "a branch added",
            next: { log in
                var sketch = try chain(log)
                try sketch.add(RecordingSink.self, "late", options: #"{"log": "\#(log)-late"}"#, from: ["times"])
                return sketch
            }, said: ["attached": ["late"]]),
        Row(
            name: "options of the sink",
            next: { log in try chain(log).setting("file", #"{"log": "\#(log)", "keep": 1}"#) },
            said: ["replaced": ["file"]]),
        Row(
            name: "another option of the source", next: { try chain($0, source: #"{"count": 1000000, "everyMs": 2}"#) },
            said: ["replaced": ["src"]]),
        Row(
            name: "a source that becomes live",
            next: { try chain($0, source: #"{"count": 1000000, "everyMs": 1, "live": true}"#) },
            fault: "test.json: stages[0]: needs a restart: 'src' is a source that is not live"),
        Row(
            name: "an option out of its range",
            next: { try chain($0, [("times", #"{"times": 300}"#), ("plus", #"{"plus": 9}"#)]) },
            fault: "test.json:1:11: stages[1].times: 300 must be from 0 to 100."),
        Row(
            name: "an option that is none",
            next: { try chain($0, [("times", #"{"times": 3, "tims": 4}"#), ("plus", #"{"plus": 9}"#)]) },
            fault: "test.json:1:14: stages[1].tims: no such option."),
        Row(
            name: "a new sink that does not start",
            next: { log in
                var sketch = try chain(log, [("times", #"{"times": 5}"#), ("plus", #"{"plus": 9}"#)])
                try sketch.add(UnstartableSink.self, "bad", from: ["times"])
                return sketch
            }, fault: "bad ("),
    ]

    /// One in a row on one thread is exchanged between two frames; across a queue frames of both sizes would meet.
    @Test(arguments: [false, true]) func anotherSizeIsForOneThreadAlone(isQueued: Bool) throws {
        func chain(_ side: Int, _ keep: Int) throws -> ChainSketch {
            var sketch = ChainSketch()
            try sketch.add(
                CountingSource.self, "src", options: #"{"count": 1000000, "everyMs": 1, "side": \#(side)}"#)
            try sketch.add(
                RecordingSink.self, "file", options: #"{"log": "side-\#(isQueued)", "keep": \#(keep)}"#,
                link: LinkRequest(queue: isQueued ? 2 : 0))
            return sketch
        }
        let driver = try RunningChainDriver(try chain(16, 0))
        driver.waitForFrames(20)
        let answer = driver.change(to: try chain(32, 1))
        #expect(answer.isOK == !isQueued)
        if isQueued {
            #expect(
                answer.error
                    == "test.json: stages[0]: needs a restart: 'src' would give gray8 32x32 1000 fps instead of gray8 16x16 1000 fps, and the change affects several threads. Restart the chain to make this change (if it came from a command, first write it into the chain file), or leave it out."
            )
        }
        driver.waitForFrames(driver.chain.progress.captured + 20)
        let result = driver.finish()
        #expect(result.isSuccess, "\(result)")
    }

    @Test(arguments: rows) func eachDifferenceTakesEffectAtTheFrameThatIsTold(row: Row) throws {
        let log = "reload \(row.name)"
        let driver = try RunningChainDriver(try Self.chain(log))
        driver.waitForFrames(20)
        let answer = driver.change(to: try row.next(log))
        #expect(answer.isOK == (row.fault == nil), "\(answer.error)")
        if let fault = row.fault { #expect(answer.error.hasPrefix(fault), "\(answer.error)") }
        for key in ["attached", "detached", "replaced", "set"] {
            let stages = answer.details[key]?.asArray?.compactMap(\.asString) ?? []
            #expect(stages == row.said[key] ?? [], "\(key)")
        }
        driver.waitForFrames(driver.chain.progress.captured + 50)
        let result = driver.finish()
        #expect(result.isSuccess, "\(result)")
        let frame = row.fault == nil ? answer.frame : .max
        // The source's own count, which begins anew with a new source.
        let first = row.said["replaced"] == ["src"] ? Int(frame) : 0
        let entries = RecordingSink.log(log).entries
        #expect(entries.map(\.sequence) == (0..<UInt64(entries.count)).map { $0 }, "every frame, once")
        let wrong = entries.first { entry in
            let number = Int(entry.sequence)
            let value = entry.sequence < frame ? row.before(number) : row.after(number - first)
            return entry.pixel != UInt8(truncatingIfNeeded: value)
        }
        #expect(wrong == nil, "the answer says frame \(frame)")
        #expect(entries.count > 60 && (frame == .max || UInt64(entries.count) > frame), "\(entries.count) frames")
    }
}

/// Each pixel times `times`, and `plus` more.
private final class Arithmetic: Filter {
    static let info = StageInfo(
        id: "arithmetic", summary: "Calculates.", input: .video(.gray8), output: .sameAsInput, access: .modify)

    struct Options: StageOptions {
        @Option(help: "Factor.", range: 0...100) var times = 1
        @Option(help: "Summand.", range: 0...100, live: true) var plus = 0
    }

    var options: Options
    init(options: Options, context: StageContext) { self.options = options }

    func process(_ frame: inout Frame) throws -> Verdict {
        let (times, plus) = (UInt8(options.times), UInt8(options.plus))
        frame.withMutablePlane(0) { plane in
            for y in 0..<plane.height {
                for x in 0..<plane.rowBytes { plane.row(y)[x] = plane.row(y)[x] &* times &+ plus }
            }
        }
        return .forward
    }
}

private final class AddTwo: Filter {
    static let info = StageInfo(
        id: "add-two", summary: "Adds two.", input: .video(.gray8), output: .sameAsInput, access: .modify)
    typealias Options = NoOptions
    var options: NoOptions
    init(options: NoOptions, context: StageContext) { self.options = options }

    func process(_ frame: inout Frame) throws -> Verdict {
        frame.withMutablePlane(0) { plane in
            for y in 0..<plane.height { for x in 0..<plane.rowBytes { plane.row(y)[x] &+= 2 } }
        }
        return .forward
    }
}
