// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import FrameCore

/// What sources wait for to be planned, they wait for together.
@Suite(.serialized) struct BeginNegotiationTests {
    /// Notes the order of its calls.
    private final class SlowSource: Source {
        static let info = StageInfo(id: "slow-source", summary: "Notes its calls.", output: .video(.gray8))
        static let calls = Locked<[String]>([])
        /// A call that throws, by the id of its stage.
        static let broken = Locked<String?>(nil)

        let context: StageContext
        var options: NoOptions

        init(options: NoOptions, context: StageContext) { (self.options, self.context) = (options, context) }

        private func note(_ call: String) { Self.calls.withLock { $0.append("\(call) \(context.stageID)") } }

        func beginNegotiation() { note("begin") }

        func negotiate() throws -> MediaFormat {
            note("negotiate")
            if context.stageID == Self.broken.withLock({ $0 }) { throw FrameHostError(.unavailable, what: "gone") }
            return .video(VideoFormat(.gray8, width: 16, height: 16, frameRate: Rational(25)))
        }

        func produce(_ output: Output) -> SourceProgress { .ended }
    }

    @Test(arguments: [nil, "a"]) func allSourcesBeginBeforeTheFirstOneNegotiates(broken: String?) throws {
        SlowSource.calls.withLock { $0 = [] }
        SlowSource.broken.withLock { $0 = broken }
        var sketch = ChainSketch()
        for id in ["a", "b"] {
            try sketch.add(SlowSource.self, id, from: [])
            try sketch.add(RecordingSink.self, "end-\(id)", options: #"{"log": "slow-\#(id)"}"#, from: [id])
        }
        if broken == nil {
            _ = try Chain(sketch.request)
        } else {
            #expect(throws: FrameHostErrors.self) { try Chain(sketch.request) }
        }
        let calls = SlowSource.calls.withLock { $0 }
        #expect(calls == ["begin a", "begin b", "negotiate a", "negotiate b"])
    }
}
