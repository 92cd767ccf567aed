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
    /// The kinds of stage in the plugin.
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

/// Which protocol a stage adopts.
public enum StageKind: String, Sendable, CaseIterable {
    /// Adopts ``Source``.
    case source
    /// Adopts ``Filter``.
    case filter
    /// Adopts ``Transform``.
    case transform
    /// Adopts ``Join``.
    case join
    /// Adopts ``Sink``.
    case sink

    /// A stage of this kind can take the place of one of the other, with what is before and behind it as it is.
    func fitsInPlace(of other: StageKind) -> Bool {
        func isMiddle(_ kind: StageKind) -> Bool { kind == .filter || kind == .transform }
        return self == other || (isMiddle(self) && isMiddle(other))
    }

    /// For a place that several threads look at.
    var code: UInt8 {
        switch self {
        case .source: 0
        case .filter: 1
        case .transform: 2
        case .join: 3
        case .sink: 4
        }
    }

    init(code: UInt8) {
        self =
            switch code {
            case 0: .source
            case 1: .filter
            case 2: .transform
            case 3: .join
            default: .sink
            }
    }
}

/// A kind of stage without its Swift type: what it is, its options, how to make one.
public final class StageType: Sendable {
    /// What the stage says of itself.
    public let info: StageInfo
    /// The protocol that it adopts.
    public let kind: StageKind
    /// Its options, in the order of declaration.
    public let options: [OptionField]
    let make:
        @Sendable (_ members: [JSONNode.Member], _ place: OptionPlace, _ context: StageContext) throws -> StageInstance
    let check: @Sendable (_ members: [JSONNode.Member], _ place: OptionPlace) throws -> Void
    let findTopics: @Sendable () throws -> [StageTopic]
    let findTopic: @Sendable (_ name: String) throws -> StageTopic?
    /// [control thread] Finds the devices that the stage could use; nil for a kind of stage that uses none. Throws what
    /// the stage throws.
    public let devices: (@Sendable () throws -> [StageDevice])?

    /// The kind of stage that a Swift type stands for.
    public init<S: Stage>(_ type: S.Type) {
        info = S.info
        options = S.Options.fields
        kind =
            if S.self is any Source.Type { .source } else if S.self is any Filter.Type {
                .filter
            } else if S.self is any Join.Type { .join } else if S.self is any Transform.Type { .transform } else {
                .sink
            }
        check = { members, place in _ = try OptionDecoder.decode(S.Options.self, from: members, place: place) }
        make = { members, place, context in
            let options = try OptionDecoder.decode(S.Options.self, from: members, place: place)
            return StageInstance(try S(options: options, context: context), context)
        }
        findTopics = { try S.topics() }
        findTopic = { try S.topic($0) }
        if let type = S.self as? any DeviceStage.Type {
            devices = { try type.devices() }
        } else {
            devices = nil
        }
    }
}

/// Makes the place of an option's fault: `camera.json:7:5: stages[2].rate`.
public typealias OptionPlace = (_ key: String, _ text: TextPlace) -> FaultPlace
