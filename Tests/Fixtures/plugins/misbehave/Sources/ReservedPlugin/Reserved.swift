// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// Has an option that the chain file keeps for itself.
final class Reserved: Filter {
    static let info = StageInfo(
        id: "reserved", summary: "Has an option with a reserved name.", input: .anyVideo, output: .sameAsInput)

    struct Options: StageOptions {
        @Option(help: "Not to be reached.") var link = 0
    }

    var options: Options

    init(options: Options, context: StageContext) { self.options = options }

    func process(_ frame: inout Frame) -> Verdict { .forward }
}

@c(framehost_plugin_v1)
public func pluginEntry() -> OpaquePointer { PluginEntry.export(Reserved.self) }
