// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import FrameCore

/// Gives access units whose keyframes are where they are, or where somebody asks for them.
private final class UnitSource: Source {
    static let info = StageInfo(id: "unit-source", summary: "Gives units.", output: .encoded(.h264))
    struct Options: StageOptions { @Option(help: "Makes keyframes.") var makes = false }
    var options: Options
    init(options: Options, context: StageContext) { self.options = options }
    var demand: StageDemand {
        var demand = Self.declaredDemand
        demand.makesKeyframes = options.makes
        return demand
    }
    func negotiate() throws -> MediaFormat {
        .encoded(EncodedFormat(codec: .h264, video: VideoFormat(.i420, width: 64, height: 64)))
    }
    func produce(_ output: Output) throws -> SourceProgress { .ended }
}

/// Who is asked for a keyframe.
@Suite struct KeyframeRequestTests {
    /// The stages of a chain of a source and a sink.
    private func stages(_ add: (inout ChainSketch) throws -> Void) throws -> [PlannedStage] {
        var sketch = ChainSketch()
        try add(&sketch)
        try sketch.add(UnitSink.self, "sink")
        return try ChainPlanner(sketch.request, clock: ManualClock()).plan().stages
    }

    @Test func asksNobodyBehindASourceThatMakesNone() throws {
        let file = try stages { try $0.add(UnitSource.self, "file") }
        #expect(file.last?.context.keyframeRequest == nil)
    }

    @Test func asksASourceThatMakesThemAndAnyEncoder() throws {
        let camera = try stages { try $0.add(UnitSource.self, "camera", options: #"{ "makes": true }"#) }
        let encoder = try stages {
            try $0.add(CountingSource.self, "frames")
            try $0.add(UnitEncoder.self, "h264")
        }
        for stages in [camera, encoder] {
            let request = try #require(stages.last?.context.keyframeRequest)
            request.raise()
            #expect(stages.dropLast().last?.context.ownKeyframeRequest.take() == true)
        }
    }
}
