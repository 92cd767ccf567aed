// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// Mirrors video left to right, in place.
///
/// Takes and gives I420 or NV12. Size, PTS, metadata and sequence number pass through unchanged.
public final class Mirror: Filter {
    public static let info = StageInfo(
        id: "mirror", summary: "Mirrors video left to right.", input: .video(.i420, .nv12), output: .sameAsInput,
        access: .modify)

    public struct Options: StageOptions {
        @Option(help: "Mirror brightness only and leave colour in place.", live: true)
        public var lumaOnly = false

        public init() {}
    }

    public var options: Options
    private var isInterleaved = false

    /// [control thread] Opens nothing; options arrive checked.
    public init(options: Options, context: StageContext) { self.options = options }

    /// [control thread] NV12's second plane holds pairs, which stay pairs.
    public func negotiate(_ format: VideoFormat) { isInterleaved = format.pixelFormat == .nv12 }

    /// [stage thread] One frame in, the same frame out. Does not block or allocate.
    public func process(_ frame: inout Frame) -> Verdict {
        for index in 0..<(options.lumaOnly ? 1 : frame.planeCount) {
            let isPairs = isInterleaved && index == 1
            frame.withMutablePlane(index) { plane in
                for y in 0..<plane.height {
                    plane.withRow(y) { row in
                        if isPairs { row.mirrorPairs() } else { row.mirror() }
                    }
                }
            }
        }
        return .forward
    }
}
