// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// What the host calls after it has read the manifest and loaded this library. [control thread]
@c(framehost_plugin_v1)
public func pluginEntry() -> OpaquePointer { PluginEntry.export(service: ONVIFService.self) }
