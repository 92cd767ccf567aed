// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// The one symbol the host looks for. [control thread]
@c(framehost_plugin_v1)
public func pluginEntry() -> OpaquePointer { PluginEntry.export(Mirror.self) }
