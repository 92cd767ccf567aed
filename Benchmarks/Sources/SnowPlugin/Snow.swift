// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// Puts snow (luma 16 to 235) into the lower right corner, a quarter of the width and height, as GStreamer's SMPTE
/// picture has it: without it the encoder would have less to do than the peers' in peer-latency.py.
final class Snow: Filter {
    static let info = StageInfo(
        id: "snow", summary: "Puts snow into a corner.", input: .video(.i420), output: .sameAsInput, access: .modify)

    struct Options: StageOptions {}

    var options: Options
    private var state: UInt64 = 0x9e37_79b9_7f4a_7c15

    init(options: Options, context: StageContext) { self.options = options }

    /// [stage thread]
    func process(_ frame: inout Frame) -> Verdict {
        frame.withMutablePlane(0) { luma in
            for y in luma.height * 3 / 4..<luma.height {
                let row = luma.row(y)
                for x in row.count * 3 / 4..<row.count {
                    state ^= state << 13
                    state ^= state >> 7
                    state ^= state << 17
                    row[x] = UInt8(16 + ((state & 255) * 220) >> 8)
                }
            }
        }
        for plane in 1...2 {
            frame.withMutablePlane(plane) { chroma in
                for y in chroma.height * 3 / 4..<chroma.height {
                    let row = chroma.row(y)
                    for x in row.count * 3 / 4..<row.count { row[x] = 128 }
                }
            }
        }
        return .forward
    }
}

/// The one symbol the host looks for.
@c(framehost_plugin_v1)
public func pluginEntry() -> OpaquePointer { PluginEntry.export(Snow.self) }
