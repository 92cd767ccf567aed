// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// Lets every frame through untouched: what GStreamer's `identity` and ffmpeg's `null` filter do.
final class PassThrough: Filter {
    static let info = StageInfo(
        id: "pass-through", summary: "Lets every frame through untouched.", input: .anyVideo, output: .sameAsInput)

    var options: NoOptions

    init(options: NoOptions, context: StageContext) { self.options = options }

    /// [stage thread]
    func process(_ frame: inout Frame) throws -> Verdict { .forward }
}

/// The one symbol the host looks for.
@c(framehost_plugin_v1)
public func pluginEntry() -> OpaquePointer { PluginEntry.export(PassThrough.self) }
