// SPDX-License-Identifier: Apache-2.0

/// A plugin's class that runs beside a chain in the same process, such as a server.
///
/// ```swift
/// final class ControlServer: Service {
///     static let info = ServiceInfo(id: "control-server", summary: "…")
/// }
/// @c(framehost_plugin_v1)
/// public func pluginEntry() -> OpaquePointer { PluginEntry.export(service: ControlServer.self) }
/// ```
/// A service lives through `init` → `start` → `stop(within:)`. Everything else it does on threads of its own.
/// docs/design/021-live-operation.md.
public protocol Service: AnyObject, Sendable, SendableMetatype {
    /// The options of the service; ``NoOptions`` for a service that has none.
    associatedtype Options: StageOptions

    /// What the service is; the same for every instance.
    static var info: ServiceInfo { get }

    /// [control thread] Makes the service from options that are already checked. Opens nothing: `framehost check` makes
    /// every service.
    init(options: Options) throws

    /// [control thread] Things that only one may have, such as a port. A stage that claims the same thing is
    /// refused when the chain is planned, and so is a further chain of the process. None unless the service says
    /// so.
    var claims: [StageDemand.Claim] { get }

    /// [control thread] Checks whether `start` will find what the options name, such as files. Keeps nothing open.
    /// The default checks nothing.
    ///
    /// - Parameter folder: The folder where relative paths start.
    /// - Throws: ``FrameHostError``, whose place is the option: `tokenFile`.
    func check(folder: String) throws

    /// [control thread] Files that the service reads: a stage that would write one of them is refused when the chain is
    /// planned. None unless the service says so.
    ///
    /// - Parameter folder: The folder where relative paths start.
    func readsFiles(folder: String) -> [String]

    /// [control thread] The most bytes that the service keeps for its clients and for what it watches. The plan counts
    /// them. None unless the service says so.
    var ownBytes: Int { get }

    /// [control thread] Opens ports and starts threads, before the chain's stages are started.
    ///
    /// - Throws: ``FrameHostError`` to end the run before it begins.
    func start(_ control: any RunControl) throws

    /// [a thread for the end of this service] Ends everything that `start` began, after the chain has ended.
    ///
    /// The host calls it once, also where `start` threw. All services of a chain are told at the same time, and have the
    /// time together. The host goes on without one that takes longer: the program ends within a second when told.
    ///
    /// - Parameter milliseconds: How long it may take, for the last work too. Where the host gets no thread for it, another
    ///   service may have used up the time; then this is 0.
    func stop(within milliseconds: Int)
}

extension Service {
    /// None.
    public var claims: [StageDemand.Claim] { [] }
    /// None.
    public func readsFiles(folder: String) -> [String] { [] }
    /// None.
    public var ownBytes: Int { 0 }
    /// Checks nothing.
    public func check(folder: String) throws {}
}

/// What a service is, as data.
public struct ServiceInfo: Sendable {
    /// The name in kebab-case: `control-server`.
    public var id: String
    /// One sentence for `framehost plugins`.
    public var summary: String

    /// Describes a service.
    public init(id: String, summary: String) {
        self.id = id
        self.summary = summary
    }
}

/// A kind of service without its Swift type.
public final class ServiceType: Sendable {
    /// What the service says of itself.
    public let info: ServiceInfo
    /// Its options, in the order of declaration.
    public let options: [OptionField]
    /// [control thread] Makes a service with these options. Throws ``FrameHostErrors``, or what its `init` throws.
    public let make: @Sendable (_ members: [JSONNode.Member], _ place: OptionPlace) throws -> any Service

    /// The kind of service that a Swift type stands for.
    public init<S: Service>(_ type: S.Type) {
        info = S.info
        options = S.Options.fields
        make = { members, place in
            try S(options: OptionDecoder.decode(S.Options.self, from: members, isService: true, place: place))
        }
    }
}
