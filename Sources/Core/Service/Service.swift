/// What runs beside a chain in its process and is no stage: it serves, watches or tells. A plugin's class.
///
/// ```swift
/// final class ControlServer: Service {
///     static let info = ServiceInfo(id: "control-server", summary: "…")
/// }
/// @c(framehost_plugin_v1)
/// public func pluginEntry() -> OpaquePointer { PluginEntry.export(service: ControlServer.self) }
/// ```
/// Life: `init` → `start` → `stop`, all on the control thread; whatever it does besides is on threads of its own.
/// docs/design/021-live-operation.md.
public protocol Service: AnyObject, Sendable, SendableMetatype {
    associatedtype Options: StageOptions

    /// What the service is; the same for every instance.
    static var info: ServiceInfo { get }

    /// [control thread] Opens nothing: options arrive checked, and `framehost check` makes every service.
    init(options: Options) throws

    /// [control thread] Before the chain's stages are started. Opens ports, starts threads.
    ///
    /// - Throws: ``FrameHostError``: the run ends before it has begun.
    func start(_ control: any RunControl) throws

    /// [control thread] After the chain has ended. Ends everything begun in `start`, within a second; called once, also
    /// where `start` has thrown.
    func stop()
}

/// What a service is, as data.
public struct ServiceInfo: Sendable {
    /// Kebab-case: `control-server`.
    public var id: String
    /// One sentence for `framehost plugins`.
    public var summary: String

    public init(id: String, summary: String) {
        self.id = id
        self.summary = summary
    }
}

/// A kind of service without its Swift type.
public final class ServiceType: Sendable {
    public let info: ServiceInfo
    public let options: [OptionField]
    /// [control thread] A service with these options. Throws ``FrameHostErrors``, or what its `init` throws.
    public let make: @Sendable (_ members: [JSONNode.Member], _ place: OptionPlace) throws -> any Service

    public init<S: Service>(_ type: S.Type) {
        info = S.info
        options = S.Options.fields
        make = { members, place in
            try S(options: OptionDecoder.decode(S.Options.self, from: members, place: place))
        }
    }
}
