// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import FrameCore

/// Asks for more than it declares.
private final class Greedy: Filter {
    static let info = StageInfo(id: "greedy", summary: "Wants.", input: .anyVideo, output: .sameAsInput, hold: 1)
    struct Options: StageOptions {
        @Option(help: "Hold.", range: 0...9) var hold = 0
        @Option(help: "Delay.", range: 0...9) var delay = 0
        @Option(help: "Workers.", range: 0...9) var workers = 0
    }
    var options: Options
    init(options: Options, context: StageContext) { self.options = options }
    var demand: StageDemand {
        var demand = Self.declaredDemand
        demand.hold = options.hold
        demand.delay = options.delay
        demand.workers = options.workers
        return demand
    }
    func process(_ frame: inout Frame) throws -> Verdict { .forward }
}

/// Takes what nothing in these tests gives.
private final class NV12Only: Filter {
    static let info = StageInfo(
        id: "nv12-only", summary: "Is choosy.", input: .video(.nv12, .i420), output: .sameAsInput)
    typealias Options = NoOptions
    var options: NoOptions
    init(options: NoOptions, context: StageContext) { self.options = options }
    func negotiate(_ format: VideoFormat) throws {
        if format.pixelFormat != .nv12 {
            throw FrameHostError(.broken, what: "was asked although it does not take \(format)")
        }
    }
    func process(_ frame: inout Frame) throws -> Verdict { .forward }
}

/// Cannot be made, or not with this format.
private final class Refusing: Filter {
    static let info = StageInfo(id: "refusing", summary: "Refuses.", input: .anyVideo, output: .sameAsInput)
    struct Options: StageOptions { @Option(help: "When.") var early = false }
    var options: Options
    init(options: Options, context: StageContext) throws {
        self.options = options
        if options.early { throw FrameHostError(.invalidConfiguration, what: "has no model file", remedy: "Name one.") }
    }
    func negotiate(_ format: VideoFormat) throws {
        throw FrameHostError(
            .invalidConfiguration, what: "\(format) is too small", remedy: "Use at least 32x32.",
            cause: "first line\nsecond line")
    }
    func process(_ frame: inout Frame) throws -> Verdict { .forward }
}

/// Gives pictures or access units, as an option says.
private final class EitherSource: Source {
    static let info = StageInfo(
        id: "either-source", summary: "Gives either.", output: .video(.gray8),
        otherOutput: StageInfo.OtherOutput(where: "decode", is: .bool(false), .encoded(.h264)))
    struct Options: StageOptions { @Option(help: "Pictures.") var decode = true }
    var options: Options
    init(options: Options, context: StageContext) { self.options = options }
    func negotiate() throws -> MediaFormat { throw FrameHostError(.unavailable, what: "has no file") }
    func produce(_ output: Output) throws -> SourceProgress { .ended }
}

/// May give access units of several codecs, and knows which once it has looked.
private final class CodecSource: Source {
    static let info = StageInfo(
        id: "codec-source", summary: "Gives a codec.", output: .video(.gray8),
        otherOutput: StageInfo.OtherOutput(where: "decode", is: .bool(false), .encoded(.h264, .h265, .mjpeg)))
    struct Options: StageOptions {
        @Option(help: "Pictures.") var decode = true
        @Option(help: "The codec.") var codec = "h264"
    }
    var options: Options
    init(options: Options, context: StageContext) { self.options = options }
    func negotiate() throws -> MediaFormat {
        .encoded(
            EncodedFormat(codec: Codec(rawValue: options.codec), video: VideoFormat(.i420, width: 64, height: 64)))
    }
    func produce(_ output: Output) throws -> SourceProgress { .ended }
}

/// Turns pixel formats in name only.
final class NameConverter: Transform {
    static let info = StageInfo(
        id: "name-convert", summary: "Converts.", input: .anyVideo, output: .anyVideo, isConverter: true)
    struct Options: StageOptions { @Option(help: "Format.") var format = PixelFormat.i420 }
    var options: Options
    init(options: Options, context: StageContext) { self.options = options }
    func negotiate(_ input: MediaFormat) throws -> MediaFormat {
        var format = input.video!
        format.pixelFormat = options.format
        return .video(format)
    }
    func process(_ input: consuming Sample, _ output: Output) throws {
        guard case .frame(let frame) = consume input, let made = try output.makeFrame() else { return }
        made.copyProperties(from: frame)
        try output.emit(made)
    }
}

/// What ``ChainPlanner`` says of chains that cannot be, whole.
@Suite struct ErrorTextTests {
    private func faults(_ sketch: ChainSketch) -> String {
        do {
            _ = try Chain.plan(sketch.requestWithOpenEnds)
            return ""
        } catch {
            return "\(error)"
        }
    }

