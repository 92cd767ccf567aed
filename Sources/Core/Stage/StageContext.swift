import Synchronization

/// What a stage knows of its run, and its ways to speak. Made by the runner, one per stage.
///
/// Safe from every thread of the stage.
public final class StageContext: @unchecked Sendable {
    /// The stage's `id` in the chain file.
    public let stageID: String
    /// Relative paths in options are meant from here: the chain file's folder, without a slash at the end.
    public let folder: String
    /// What people call the chain: its file's name without folder and `.json`.
    public let chainName: String
    public let clock: ChainClock
    /// The way to create, replace, remove and empty files; one for all stages of a run.
    public let files: RunFiles
    /// True when the chain has a live source; encoders and sinks choose their defaults by it. Known before `negotiate`.
    public internal(set) var isLiveChain = false

    /// True for a stage that takes the place of one that ran: whoever reads what it gives knows the parameter sets of the
    /// one before, so that each of its keyframes carries its own. Known before `negotiate`.
    public internal(set) var repeatsParameterSets = false

    /// The sound that belongs to the pictures that come in, where a source before offers it. Known before `negotiate`;
    /// in a source nil.
    public internal(set) var audio: (any AudioOrigin)?

    /// Ids of the stages the input comes from, as the chain file has them, in the order of `from`; of a source none. Known
    /// before `negotiate`.
    public internal(set) var inputIDs: [String] = []

    /// When the stage last went on after a pause, nanoseconds of the chain clock; 0 before the first. What a source's own
    /// clock would have given until then nobody wanted. [stage thread]
    public internal(set) var resumedAt: Int64 = 0

    /// Asks the encoder (or encoded source) whose access units come in for a keyframe; nil for raw video, and where
    /// nobody makes one when asked: behind a file. Known before `negotiate`.
    public internal(set) var keyframeRequest: KeyframeRequest?

    /// What stages behind this one raise.
    let ownKeyframeRequest = KeyframeRequest()
    /// What the stage has in hand; set by the runner.
    let item = CurrentItem()
    let stop: StopSignal
    let events: EventHub
    private let jobs: JobQueue
    /// Sentences for the plan, in the order they were noted.
    private(set) var planNotes: [(text: String, isWarning: Bool)] = []
    /// What a source offers the stages behind it.
    private(set) var offeredAudio: (any AudioOrigin)?
    /// What the runner adds to a source's times.
    let timeOffset = TimeOffset()
    private let recovery = Locked(Recovery())
    private struct Recovery {
        var reason: String?
        /// Since `start`: it has never been at its work.
        var isFirst = false
    }
    private let ownFigures = Locked<(@Sendable () -> JSONNode)?>(nil)
    /// Whose turn it is to ask for them.
    private let figuresTurn = Condition()
    private let sleeper = Condition()
    /// Set once at a drain.
    private let isEnding = Atomic<Bool>(false)
    /// Where a sleep is noted as a wait; set with the runner's, at setup. Nil in a plan that does not run.
    var thread: ThreadState?
    /// Written at plan time, before any thread of the stage runs.
    var layout = MetadataLayout.none
    /// Of the items inside the stage; nil for one that needs none. Made before any thread of the stage runs.
    var heldHeaders: HeldHeaders?

    init(
        stageID: String, folder: String, chainName: String, clock: ChainClock, stop: StopSignal, events: EventHub,
        jobs: JobQueue,
        files: RunFiles = RunFiles()
    ) {
        self.stageID = stageID
        self.folder = folder
        self.chainName = chainName
        self.clock = clock
        self.files = files
        self.stop = stop
        self.events = events
        self.jobs = jobs
        stop.register(sleeper)
    }

    /// For a stage driven alone, in a test: the system clock, the current folder, events nobody reads.
    public convenience init(
        stageID: String, folder: String = ".", chainName: String = "chain", clock: ChainClock = ChainClock()
    ) {
        let events = EventHub()
        self.init(
            stageID: stageID, folder: folder, chainName: chainName, clock: clock, stop: StopSignal(), events: events,
            jobs: JobQueue(events: events, clock: clock))
    }

    /// `path` as it is when absolute, else meant from `folder`.
    public func resolve(_ path: String) -> String {
        path.hasPrefix("/") || folder.isEmpty || folder == "." ? path : "\(folder)/\(path)"
    }

    /// The slot of a kind of metadata declared in ``StageInfo/metadata``. [from `start` on]
    public func slot<Value: FrameMetadata>(for type: Value.Type) -> MetadataSlot<Value>? { layout.slot(for: type) }

    /// Sleeps until `instant` of the chain clock; false at once when the source is asked to end. [stage thread of a
    /// source]
    public func sleep(until instant: Int64) -> Bool {
        guard let thread else {
            return clock.sleep(
                until: instant, on: sleeper, unless: { isEnding.load(ordering: .acquiring) || stop.isRaised })
        }
        let inside = thread.enterWait(ThreadState.Place.outsideWait, for: .time)
        defer { thread.leaveWait(inside) }
        return clock.sleep(
            until: instant, on: sleeper, unless: { isEnding.load(ordering: .acquiring) || stop.isRaised })
    }

