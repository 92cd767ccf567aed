// SPDX-License-Identifier: Apache-2.0

/// What all kinds of stage have in common. Adopt ``Source``, ``Filter``, ``Transform``, ``Join`` or ``Sink``.
///
/// A stage lives through `init` → `negotiate` → `start` → process … → `drain` → `stop`. One thread at a time uses it:
/// the control thread up to `negotiate`, the setup thread for `start`, and the stage's own thread from then on. A stage
/// need not be `Sendable`.
public protocol Stage: AnyObject, SendableMetatype {
    /// The options of the stage; ``NoOptions`` for a stage that has none.
    associatedtype Options: StageOptions

    /// What the stage is; the same for every instance.
    static var info: StageInfo { get }

    /// [control thread] What `framehost describe TYPE` lists beside the options, such as the effects that are
    /// installed.
    ///
    /// The topics come without their values. The default is an empty list.
    static func topics() throws -> [StageTopic]

    /// [control thread] The topic `name`, in capital or small letters, with its values; nil when there is none.
    ///
    /// The default looks in ``topics()``.
    static func topic(_ name: String) throws -> StageTopic?

    /// [stage thread] The present options. The runner replaces them between two items when a live option changes.
    var options: Options { get set }

    /// [control thread] Makes the stage from options that are already checked.
    ///
    /// Opens no file or device and costs little: `framehost check` makes every stage.
    init(options: Options, context: StageContext) throws

    /// [control thread] What this instance asks of the plan. The planner reads it after `negotiate`.
    ///
    /// The default is ``declaredDemand``, which is what ``info`` declares.
    var demand: StageDemand { get }

    /// [setup thread] Takes memory and threads, and opens files and devices.
    ///
    /// The runner starts the stages at the end of the chain first and the sources last.
    func start() throws

    /// [stage thread] Ends everything that `start` began, and finishes files.
    ///
    /// The runner calls it after the last item, also when the run failed or was stopped. A second call must do no harm.
    func stop() throws

    /// [stage thread] A live option has changed, and ``options`` holds the new values.
    ///
    /// - Throws: An error to refuse the new values; the runner then puts the old ones back.
    func optionsChanged() throws

    /// [stage thread, before an item] A stage behind asks for a keyframe: the next picture should become one.
    ///
    /// Only the stage that makes the access units gets this call, once for all requests since the last item.
    func keyframeRequested()

    /// [stage thread] Buffers have run out: the stage lets go of frames that it keeps only in case they are needed
    /// again.
    func releaseCaches()

    /// [stage thread] Carries out a command that ``info`` declares.
    ///
    /// - Parameters:
    ///   - name: The command's name.
    ///   - arguments: The command's `arguments`, a JSON object.
    /// - Throws: What the person who sent the command should read.
    func command(_ name: String, arguments: JSONNode) throws
}

extension Stage {
    public var demand: StageDemand { Self.declaredDemand }

    /// What ``info`` declares, as a demand: the value to start from in ``demand``.
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
        throw FrameHostError(
            .broken, what: "the plugin declares the command '\(name)' but does not implement it",
            remedy: "Report this to the plugin's author.")
    }
}

/// A stage that gives pictures or access units: a camera, a file, a test pattern.
///
/// This one gives grey pictures:
///
/// ```swift
/// func negotiate() -> MediaFormat {
///     let rate = Rational(30)
///     return .video(VideoFormat(.gray8, width: 640, height: 360, frameRate: rate))
/// }
///
/// func produce(_ output: Output) throws -> SourceProgress {
///     guard count < options.frames else { return .ended }
///     // Nil only in a live source: no buffer is free.
///     guard var frame = try output.makeFrame() else { return .more }
///     frame.withMutablePlane(0) { plane in
///         for y in 0..<plane.height { plane.row(y).update(repeating: 128) }
///     }
///     frame.pts = MediaTime(seconds: Double(count) / 30)
///     count += 1
///     try output.emit(frame)
///     return .more
/// }
/// ```
/// A source of access units sets ``AccessUnit/pts``, ``AccessUnit/dts``, ``AccessUnit/duration`` and
/// ``AccessUnit/isKeyframe`` of each, and asks for its memory with ``StageDemand/slabBytes``.
public protocol Source: Stage {
    /// [control thread] Begins what takes long and ``negotiate()`` waits for, such as a connection. It does not wait itself.
    ///
    /// A chain calls this for all its sources before the first of them negotiates, so that they wait side by side.
    /// `negotiate` throws what went wrong here. The default does nothing.
    func beginNegotiation()