    private func faults(_ make: (inout ChainSketch) throws -> Void) rethrows -> String {
        var sketch = ChainSketch()
        try make(&sketch)
        return faults(sketch)
    }

    // MARK: What is joined to what

    @Test func aSourceTakesNoInput() throws {
        let text = try faults { chain in
            try chain.add(CountingSource.self, "a")
            try chain.add(CountingSource.self, "b", from: ["a"])
        }
        #expect(
            text
                == "test.json: stages[1].from: 'b' is a source (counting-source) and takes no input. Leave 'from' out."
        )
    }

    @Test func aSinkNeedsAnInput() throws {
        let text = try faults { try $0.add(RecordingSink.self, "file", from: []) }
        #expect(
            text
                == "test.json: stages[0]: 'file' (recording-sink) has no input. Put a source before it, or name one with 'from'."
        )
    }

    /// Which of the codecs it is, a source knows once it has looked: the stage behind it is not asked about another.
    @Test func aSinkTakesItsCodecsOnly() throws {
        func text(_ codec: String) throws -> String {
            try faults { chain in
                try chain.add(CodecSource.self, "clip", options: #"{ "decode": false, "codec": "\#(codec)" }"#)
                try chain.add(UnitSink.self, "file", from: ["clip"])
            }
        }
        #expect(try text("h264") == "")
        for (codec, name) in [("h265", "H.265"), ("mjpeg", "MJPEG")] {
            #expect(
                try text(codec)
                    == "test.json: stages[1].from: 'file' takes H.264, but 'clip' gives \(name). Leave 'decode' out at 'clip', and put an encoder between them."
            )
        }
    }

    @Test func aFilterTakesOneInput() throws {
        let text = try faults { chain in
            try chain.add(CountingSource.self, "a")
            try chain.add(CountingSource.self, "b")
            try chain.add(ProbeFilter.self, "c", from: ["a", "b"])
        }
        #expect(text == "test.json: stages[2].from: 'c' (probe) takes one input, but 2 are named. Name one stage.")
    }

    @Test func aJoinTakesSeveral() throws {
        let text = try faults { chain in
            try chain.add(CountingSource.self, "a")
            try chain.add(PairJoin.self, "pair", from: ["a"])
        }
        #expect(
            text
                == "test.json: stages[1].from: 'pair' (pair) joins several inputs, but only one is named. Name two or more: \"from\": [\"a\", \"b\"]."
        )
    }

    @Test func aSinkGivesNothingOn() throws {
        let text = try faults { chain in
            try chain.add(CountingSource.self, "a")
            try chain.add(RecordingSink.self, "file")
            try chain.add(ProbeFilter.self, "late")
        }
        #expect(
            text
                == "test.json: stages[2].from: 'file' (recording-sink) has no output. Name the stage whose output 'late' takes: \"from\": \"a\"."
        )
    }

    @Test func accessUnitsDoNotFitIntoAStageForVideo() throws {
        let text = try faults { chain in
            try chain.add(CountingSource.self, "a")
            try chain.add(UnitEncoder.self, "h264")
            try chain.add(AddOne.self, "writer")
        }
        #expect(
            text
                == "test.json: stages[2].from: 'writer' takes raw video (gray8), but 'h264' gives H.264. In 'from', name a stage that gives raw video."
        )
    }

    /// Known by the options alone, before any stage is made; a faulty option beside it hides nothing.
    @Test func accessUnitsByAnOptionDoNotFitIntoAStageForVideo() throws {
        let text = try faults { chain in
            try chain.add(EitherSource.self, "clip", options: #"{ "decode": false }"#)
            try chain.add(AddOne.self, "writer")
        }
        #expect(
            text
                == "test.json: stages[1].from: 'writer' takes raw video (gray8), but 'clip' gives H.264. Leave 'decode' out at 'clip'."
        )
    }

    @Test func whatASourceGivesByAnOptionFitsWhatTakesIt() throws {
        func text(_ options: String) throws -> String {
            try faults { chain in
                try chain.add(EitherSource.self, "clip", options: options)
                try chain.add(UnitSink.self, "file")
            }
        }
        let fitting = try text(#"{ "decode": false }"#)
        #expect(fitting.contains("has no file") && !fitting.contains("takes H.264"), "\(fitting)")
        #expect(
            try text(#"{ "decode": true }"#)
                == "test.json: stages[1].from: 'file' takes H.264, but 'clip' gives raw video. Put an encoder between them, or name one in 'from'."
        )
        let alone = try text(#"{ "decode": false, "speed": 2 }"#)
        #expect(alone.hasPrefix("test.json:1:20: stages[0].speed: no such option."), "\(alone)")
        #expect(!alone.contains("takes H.264"), "\(alone)")
    }

    @Test func videoDoesNotFitIntoAStageForAccessUnits() throws {
        let text = try faults { chain in
            try chain.add(CountingSource.self, "a")
            try chain.add(ProbeFilter.self, "p")
            try chain.add(UnitSink.self, "file")
        }
        #expect(
            text
                == "test.json: stages[2].from: 'file' takes H.264, but 'p' gives raw video. Put an encoder between them, or name one in 'from'."
        )
    }

    @Test func namesAllThatFeedEachOtherInACircle() throws {
        var sketch = ChainSketch()
        try sketch.add(CountingSource.self, "a")
        try sketch.add(PairJoin.self, "b", from: ["a"])
        try sketch.add(ProbeFilter.self, "c")
        try sketch.add(ProbeFilter.self, "d")
        try sketch.add(RecordingSink.self, "e")
        sketch.request.stages[1].from = [0, 3]
        #expect(
            faults(sketch)
                == "test.json: stages[1].from: 'b', 'c' and 'd' feed each other in a circle. In 'from' of 'b', 'c' or 'd', name a stage outside the circle."
        )
    }

    @Test func namesEachCircleOnItsOwn() throws {
        var sketch = ChainSketch()
        for id in ["a", "b", "c", "d", "e"] { try sketch.add(ProbeFilter.self, id, from: []) }
        for (index, from) in [1, 0, 3, 2, 2].enumerated() { sketch.request.stages[index].from = [from] }
        #expect(
            faults(sketch)
                == """
                test.json: stages[0].from: 'a' and 'b' feed each other in a circle. In 'from' of 'a' or 'b', name a stage outside the circle.
                test.json: stages[2].from: 'c' and 'd' feed each other in a circle. In 'from' of 'c' or 'd', name a stage outside the circle.
                """)
    }

    @Test func namesACircleOfTenThousandStagesOnce() throws {
        var sketch = ChainSketch()
        let type = StageType(ProbeFilter.self)
        for index in 0..<10_000 {
            sketch.request.stages.append(
                StageRequest(id: "f\(index)", type: type, from: [(index + 9999) % 10_000], fileIndex: index))
        }
        let text = faults(sketch)
        #expect(text.hasPrefix("test.json: stages[0].from: 'f0', 'f1', 'f2', "))
        #expect(!text.contains("\n"))
    }

    @Test func listsTheFaultsOfAllStagesAtOnce() throws {
        let text = try faults { chain in
            try chain.add(CountingSource.self, "a", options: #"{ "cuont": 1, "everyMs": -1 }"#)
            try chain.add(ProbeFilter.self, "p", options: #"{ "keep": "x" }"#)
            try chain.add(UnitSink.self, "file")
        }
        #expect(
            text
                == """
                test.json:1:3: stages[0].cuont: no such option. Did you mean 'count'?
                test.json:1:26: stages[0].everyMs: -1 must be from 0 to 600000. Use 0 or more, or leave the key out for 0.
                test.json:1:11: stages[1].keep: expected a whole number, found a string. Write only a number, without quotes and without a unit.
                test.json: stages[2].from: 'file' takes H.264, but 'p' gives raw video. Put an encoder between them, or name one in 'from'.
                """)
    }

    // MARK: Making and negotiating

    @Test func aStageThatCannotBeMadeSaysWhy() throws {
        let text = try faults { chain in
            try chain.add(CountingSource.self, "a")
            try chain.add(Refusing.self, "face", options: #"{ "early": true }"#)
        }
        #expect(text == "test.json: stages[1] 'face': has no model file. Name one.")
    }

    @Test func aStageThatDoesNotTakeTheFormatSaysWhyAndTheOnesBehindAreNotAsked() throws {
        let text = try faults { chain in
            try chain.add(CountingSource.self, "a")
            try chain.add(Refusing.self, "face")
            try chain.add(Refusing.self, "again")
        }
        #expect(
            text
                == "test.json: stages[1] 'face': gray8 16x16 1000 fps is too small. Use at least 32x32.\n  first line\n  second line"
        )
    }

    @Test func aMissingConverterIsNamedOnceAndNobodyElseIsBlamed() throws {
        let text = try faults { chain in
            try chain.add(CountingSource.self, "a")
            try chain.add(NV12Only.self, "choosy")
            try chain.add(ProbeFilter.self, "p")
            try chain.add(NV12Only.self, "other", from: ["a"])
            try chain.add(ProbeFilter.self, "q")
        }
        let remedy =
            "Put the plugin 'convert' beside the executable, or name its folder with --plugin-path."
        #expect(
            text
                == """
                test.json: stages[1].from: 'choosy' takes raw video (nv12, i420), but 'a' gives gray8, and no converter plugin was found. \(remedy)
                test.json: stages[3].from: 'other' takes raw video (nv12, i420), but 'a' gives gray8, and no converter plugin was found. \(remedy)
                """)
    }

    @Test func aConverterIsInsertedWhereOneIsFound() throws {
        var sketch = ChainSketch()
        sketch.request.converter = { StageType(NameConverter.self) }
        try sketch.add(CountingSource.self, "a")
        try sketch.add(NV12Only.self, "choosy")
        try sketch.add(ProbeFilter.self, "p")
        let plan = try Chain.plan(sketch.requestWithOpenEnds)
        #expect(plan.stages.map(\.id) == ["a", "choosy-convert", "choosy", "p"])
        #expect(plan.stages.map(\.isInserted) == [false, true, false, false])
        #expect(
            plan.links.map(\.format.description) == [
                "gray8 16x16 1000 fps", "nv12 16x16 1000 fps", "nv12 16x16 1000 fps",
            ])
    }

    @Test func aConverterThatCannotBeMadeIsAFaultOfItsOwn() throws {
        var sketch = ChainSketch()
        sketch.request.converter = { StageType(Refusing.self) }
        try sketch.add(CountingSource.self, "a")
        try sketch.add(NV12Only.self, "choosy")
        try sketch.add(ProbeFilter.self, "p")
        #expect(
            faults(sketch)
                == "test.json: stages[1].format: no such option. Leave 'format' out: the only option is 'early'.")
    }

    @Test func asksForNoMoreThanItsKindDeclares() throws {
        let text = try faults { chain in
            try chain.add(CountingSource.self, "a")
            try chain.add(Greedy.self, "g", options: #"{ "hold": 3, "delay": 2, "workers": 1 }"#)
        }
        #expect(
            text
                == """
                test.json: stages[1]: the 'hold' of 'g' would be 3, but its type greedy allows at most 1. Choose smaller values for its options, or ask the plugin's author to raise 'hold' in the StageInfo.
                test.json: stages[1]: the 'delay' of 'g' would be 2, but its type greedy allows at most 0. Choose smaller values for its options, or ask the plugin's author to raise 'delay' in the StageInfo.
                test.json: stages[1]: the 'workers' of 'g' would be 1, but its type greedy allows at most 0. Choose smaller values for its options, or ask the plugin's author to raise 'workers' in the StageInfo.
                test.json: stages[1]: the 'delay' of 'g' would be 2, but its type greedy keeps no frame back. Report this to the plugin's author: a filter that delays must adopt DelayingFilter.
                """)
    }

    // MARK: Links

    @Test func aForkNeedsQueues() throws {
        let text = try faults { chain in
            try chain.add(CountingSource.self, "a")
            try chain.add(RecordingSink.self, "file", from: ["a"], link: LinkRequest(queue: 0))
            try chain.add(RecordingSink.self, "preview", from: ["a"])
        }
        #expect(
            text
                == "test.json: stages[1].link.queue: \"queue\": 0 runs 'file' on the thread of 'a', which feeds several stages. Use 1 or more, or leave it out."
        )
    }

    @Test func aJoinNeedsQueues() throws {
        let text = try faults { chain in
            try chain.add(CountingSource.self, "a")
            try chain.add(CountingSource.self, "b")
            try chain.add(PairJoin.self, "pair", from: ["a", "b"], link: LinkRequest(queue: 0))
        }
        #expect(
            text
                == """
                test.json: stages[2].link.queue: "queue": 0 runs 'pair' on the thread of 'a', but a join waits for several stages. Use 1 or more, or leave it out.
                test.json: stages[2].link.queue: "queue": 0 runs 'pair' on the thread of 'b', but a join waits for several stages. Use 1 or more, or leave it out.
                """)
    }

    @Test(arguments: [DropPolicy.dropOldest, .dropNewest, .latest])
    func accessUnitsAreNotDroppedOneByOne(policy: DropPolicy) throws {
        let text = try faults { chain in
            try chain.add(CountingSource.self, "a")
            try chain.add(UnitEncoder.self, "h264")
            try chain.add(UnitSink.self, "file", link: LinkRequest(whenFull: policy))
        }
        #expect(
            text
                == "test.json: stages[2].link.whenFull: '\(policy.rawValue)' would leave 'file' with access units that cannot be decoded. Use \"wait\" or \"dropToKeyframe\"."
        )
    }

    @Test func picturesAreNotDroppedToAKeyframe() throws {
        let text = try faults { chain in
            try chain.add(CountingSource.self, "a")
            try chain.add(RecordingSink.self, "file", link: LinkRequest(whenFull: .dropToKeyframe))
        }
        #expect(
            text
                == "test.json: stages[1].link.whenFull: 'dropToKeyframe' is for access units of pictures, and 'file' takes raw video. Use \"wait\", \"dropOldest\", \"dropNewest\" or \"latest\"."
        )
    }

    // MARK: Budgets

    @Test func aPoolThatIsTooSmallIsRefused() throws {
        let text = try faults { chain in
            try chain.add(CountingSource.self, "cam", options: #"{ "floor": 2 }"#)
            try chain.add(ProbeFilter.self, "p", options: #"{ "keep": 3 }"#)
            try chain.add(RecordingSink.self, "file")
            chain.request.buffers[0] = 5
        }
        #expect(
            text
                == "test.json: buffers.cam: must be 6 or more, but is 5: with fewer buffers the chain can deadlock. Use 6 or more, or leave it out."
        )
    }

    @Test func aPoolThatIsTooSmallForAJoinIsRefused() throws {
        let text = try faults { chain in
            try chain.add(CountingSource.self, "src")
            try chain.add(ProbeFilter.self, "p", from: ["src"])
            try chain.add(PairJoin.self, "pair", from: ["p", "src"])
            try chain.add(RecordingSink.self, "file")
            chain.request.buffers[0] = 9
        }
        #expect(
            text
                == "test.json: buffers.src: must be 10 or more, but is 9: with fewer buffers the chain can deadlock. Use 10 or more, give its links shorter queues, or leave it out."
        )
    }

    @Test func aQueueThatIsTooShortForAJoinIsRefused() throws {
        let text = try faults { chain in
            try chain.add(CountingSource.self, "src")
            try chain.add(CopyTransform.self, "late", options: #"{ "delay": 6 }"#, from: ["src"])
            try chain.add(PairJoin.self, "pair", from: ["late", "src"], link: LinkRequest(queue: 2))
        }
        #expect(
            text
                == "test.json: stages[2].link.queue: must be 6 or more, but is 2: the other path from 'src' to 'pair' delays so much that 6 items wait here. Use 6 or more, or leave it out."
        )
    }

    @Test(arguments: [
        (DropPolicy.latest, "Use \"wait\", or"), (.dropNewest, "Use \"wait\" or \"dropOldest\", or"),
    ])
    func aDropBeforeADelayOnTheWayToAJoinIsRefused(policy: DropPolicy, remedy: String) throws {
        let text = try faults { chain in
            try chain.add(CountingSource.self, "src")
            try chain.add(
                CopyTransform.self, "late", options: #"{ "delay": 3 }"#, from: ["src"],
                link: LinkRequest(whenFull: policy))
            try chain.add(PairJoin.self, "pair", from: ["late", "src"])
        }
        #expect(
            text
                == "test.json: stages[1].link.whenFull: would drop items before 'late' on the path from 'src' to 'pair', where a stage delays its output: 'pair' would wait for the dropped items. \(remedy) drop items only after the stage that delays."
        )
    }

    // MARK: The error itself

    @Test func isWrittenAsPlaceWhatAndRemedy() {
        let bare = FrameHostError(.callFailed, what: "it broke")
        #expect(bare.description == "it broke.")
        #expect(
            FrameHostError(.callFailed, place: "cam", what: "really?", remedy: "Look.").description
                == "cam: really? Look.")
        #expect(bare.within("cam").within("chain").description == "chain: cam: it broke.")
        struct Foreign: Error, CustomStringConvertible { var description: String { "foreign words" } }
        #expect(
            FrameHostError.wrap(Foreign(), place: "cam").description.replacing(/'[^']*\.Foreign'/, with: "'Foreign'")
                == "cam: an error of type 'Foreign' was thrown: foreign words. If this says too little, ask the plugin's author to throw a FrameHostError, which says what to do."
        )
        #expect(FrameHostError.wrap(bare) == bare)
        #expect(FrameHostErrors([bare, bare.within("b")]).description == "it broke.\nb: it broke.")
    }

    @Test func listsWords() {
        #expect(
            [[], ["a"], ["a", "b"], ["a", "b", "c"]].map { quotedList($0, "or") } == [
                "nothing", "'a'", "'a' or 'b'", "'a', 'b' or 'c'",
            ])
    }
}
