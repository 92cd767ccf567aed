// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import FrameCore

/// A source that fills loans as a decoder does: each picture is a reference of the `keeps` that follow, whose content
/// it checks.
private final class Decoder: Source {
    static let info = StageInfo(id: "decoder", summary: "Lends.", output: .video(.gray8))

    struct Options: StageOptions {
        @Option(help: "Frames.") var count = 100
        @Option(help: "References.", range: 1...16) var keeps = 3
        @Option(help: "Buffers that may be lent.", range: 1...16) var floor = 4
    }

    var options: Options
    private var next = 0
    private var references: [(loan: Int, value: UInt8)] = []
    private var copied = 0

    init(options: Options, context: StageContext) { self.options = options }

    var demand: StageDemand {
        var demand = Self.declaredDemand
        demand.floor = options.floor
        return demand
    }

    func negotiate() throws -> MediaFormat {
        .video(VideoFormat(.gray8, width: 16, height: 16, frameRate: Rational(1000)))
    }

    func produce(_ output: Output) throws -> SourceProgress {
        guard next < options.count else { return .ended }
        let value = UInt8(truncatingIfNeeded: next)
        for reference in references {
            let found = output.lender!.plane(0, of: reference.loan).row(15)[15]
            guard found == reference.value else {
                throw FrameHostError(.broken, what: "a reference was written: \(found) for \(reference.value)")
            }
        }
        if references.count == options.keeps { output.lender!.takeBack(references.removeFirst().loan) }
        if let loan = output.lender!.lend() {
            fill(output.lender!.plane(0, of: loan), value)
            references.append((loan, value))
            try emit(output.lender!.share(loan), output)
        } else {
            guard var frame = try output.makeFrame() else { return .ended }
            frame.withMutablePlane(0) { fill($0, value) }
            copied += 1
            try emit(frame, output)
        }
        return .more
    }

    private func fill(_ plane: MutablePlane, _ value: UInt8) {
        for y in 0..<plane.height { plane.row(y).update(repeating: value) }
    }

    private func emit(_ frame: consuming Frame, _ output: Output) throws {
        frame.pts = MediaTime(nanoseconds: Int64(next) * 1_000_000)
        next += 1
        try output.emit(frame)
    }

    func stop() { references = [] }
}

@Suite struct LendingTests {
    @Test(arguments: [(3, 4), (1, 1), (4, 2), (16, 16)])
    func neverWritesWhatADecoderStillReads(keeps: Int, floor: Int) throws {
        var sketch = ChainSketch()
        try sketch.add(Decoder.self, "file", options: #"{"count": 500, "keeps": \#(keeps), "floor": \#(floor)}"#)
        try sketch.add(AddOne.self, "writer")
        try sketch.add(RecordingSink.self, "sink", options: #"{"log": "lending-\#(keeps)-\#(floor)", "keep": 2}"#)
        let chain = try Chain(sketch.request)
        #expect(
            chain.plan.notes == [
                "up to 1 copy per frame at writer: its input is shared with file, which may still read it"
            ])
        let (result, _) = ChainTests.run(chain)
        #expect(result.isSuccess, "\(result)")
        #expect(
            RecordingSink.log("lending-\(keeps)-\(floor)").entries
                == (0..<500).map { RecordingSink.Entry(sequence: $0, pixel: UInt8(truncatingIfNeeded: $0 + 1)) })
    }

    @Test func livesWithTheFewestBuffersThePlanAllows() throws {
        for floor in 1...4 {
            var sketch = ChainSketch()
            try sketch.add(Decoder.self, "file", options: #"{"count": 300, "keeps": 4, "floor": \#(floor)}"#)
            try sketch.add(
                RecordingSink.self, "sink", options: #"{"log": "lending-least-\#(floor)", "keep": 2}"#,
                link: LinkRequest(queue: 3))
            sketch.request.buffers = [0: floor + 1 + 2]
            let chain = try Chain(sketch.request)
            let (result, _) = ChainTests.run(chain)
            #expect(result.isSuccess, "\(result)")
            #expect(RecordingSink.log("lending-least-\(floor)").entries.count == 300)
        }
    }
}
