/// What all kinds of stage have in common. Adopt ``Source``, ``Filter``, ``Transform``, ``Join`` or ``Sink``.
///
/// Life: `init` → `negotiate` → `start` → process … → `drain` → `stop`. A stage is used by one thread at a time: the
/// control thread up to `negotiate`, the setup thread for `start`, its stage thread from then on. It need not be
/// `Sendable`.
public protocol Stage: AnyObject, SendableMetatype {
    associatedtype Options: StageOptions

    /// What the stage is; the same for every instance.
    static var info: StageInfo { get }

    /// [control thread] What there is to ask about beside options, for `framehost describe`: effects that are
    /// installed. Without their values. Defaults to nothing.
    static func topics() throws -> [StageTopic]

    /// [control thread] The topic of this name, in any case, with its values; nil for none. Defaults to looking among
    /// `topics()`.
    static func topic(_ name: String) throws -> StageTopic?

    /// Replaced by the runner between two items when an option marked `live` changes. [stage thread]
    var options: Options { get set }

    /// [control thread] Opens nothing: options arrive checked. Cheap, since `framehost check` makes every stage.
    init(options: Options, context: StageContext) throws

    /// [control thread] What this instance asks of the plan; read after `negotiate`. Defaults to what `info` declares.
    var demand: StageDemand { get }

    /// [setup thread] Takes memory, threads and devices. Called consumers first, sources last.
    func start() throws

    /// [stage thread] Ends everything begun in `start`, finishing files; called once after the last item, also when the
    /// run failed or was stopped. Safe to call twice.
    func stop() throws

    /// [stage thread] A live option has changed; `options` holds the new values. When this throws the old ones come
    /// back.
    func optionsChanged() throws

    /// [stage thread, before an item] A stage behind wishes for a keyframe: the picture of the next item should be one.
    /// Called once for all wishes since the last item, on the stage whose access units they are.
    func keyframeRequested()

    /// [stage thread] Buffers have run out: lets go of frames that are only kept in case they are wanted again.
    func releaseCaches()

    /// [stage thread] A command declared in `info`.
    ///
    /// - Parameter arguments: The other members of the command's JSON object.
    /// - Throws: what the person who sent it should read.
    func command(_ name: String, arguments: JSONNode) throws
}

extension Stage {
    public var demand: StageDemand { Self.declaredDemand }

    /// What `info` declares, as a demand.
    public static var declaredDemand: StageDemand {
        var demand = StageDemand()
        demand.access = info.access
        demand.hold = info.hold
        demand.delay = info.delay
        demand.workers = info.workers
        demand.outputBuffers = info.output == .sameAsInput ? .sameAsInput : .own
        return demand
    }

    public static func topics() throws -> [StageTopic] { [] }
    public static func topic(_ name: String) throws -> StageTopic? {
        try topics().first { $0.name.lowercased() == name.lowercased() }
    }

    public func start() throws {}
    public func stop() throws {}
    public func optionsChanged() throws {}
    public func keyframeRequested() {}
    public func releaseCaches() {}
    public func command(_ name: String, arguments: JSONNode) throws {
        throw FrameHostError(.broken, what: "the command '\(name)' is declared but not written")
    }
}

/// Gives pictures or access units: a camera, a file, a pattern.
public protocol Source: Stage {
    /// [control thread] The format it will give. May look at its file or device; changes nothing.
    func negotiate() throws -> MediaFormat

    /// [stage thread] Gives one item (or none, if there is none yet) and returns; called again and again until it says
    /// `.ended`.
    ///
    /// Waits only through `output` or ``StageContext/sleep(until:)``, which end at a drain and at a stop.
    func produce(_ output: Output) throws -> SourceProgress
}

/// Whether a source goes on.
public enum SourceProgress: Sendable { case more, ended }

/// Works on the frame it is handed and lets the same frame go on.
public protocol Filter: Stage {
    /// [control thread] The format of all frames to come. Defaults to nothing to do.
    func negotiate(_ format: VideoFormat) throws

    /// [stage thread] One frame in, the same frame out. With ``StageInfo/Access/modify`` its planes may be written.
    /// Does not block or allocate.
    func process(_ frame: inout Frame) throws -> Verdict
}

/// What becomes of the frame a filter was handed.
public enum Verdict: Sendable {
    case forward
    /// The frame ends here, counted under the reason.
    case drop(DropReason)
}

extension Filter {
    public func negotiate(_ format: VideoFormat) throws {}
}

/// Turns its input into something else: a converter, a scaler, an encoder.
public protocol Transform: Stage {
    /// [control thread] From the format of the input to that of the output.
    func negotiate(_ input: MediaFormat) throws -> MediaFormat

    /// [stage thread] Takes one item and emits what is ready: nothing, one item or several, each the answer to one that
    /// came in unless it is emitted as `.made`.
    func process(_ input: consuming Sample, _ output: Output) throws

    /// [stage thread] No item follows: emits all that is held.
    func drain(_ output: Output) throws

    /// [stage thread, after each call] Items accepted and not yet answered, by the stage's own count; the ledger is
    /// checked against it.
    var held: Int { get }
}

extension Transform {
    public func drain(_ output: Output) throws {}
    public var held: Int { 0 }
}

/// Takes one item from each of several inputs.
public protocol Join: Stage {
    /// [control thread] From the formats of the inputs, in the order of `from`, to that of the output.
    func negotiate(_ inputs: [MediaFormat]) throws -> MediaFormat

    /// [stage thread] The items of one time. An input whose item was dropped on its way gives none.
    func merge(_ inputs: JoinInputs, _ output: Output) throws

    /// [stage thread] No item follows on any input.
    func drain(_ output: Output) throws

    /// [stage thread, between two calls] Of a join that gives pictures by the clock (``StageDemand/outputRate``): the input
    /// whose pictures are given as they come. Nil: every picture waits for its tick.
    var activeInput: Int? { get }
}

extension Join {
    public var activeInput: Int? { nil }
    public func drain(_ output: Output) throws {}
}

/// The end of a branch: a file, a server, a window.
public protocol Sink: Stage {
    /// [control thread] The format of all items to come.
    func negotiate(_ input: MediaFormat) throws

    /// [stage thread] Takes one item for good.
    func consume(_ input: consuming Sample) throws -> SinkVerdict

    /// [stage thread] No item follows.
    func drain() throws
}

extension Sink {
    public func negotiate(_ input: MediaFormat) throws {}
    public func drain() throws {}
}

/// How an item ended in a sink.
public enum SinkVerdict: Sendable {
    case delivered
    /// On purpose not used: a recorder that is not recording.
    case idle
    case dropped(DropReason)
}
