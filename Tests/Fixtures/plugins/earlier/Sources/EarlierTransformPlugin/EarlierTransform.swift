// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// Shows what has changed since an earlier frame: black where nothing has.
///
/// Takes and gives GRAY8. Keeps the frames in between, at most 30; size, PTS and metadata pass through
/// unchanged.
public final class EarlierTransform: Transform {
    public static let info = StageInfo(
        id: "earlier-transform", summary: "Shows what has changed since an earlier frame.",
        input: .video(.gray8), output: .video(.gray8), hold: 30)

    public struct Options: StageOptions {
        @Option(help: "Compares with the frame this many frames earlier.", range: 1...30) public var frames = 1

        public init() {}
    }

    public var options: Options
    private var last = FrameRing(capacity: 0)

    /// [control thread] Opens nothing; options arrive checked.
    public init(options: Options, context: StageContext) { self.options = options }

    /// Keeps `frames` frames, often fewer than `info` declares; the plan makes that many more buffers.
    public var demand: StageDemand {
        var demand = Self.declaredDemand
        demand.hold = options.frames
        return demand
    }

    /// [control thread] The pictures that go out are like those that come in.
    public func negotiate(_ input: MediaFormat) -> MediaFormat { input }

    /// [control thread] Makes room.
    public func start() { last = FrameRing(capacity: options.frames) }

    /// [stage thread] One frame in, one out. Waits only for a free buffer; does not allocate.
    public func process(_ input: consuming Sample, _ output: Output) throws {
        guard case .frame(let frame) = consume input else { return output.drop(.byStage) }
        guard var result = try output.makeFrame() else { return }
        // Nil: not enough frames have come yet.
        let found: Void? = last.withFrame(age: options.frames - 1) { earlier in
            result.withMutablePlane(0) { target in
                frame.withPlane(0) { now in
                    earlier.withPlane(0) { before in
                        for y in 0..<target.height {
                            let (row, a, b) = (target.row(y), now.row(y), before.row(y))
                            for x in row.indices { row[x] = max(a[x], b[x]) - min(a[x], b[x]) }
                        }
                    }
                }
            }
        }
        if found == nil {
            result.withMutablePlane(0) { target in
                for y in 0..<target.height { target.row(y).update(repeating: 0) }
            }
        }
        result.copyProperties(from: frame)
        last.append(frame)
        try output.emit(result)
    }

    /// [stage thread] Lets go of all frames.
    public func stop() { last.removeAll() }
}

/// The one symbol the host looks for.
@c(framehost_plugin_v1)
public func pluginEntry() -> OpaquePointer { PluginEntry.export(EarlierTransform.self) }
