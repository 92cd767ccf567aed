// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// Darkens the picture.
///
/// Takes and gives I420, NV12 or GRAY8; works on the luma plane in place. Size, PTS and metadata pass
/// through unchanged.
public final class EarlierFilter: Filter {
    public static let info = StageInfo(
        id: "earlier-filter", summary: "Darkens the picture.",
        input: .video(.i420, .nv12, .gray8), output: .sameAsInput, access: .modify)

    public struct Options: StageOptions {
        @Option(help: "How much brightness is taken away: 0 none, 1 all.", range: 0...1, live: true)
        public var strength = 0.5

        public init() {}
    }

    public var options: Options

    /// [control thread] Opens nothing; options arrive checked.
    public init(options: Options, context: StageContext) { self.options = options }

    /// [stage thread] One frame in, the same frame out. Does not block or allocate.
    public func process(_ frame: inout Frame) throws -> Verdict {
        let factor = Int((1 - options.strength) * 256)
        let black = frame.format.color.range == .full ? 0 : 16
        frame.withMutablePlane(0) { luma in
            for y in 0..<luma.height {
                luma.withRow(y) { row in
                    for x in row.indices { row[x] = UInt8(black + (max(Int(row[x]), black) - black) * factor / 256) }
                }
            }
        }
        return .forward
    }
}

/// The one symbol the host looks for.
@c(framehost_plugin_v1)
public func pluginEntry() -> OpaquePointer { PluginEntry.export(EarlierFilter.self) }
