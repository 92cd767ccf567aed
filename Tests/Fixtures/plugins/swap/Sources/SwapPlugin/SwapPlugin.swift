// SPDX-License-Identifier: Apache-2.0

import FrameCore

@c(framehost_plugin_v1)
public func pluginEntry() -> OpaquePointer { PluginEntry.export(SwapMark.self, SwapCount.self) }
