// SPDX-License-Identifier: Apache-2.0

/// Hands the stages, the service or the picture encoder of a plugin to the host.
///
/// A plugin exports one symbol, whose name carries the interface version:
///
/// ```swift
/// @c(framehost_plugin_v1)
/// public func pluginEntry() -> OpaquePointer { PluginEntry.export(Mirror.self) }
/// ```
public enum PluginEntry {
    /// The version of the interface between host and plugin; part of the symbol's name and of the manifest.
    public static let interfaceVersion = 1
    /// The name of the symbol that a plugin exports.
    public static let symbol = "framehost_plugin_v1"

    /// [control thread] Exports the stages of a plugin, as one retained object for the host.
    ///
    /// Name each class: `PluginEntry.export(NightMode.self, DayMode.self)`.
    public static func export<each S: Stage>(_ types: repeat (each S).Type) -> OpaquePointer {
        var stages: [StageType] = []
        repeat stages.append(StageType(each types))
        return give(PluginExports(stages: stages))
    }

    /// [control thread] Exports the service of a plugin.
    public static func export<S: Service>(service type: S.Type) -> OpaquePointer {
        give(PluginExports(services: [ServiceType(type)]))
    }

    /// [control thread] Exports the picture encoder of a plugin.
    public static func export<E: PictureEncoder>(encoder type: E.Type) -> OpaquePointer {
        give(PluginExports(encoders: [PictureEncoderType(type)]))
    }

    private static func give(_ exports: PluginExports) -> OpaquePointer {
        OpaquePointer(Unmanaged.passRetained(exports).toOpaque())
    }
}

/// What ``PluginEntry/export(_:)`` returns, as the host sees it.
public final class PluginExports: Sendable {
    /// The stage types in the plugin.
    public let stages: [StageType]
    /// The services in the plugin.
    public let services: [ServiceType]
    /// The picture encoders in the plugin.
    public let encoders: [PictureEncoderType]

    init(stages: [StageType] = [], services: [ServiceType] = [], encoders: [PictureEncoderType] = []) {
        self.stages = stages
        self.services = services
        self.encoders = encoders
    }

    /// Takes over what a plugin's entry function returned.
    public static func take(_ pointer: OpaquePointer) -> PluginExports {
        Unmanaged<PluginExports>.fromOpaque(UnsafeRawPointer(pointer)).takeRetainedValue()
    }
}