    /// [control thread] The format of all items that the source will give.
    ///
    /// It may look at the file or device, but changes nothing there.
    func negotiate() throws -> MediaFormat

    /// [stage thread] Gives one item, or none if there is none yet, and returns.
    ///
    /// The runner calls it again and again until it returns ``SourceProgress/ended``. It waits only through `output`
    /// and ``StageContext/sleep(until:)``: a drain or a stop of the chain ends these waits.
    func produce(_ output: Output) throws -> SourceProgress
}

extension Source {
    public func beginNegotiation() {}
}

/// Whether a source goes on.
public enum SourceProgress: Sendable {
    /// The source has more items: call it again.
    case more
    /// The source has given its last item.
    case ended
}

/// A stage that reads or changes a frame and hands on the same frame.
///
/// This one halves the brightness:
///
/// ```swift
/// func process(_ frame: inout Frame) -> Verdict {
///     frame.withMutablePlane(0) { luma in
///         for y in 0..<luma.height {
///             luma.withRow(y) { row in for x in row.indices { row[x] /= 2 } }
///         }
///     }
///     return .forward
/// }
/// ```
/// <doc:WritingAFilter> builds one from its first line to its test.
public protocol Filter: Stage {
    /// [control thread] Takes note of the format that all frames will have.
    ///
    /// The default does nothing.
    func negotiate(_ format: VideoFormat) throws

    /// [stage thread] Works on one frame, which goes on when the filter returns ``Verdict/forward``.
    ///
    /// A filter that declares ``StageInfo/Access/modify`` may write the planes. The call should neither block nor
    /// allocate.
    func process(_ frame: inout Frame) throws -> Verdict
}

/// What happens to the frame that a filter was handed.
public enum Verdict: Sendable {
    /// The frame goes on to the next stage.
    case forward
    /// The frame ends here and is counted under the reason.
    case drop(DropReason)
}

extension Filter {
    public func negotiate(_ format: VideoFormat) throws {}
}

/// A filter that can look ahead: it keeps frames until it has seen what follows them, and then hands on the same frames.
///
/// Where its demand has a ``StageDemand/delay``, the runner hands it frames with ``process(_:_:)``; where that is 0, with
/// ``Filter/process(_:)``, as any other filter. A filter that declares ``StageInfo/Access/modify`` is handed frames that
/// nobody else holds, and may write them until it emits them.
///
/// ```swift
/// func process(_ frame: consuming Frame, _ output: Output) throws {
///     frames.append(frame)
///     guard frames.isFull, var oldest = frames.takeOldest() else { return }
///     change(&oldest)
///     try output.emit(oldest)
/// }
/// ```
/// While it delays, frames cannot pass by it: a pause drops frames, and `"onError": "bypass"` is refused.
public protocol DelayingFilter: Filter {
    /// [stage thread] Takes one frame, and emits those whose turn it is: none, one or several, in the order they came.
    ///
    /// Each frame that came in is answered once: the filter emits it, or calls ``Output/drop(_:)``.
    func process(_ frame: consuming Frame, _ output: Output) throws

    /// [stage thread] No frame follows: the filter emits everything that it holds.
    func drain(_ output: Output) throws

    /// [stage thread, after each call] How many frames the filter has accepted and not yet answered, by its own count.
    var held: Int { get }
}

/// A stage that gives other items than it takes: a converter, a scaler, an encoder.
///
/// This one makes a frame of each frame:
///
/// ```swift
/// func process(_ input: consuming Sample, _ output: Output) throws {
///     guard case .frame(let frame) = consume input else {
///         return output.drop(.byStage)
///     }
///     guard var result = try output.makeFrame() else { return }
///     frame.withPlane(0) { source in
///         result.withMutablePlane(0) { target in scale(source, into: target) }
///     }
///     result.copyProperties(from: frame)   // times, number, orientation, metadata
///     try output.emit(result)
/// }
/// ```
/// <doc:TheLifeOfAFrame> says what a transform declares that keeps frames or answers them later.
public protocol Transform: Stage {
    /// [control thread] Returns the output format for the input format.
    func negotiate(_ input: MediaFormat) throws -> MediaFormat

