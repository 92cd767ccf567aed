// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// Measures how bright the pictures are, and says so at the end.
///
/// Takes GRAY8, I420 and NV12; reads the luma plane.
public final class EarlierSink: Sink {
    public static let info = StageInfo(
        id: "earlier-sink", summary: "Measures how bright the pictures are.", input: .video(.gray8, .i420, .nv12),
        events: [
            EventDeclaration(
                "dark", "A picture is darker than 'darkerThan'.", [.number("mean", "Its mean, 0...255.")]),
            EventDeclaration(
                "brightness", "At the end: how bright the pictures were.",
                [.number("frames", "How many."), .number("mean", "Their mean, 0...255.")]),
        ])

    public struct Options: StageOptions {
        @Option(help: "Posts an event for each picture darker than this.", range: 0...255, live: true) public
            var darkerThan = 0

        public init() {}
    }

    public var options: Options
    private let context: StageContext
    private var frames = 0
    private var sum = 0.0

    /// [control thread] Opens nothing; options arrive checked.
    public init(options: Options, context: StageContext) {
        self.options = options
        self.context = context
    }

    /// [stage thread] Takes one frame for good. Does not block, and allocates only for an event.
    public func consume(_ input: consuming Sample) throws -> SinkVerdict {
        guard case .frame(let frame) = consume input else { return .dropped(.byStage) }
        let mean = frame.withPlane(0) { luma in
            var sum = 0
            for y in 0..<luma.height { for sample in luma.row(y) { sum += Int(sample) } }
            return Double(sum) / Double(luma.height * luma.rowBytes)
        }
        frames += 1
        sum += mean
        if mean < Double(options.darkerThan) {
            context.post("dark", text: "The picture is dark.", details: ["mean": .number(mean)])
        }
        return .delivered
    }

    /// [stage thread] Runs also when the run failed; a second call says nothing.
    public func stop() {
        guard frames > 0 else { return }
        let mean = sum / Double(frames)
        context.post(
            "brightness", text: "Mean brightness: \(Int(mean.rounded())) of 255. Pictures: \(frames).",
            details: ["frames": .number(frames), "mean": .number(mean)])
        frames = 0
    }
}

/// The one symbol the host looks for.
@c(framehost_plugin_v1)
public func pluginEntry() -> OpaquePointer { PluginEntry.export(EarlierSink.self) }