    /// Runs `body`, in which the stage waits for its device or its peer: figures do not count that as the stage's work.
    /// Not needed around ``sleep(until:)`` and what an ``Output`` waits for. [stage thread]
    public func waiting<Result, Failure: Error>(_ body: () throws(Failure) -> Result) throws(Failure) -> Result {
        guard let thread, thread.clock != nil else { return try body() }
        let begin = clock.now()
        defer { thread.elsewhere &+= clock.now() &- begin }
        return try body()
    }

    /// [stage thread of a source] Until something is posted to `thread`, or the source is asked to end.
    func waitForMail(of thread: ThreadState) {
        let inside = thread.enterWait(ThreadState.Place.outsideWait, for: .time)
        defer { thread.leaveWait(inside) }
        sleeper.locked {
            while !thread.hasMail, !isEnding.load(ordering: .acquiring), !stop.isRaised { sleeper.wait() }
        }
    }

    /// [any thread] Makes `waitForMail` look again.
    func wake() { sleeper.locked { sleeper.broadcast() } }

    /// True once the source should end: its wait is over and `produce` returns soon.
    public var isEnded: Bool { isEnding.load(ordering: .acquiring) || stop.isRaised }

    /// True once the run is asked to stop at once: nothing is waited for any more, not even out of courtesy.
    public var isStopped: Bool { stop.isRaised }

    /// Ends a sleep and every later one: the run drains. [any thread]
    func requestEnd() {
        sleeper.locked {
            isEnding.store(true, ordering: .releasing)
            sleeper.broadcast()
        }
    }

    /// Tells programs and people of something that happened: an event with this stage's id, and with frame and PTS of
    /// the item in hand. Never blocks.
    ///
    /// - Parameter details: A JSON object; its members become the event's: `["path": .string(path), "frames":
    ///   .number(count)]`.
    public func post(
        _ event: String, level: Event.Level = .info, text: String, details: JSONNode = JSONNode(.object([]))
    ) {
        events.post(
            Event(
                name: event, stage: stageID, level: level, text: text, details: details, time: clock.now(),
                frame: item.frame, pts: item.pts))
    }

    /// A sentence that a person should read before the run begins: which file, model or device was chosen, and what
    /// that means here. `check` prints it with the plan, a run says it in its first lines as the event `note`. [control
    /// thread, in `negotiate`]
    ///
    /// - Parameters:
    ///   - text: Without the stage's id and without the full stop.
    ///   - isWarning: The stage does with something poorer than was asked for.
    public func note(_ text: String, isWarning: Bool = false) {
        planNotes.append((text, isWarning))
        post("note", level: isWarning ? .warning : .info, text: "\(text).")
    }

    /// A line in the log, at most a few per second.
    public func log(_ text: String, level: Event.Level = .info) { post("log", level: level, text: text) }

    /// Why the stage is not at its work but looks for a way back to it: the camera was unplugged. Nil while all is
    /// well. People see it as the stage's state; where it is set in `start`, the chain is not healthy before it is nil.
    /// [any thread]
    public var recovering: String? {
        get { recovery.withLock { $0.reason } }
        set {
            let isBefore = item.frame == nil
            recovery.withLock { $0 = Recovery(reason: newValue, isFirst: newValue != nil && (isBefore || $0.isFirst)) }
        }
    }

    /// [any thread] It said in `start` that it is away, and is away since.
    var hasNeverBeenThere: Bool { recovery.withLock { $0.isFirst } }

    /// Figures of the stage's own, beside the runner's: `figures` of its entry in `--stats` and in the answer to the
    /// command `figures`.
    ///
    /// - Parameter body: Gives a JSON object of what is known now. Called by any thread, one at a time, between
    ///   `start` and the end of the run and once after it; it must not wait for the stage.
    public func showFigures(_ body: @escaping @Sendable () -> JSONNode) { ownFigures.withLock { $0 = body } }

    /// [any thread] Nil where the stage shows none.
    var figures: JSONNode? {
        guard let body = ownFigures.withLock({ $0 }) else { return nil }
        return figuresTurn.locked(body)
    }

    /// [any thread] Lets go of what the stage has given, which may hold the stage, which holds this.
    func forgetStage() {
        ownFigures.withLock { $0 = nil }
        offeredAudio = nil
    }

    /// A source's sound, for the stages behind it. [control thread, in `negotiate`]
    public func offerAudio(_ origin: any AudioOrigin) {
        offeredAudio = PlacedAudio(origin, by: timeOffset)
    }

    /// Hands on work that can wait and may go on after the stage's `stop`: the program stays until it is done, showing
    /// how far it is; a signal then makes it give up (``JobProgress/isCancelled``). Jobs of a chain run one after the
    /// other on a thread that yields to all others. What a job throws becomes a warning, the event `job-failed`.
    ///
    /// - Parameter title: For people: `finalising out.mp4`.
    public func addJob(_ title: String, _ body: @escaping @Sendable (JobProgress) throws -> Void) {
        jobs.add(title, stage: stageID, body)
    }
}
