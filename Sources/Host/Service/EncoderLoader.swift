// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// The picture encoder. It is loaded when the first picture is encoded, so a chain that nobody looks at does not pay
/// for it. [any thread but a stage's]
final class EncoderLoader: Sendable {
    private let plugin: PluginRegistry.Plugin?
    private let loaded = Locked<(any PictureEncoder)?>(nil)

    /// - Parameter plugin: The plugin that has the encoder; nil where there is none.
    init(_ plugin: PluginRegistry.Plugin?) { self.plugin = plugin }

    /// - Throws: ``FrameHostError`` `.unavailable`, `.unusablePlugin`.
    func encoder() throws -> any PictureEncoder {
        try loaded.withLock { loaded in
            if let loaded { return loaded }
            guard let plugin,
                let type = try CrashNote.during(
                    "the plugin \(plugin.path)", "being loaded", { try PluginLoader.load(plugin) }
                ).encoders.first
            else {
                throw FrameHostError(
                    .unavailable, what: "no plugin that was found can write JPEG or PNG files",
                    remedy:
                        "Name the folder of libPictures.so with --plugin-path, and start the chain again. If it is there already, `framehost plugins` says why it was skipped."
                )
            }
            let encoder = type.make()
            loaded = encoder
            return encoder
        }
    }
}