    /// [stage thread] Takes one item and emits what is ready: no item, one or several.
    ///
    /// Each item that came in is answered once: by an item that the stage emits, or by ``Output/drop(_:)``. An item
    /// that answers none is emitted as ``Output/Origin/made``. The items that the stage answers later are counted in
    /// ``held``.
    func process(_ input: consuming Sample, _ output: Output) throws

    /// [stage thread] No item follows: the stage emits everything that it holds.
    func drain(_ output: Output) throws

    /// [stage thread, after each call] How many items the stage has accepted and not yet answered, by its own count.
    ///
    /// The runner compares it with the ledger, so that no item is lost unnoticed. The default is 0.
    var held: Int { get }
}

extension Transform {
    public func drain(_ output: Output) throws {}
    public var held: Int { 0 }
}

/// A stage that takes one item from each of several inputs.
///
/// The chain file says which items belong together (``JoinMatch``). The item of the leading input is always there;
/// another input may have none.
///
/// ```swift
/// func merge(_ inputs: JoinInputs, _ output: Output) throws {
///     guard case .frame(let first) = inputs.take(0),
///         case .frame(let second) = inputs.take(1)
///     else { return output.drop(.byStage) }
///     guard var result = try output.makeFrame() else { return }
///     mix(first, second, into: &result)
///     result.copyProperties(from: first)
///     result.pts = inputs.time             // rises, also where an item is given again
///     try output.emit(result)
/// }
/// ```
public protocol Join: Stage {
    /// [control thread] Returns the output format for the formats of the inputs, which are in the order of `from`.
    func negotiate(_ inputs: [MediaFormat]) throws -> MediaFormat

    /// [stage thread] Takes the items that belong together. An input whose item was dropped on its way gives none.
    func merge(_ inputs: JoinInputs, _ output: Output) throws

    /// [stage thread] No item follows on any input: the join emits everything that it holds. The default does nothing.
    func drain(_ output: Output) throws

    /// [stage thread, between two calls] The input whose pictures a join by the clock gives as soon as they come.
    ///
    /// Only a join that declares ``StageDemand/outputRate`` is asked. With nil, the default, every picture waits for
    /// its tick.
    var activeInput: Int? { get }
}

extension Join {
    public var activeInput: Int? { nil }
    public func drain(_ output: Output) throws {}
}

/// A stage that ends a branch: a file, a server, a window.
///
/// This one adds up the first samples:
///
/// ```swift
/// func consume(_ input: consuming Sample) throws -> SinkVerdict {
///     guard case .frame(let frame) = consume input else {
///         return .dropped(.byStage)
///     }
///     total += frame.withPlane(0) { Int($0.row(0)[0]) }
///     return .delivered
/// }
/// ```
public protocol Sink: Stage {
    /// [control thread] Takes note of the format that all items will have. The default does nothing.
    func negotiate(_ input: MediaFormat) throws

    /// [stage thread] Takes one item, which goes no further, and says what happened to it.
    func consume(_ input: consuming Sample) throws -> SinkVerdict

    /// [stage thread] Takes one item of the input at `index` in `from`. The default calls ``consume(_:)``, since most
    /// sinks have one input; see ``MultiSink``.
    func consume(_ input: consuming Sample, from index: Int) throws -> SinkVerdict

    /// [stage thread] No item follows. The default does nothing.
    func drain() throws
}

extension Sink {
    public func negotiate(_ input: MediaFormat) throws {}
    public func consume(_ input: consuming Sample, from index: Int) throws -> SinkVerdict { try consume(input) }
    public func drain() throws {}
}

/// What a sink did with an item.
public enum SinkVerdict: Sendable {
    /// The item was written, sent or shown.
    case delivered
    /// The sink left the item out on purpose: a recorder that is not recording.
    case idle
    /// The item was lost, and is counted under the reason.
    case dropped(DropReason)
}
