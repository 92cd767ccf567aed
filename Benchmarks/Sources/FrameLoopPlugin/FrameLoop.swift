// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// Gives the same eight frames round and round without touching or copying them: what peer-crop.py feeds every filter
/// with.
final class FrameLoop: Source {
    static let info = StageInfo(
        id: "frame-loop", summary: "Gives eight frames round and round.", output: .video(.i420, .nv12, .bgra))
    static let frameCount = 8

    struct Options: StageOptions {
        @Option(help: "Width and height.") var size = PictureSize(1920, 1080)
        @Option(help: "i420, nv12 or bgra.") var format = PixelFormat.i420
        @Option(help: "Ends after so many.") var frames = 300
    }

    var options: Options
    private var loans: [Int] = []
    private var given = 0

    init(options: Options, context: StageContext) { self.options = options }

    var demand: StageDemand {
        var demand = Self.declaredDemand
        demand.floor = Self.frameCount
        return demand
    }

    func negotiate() -> MediaFormat {
        .video(
            VideoFormat(
                options.format, width: options.size.width, height: options.size.height, frameRate: Rational(30),
                timeBase: TimeBase(1, 30)))
    }

    /// [stage thread] Paints the frames at the first call.
    func produce(_ output: Output) throws -> SourceProgress {
        guard given < options.frames, let lender = output.lender else { return .ended }
        while loans.count < Self.frameCount, let loan = lender.lend() {
            paint(lender, loan)
            loans.append(loan)
        }
        let frame = lender.share(loans[given % loans.count])
        frame.pts = TimeBase(1, 30).time(ofTicks: Int64(given))
        given += 1
        try output.emit(frame)
        return .more
    }

    private func paint(_ lender: BufferLender, _ loan: Int) {
        for index in 0..<options.format.planeCount {
            let plane = lender.plane(index, of: loan)
            for y in 0..<plane.height {
                let row = plane.row(y)
                for x in row.indices {
                    row[x] = UInt8(truncatingIfNeeded: x &* 3 &+ y &* 5 &+ (x &* y >> 7) &+ loan &* 31)
                }
            }
        }
    }
}

/// The one symbol the host looks for.
@c(framehost_plugin_v1)
public func pluginEntry() -> OpaquePointer { PluginEntry.export(FrameLoop.self) }
