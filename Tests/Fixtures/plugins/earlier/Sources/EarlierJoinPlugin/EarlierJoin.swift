// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// Mixes two pictures of one size.
///
/// Takes and gives GRAY8. Metadata is that of the first input, the time that of the one that leads.
public final class EarlierJoin: Join {
    public static let info = StageInfo(
        id: "earlier-join", summary: "Mixes two pictures.", input: .video(.gray8), output: .video(.gray8))

    public struct Options: StageOptions {
        @Option(help: "How much of the second picture: 0 only the first, 1 only the second.", range: 0...1, live: true)
        public var share = 0.5

        public init() {}
    }

    public var options: Options

    /// [control thread] Opens nothing; options arrive checked.
    public init(options: Options, context: StageContext) { self.options = options }

    /// [control thread] In the order of "from".
    public func negotiate(_ inputs: [MediaFormat]) throws -> MediaFormat {
        guard inputs.count == 2, let first = inputs[0].video, let second = inputs[1].video else {
            throw FrameHostError(
                .invalidConfiguration, what: "this stage needs two inputs, but has \(inputs.count)",
                remedy: "Name two stages: \"from\": [\"a\", \"b\"].")
        }
        guard first.width == second.width, first.height == second.height else {
            throw FrameHostError(
                .invalidConfiguration,
                what:
                    "the pictures must have the same size, but are \(first.width)x\(first.height) and \(second.width)x\(second.height)",
                remedy:
                    "Put a 'crop-orient' with \"size\": \"\(first.width)x\(first.height)\" between the second input and this stage."
            )
        }
        return .video(first)
    }

    /// [stage thread] The frames that belong together, one of each input. Does not allocate.
    public func merge(_ inputs: JoinInputs, _ output: Output) throws {
        // An input has no frame for this time: it was dropped on its way, or none is near enough.
        guard case .frame(let first) = inputs.take(0), case .frame(let second) = inputs.take(1) else {
            return output.drop(.byStage)
        }
        guard var result = try output.makeFrame() else { return }
        let share = Int(options.share * 256)
        result.withMutablePlane(0) { target in
            first.withPlane(0) { a in
                second.withPlane(0) { b in
                    for y in 0..<target.height {
                        let (row, a, b) = (target.row(y), a.row(y), b.row(y))
                        for x in row.indices { row[x] = UInt8((Int(a[x]) * (256 - share) + Int(b[x]) * share) / 256) }
                    }
                }
            }
        }
        result.copyProperties(from: first)
        result.pts = inputs.time
        try output.emit(result)
    }
}

/// The one symbol the host looks for.
@c(framehost_plugin_v1)
public func pluginEntry() -> OpaquePointer { PluginEntry.export(EarlierJoin.self) }
