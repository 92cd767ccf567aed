// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// Gives grey pictures that grow lighter, from black to white.
///
/// GRAY8, as fast as they are taken.
public final class EarlierSource: Source {
    public static let info = StageInfo(
        id: "earlier-source", summary: "Gives grey pictures that grow lighter.", output: .video(.gray8))

    public struct Options: StageOptions {
        @Option(help: "Size of the pictures.", unit: "px") public var size = PictureSize(640, 360)
        @Option(help: "Frames per second.") public var rate = FrameRate(30)
        @Option(help: "Ends after this many frames.", range: 2...1_000_000) public var frames = 90

        public init() {}
    }

    public var options: Options
    private var count = 0

    /// [control thread] Opens nothing; options arrive checked.
    public init(options: Options, context: StageContext) { self.options = options }

    /// How many frames will come, for the progress line.
    public var demand: StageDemand {
        var demand = Self.declaredDemand
        demand.expectedItems = options.frames
        return demand
    }

    /// [control thread]
    public func negotiate() -> MediaFormat {
        .video(
            VideoFormat(
                .gray8, width: options.size.width, height: options.size.height, frameRate: options.rate.rational))
    }

    /// [stage thread] One frame a call. Waits only for a free buffer.
    public func produce(_ output: Output) throws -> SourceProgress {
        guard count < options.frames else { return .ended }
        // Nil: no buffer is free, in a live source only.
        guard var frame = try output.makeFrame() else { return .more }
        let grey = UInt8(count * 255 / (options.frames - 1))
        frame.withMutablePlane(0) { plane in
            for y in 0..<plane.height { plane.row(y).update(repeating: grey) }
        }
        frame.pts = MediaTime(seconds: Double(count) / options.rate.rational.value)
        count += 1
        try output.emit(frame)
        return .more
    }
}

/// The one symbol the host looks for.
@c(framehost_plugin_v1)
public func pluginEntry() -> OpaquePointer { PluginEntry.export(EarlierSource.self) }
