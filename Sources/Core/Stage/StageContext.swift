// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// What a stage knows about its run, and how it talks to people and programs. The runner makes one for each stage.
///
/// Every thread of the stage may use it.
public final class StageContext: @unchecked Sendable {
    /// The stage's `id` in the chain file.
    public let stageID: String
    /// The chain file's folder, without a slash at the end. Relative paths in options start here; see ``resolve(_:)``.
    public let folder: String
    /// What people call the chain: its file's name without folder and `.json`.
    public let chainName: String
    /// The clock that all stages of the chain read.
    public let clock: ChainClock
    /// Creates, replaces, removes and empties files; one for all stages of a run.
    public let files: RunFiles
    /// Whether the chain has a live source. Encoders and sinks choose their defaults by it. Known before `negotiate`.
    public internal(set) var isLiveChain = false

    /// Whether each keyframe must carry its own parameter sets. Known before `negotiate`.
    ///
    /// True for a stage that replaces one that ran: its readers know the parameter sets of the old stage.
    public internal(set) var repeatsParameterSets = false

    /// The sound that belongs to the incoming pictures, where a source before the stage offers it; nil in a source.
    /// Known before `negotiate`.
    public internal(set) var audio: (any AudioOrigin)?

    /// The part of the timeline that the chain makes; nil where it makes all of it. Known before `start`.
    ///
    /// A source that is ``StageDemand/isDivisible`` gives the items of the part, those of ``TimelinePart/warmUp`` before
    /// them, and ``TimelinePart/lookAhead`` frames after them, with the times that they have in a whole run.
    public internal(set) var part: TimelinePart?

    /// What the inputs say about themselves (``MediaTags``), in the order of `from`; empty in a source. Known before
    /// `negotiate`; changes where a stage before this one is replaced.
    public internal(set) var inputTags: [PassedTags] {
        get { givenTags.withLock { $0.map(\.value) } }
        set { setInputTags(newValue.map { PlacedTags($0) }) }
    }

    /// [any thread] Whether a stage before this one hides something in its input (``PassedTags/Withheld/guarded(by:)``).
    /// Changes where a stage before it is replaced: what was captured before that may show what is hidden now.
    public var isGuarded: Bool { guarding.load(ordering: .acquiring) }

    func setInputTags(_ tags: [PlacedTags]) {
        givenTags.withLock { $0 = tags }
        let isGuarded = tags.contains { if case .guarded? = $0.value.withheld { true } else { false } }
        guarding.store(isGuarded, ordering: .releasing)
    }

    /// Ids of the stages that the input comes from, in the order of `from`; empty in a source. Known before
    /// `negotiate`.
    public internal(set) var inputIDs: [String] = []

    /// [stage thread] When the stage last went on after a pause, in nanoseconds of the chain clock; 0 before the first
    /// pause. A source skips the items that its own clock would have given before this time.
    public internal(set) var resumedAt: Int64 = 0

    /// Asks the encoder (or encoded source) of the incoming access units for a keyframe. Known before `negotiate`.
    ///
    /// Nil for raw video, and where no stage makes a keyframe when asked: behind a file.
    public internal(set) var keyframeRequest: KeyframeRequest?

    /// The keyframe request that stages behind this one raise.
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
    /// [from `negotiate` on] The outputs of a source beside the first that the chain takes
    /// (``StageInfo/furtherOutputs``), by name.
    public internal(set) var takenOutputs: Set<String> = []
    /// What a source says about its input.
    private(set) var offeredTags: PlacedTags?
    private let givenTags = Locked<[PlacedTags]>([])
    private let guarding = Atomic(false)
    /// What the runner adds to a source's times.
    let timeOffset = TimeOffset()
    private let recovery = Locked(Recovery())
    private struct Recovery {
        var reason: String?
        /// Whether the stage has been away since `start`.
        var isFirst = false
    }
    private let impaired = Locked<String?>(nil)
    private let account = Locked<InputAccount?>(nil)
    private let ownFigures = Locked<(@Sendable () -> JSONNode)?>(nil)
    /// Lets only one thread at a time ask for the figures.
    private let figuresTurn = Condition()
    private let sleeper = Condition()
    /// Set once at a drain.
    private let isEnding = Atomic<Bool>(false)
    /// The thread on which a sleep is noted as a wait. Set at setup together with the runner's; nil in a plan that
    /// does not run.
    var thread: ThreadState?
    /// Written at plan time, before any thread of the stage runs.
    var layout = MetadataLayout.none
    /// The headers of the items inside the stage; nil for a stage that needs none. Made before any thread of the
    /// stage runs.
    @exclusivity(unchecked) var heldHeaders: HeldHeaders?

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

    /// Makes the context of a stage that a test drives alone: the system clock, the current folder, events that nobody
    /// reads.
    public convenience init(
        stageID: String, folder: String = ".", chainName: String = "chain", clock: ChainClock = ChainClock()
    ) {
        let events = EventHub()
        self.init(
            stageID: stageID, folder: folder, chainName: chainName, clock: clock, stop: StopSignal(), events: events,
            jobs: JobQueue(events: events, clock: clock))
    }

    /// The path of an option: `path` itself when it is absolute, otherwise `path` below ``folder``.
    public func resolve(_ path: String) -> String {
        path.hasPrefix("/") || folder.isEmpty || folder == "." ? path : "\(folder)/\(path)"
    }

    /// [from `start` on] The slot of a kind of metadata; nil when no stage of the chain declares the kind in
    /// ``StageInfo/metadata``.
    public func slot<Value: FrameMetadata>(for type: Value.Type) -> MetadataSlot<Value>? { layout.slot(for: type) }

    /// [stage thread of a source] Sleeps until `instant`, in nanoseconds of the chain clock.
    ///
    /// - Returns: False at once when the source is asked to end.
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

    /// [stage thread] Runs `body`, in which the stage waits for its device or its peer. Figures do not count that time
    /// as the stage's work.
    ///
    /// Not needed around ``sleep(until:)`` and the waits of an ``Output``.
    public func waiting<Result, Failure: Error>(_ body: () throws(Failure) -> Result) throws(Failure) -> Result {
        guard let thread, thread.clock != nil else { return try body() }
        let begin = clock.now()
        defer { thread.elsewhere &+= clock.now() &- begin }
        return try body()
    }

    /// [stage thread of a source] Waits until something is posted to `thread`, or the source is asked to end.
    func waitForMail(of thread: ThreadState) {
        let inside = thread.enterWait(ThreadState.Place.outsideWait, for: .time)
        defer { thread.leaveWait(inside) }
        sleeper.locked {
            while !thread.hasMail, !isEnding.load(ordering: .acquiring), !stop.isRaised { sleeper.wait() }
        }
    }

    /// [any thread] Makes `waitForMail` look again.
    func wake() { sleeper.locked { sleeper.broadcast() } }

    /// Whether the source should end: `produce` then waits no longer and returns soon.
    public var isEnded: Bool { isEnding.load(ordering: .acquiring) || stop.isRaised }

    /// Whether the run is asked to stop at once: the stage then waits for nothing, not even for a peer to say goodbye.
    public var isStopped: Bool { stop.isRaised }

    /// [any thread] Ends a sleep and every later one, because the run drains.
    func requestEnd() {
        sleeper.locked {
            isEnding.store(true, ordering: .releasing)
            sleeper.broadcast()
        }
    }

    /// [control thread] The files that options name, for ``StageDemand/readsFiles``: an option that is not set names none,
    /// and neither does `env:NAME`.
    public func filesRead(_ names: String?...) -> [String] {
        names.compactMap { $0 }.filter { !$0.isEmpty && !$0.hasPrefix("env:") }.map(resolve)
    }

    /// [control thread] Checks whether the file that an option names can be written, and writes nothing. A file in
    /// use is not refused: its user, such as a stage that this one replaces, may have let go of it by the start.
    ///
    /// - Parameters:
    ///   - path: As the chain file has it.
    ///   - option: The option's key.
    /// - Throws: ``FrameHostError`` with the option as its place.
    public func checkWritable(_ path: String, option: String) throws {
        let path = resolve(path)
        switch files.refusalOfWriting(path) {
        case .failed(let code):
            var fault = FileRefusal.failed(code).fault(path)
            fault.place = FaultPlace(option)
            throw fault
        case .isFolder:
            var fault = FileRefusal.isFolder.fault(path)
            fault.place = FaultPlace(option)
            throw fault
        default: return
        }
    }

    /// Tells people and programs that something happened. Never blocks.
    ///
    /// The event carries this stage's id, and the frame number and PTS of the item in hand. Declare it in
    /// ``StageInfo/events``. Post it when a value changes, not with each frame.
    ///
    /// - Parameters:
    ///   - event: The event's name in kebab-case: `scene-did-change`.
    ///   - level: ``Event/Level/debug`` is shown only with `--verbose`.
    ///   - text: One sentence for people, with a capital and a full stop; the stage's id is put before it.
    ///   - details: A JSON object for programs, whose members become the event's: `["path": .string(path), "frames":
    ///     .number(count)]`.
    public func post(
        _ event: String, level: Event.Level = .info, text: String, details: JSONNode = JSONNode(.object([]))
    ) {
        events.post(
            Event(
                name: event, stage: stageID, level: level, text: text, details: details, time: clock.now(),
                frame: item.frame, pts: item.pts))
    }

    /// [setup thread, in `start`] Listens to the events of all stages from now on.
    ///
    /// ``EventSubscription/take()`` costs a lock and never waits. Where more than ``EventSubscription/capacity``
    /// events wait to be taken, the oldest are lost.
    public func followEvents() -> EventSubscription { events.subscribe(takesBacklog: false) }

    /// [control thread, in `negotiate`] Notes a sentence that a person should read before the run begins: which file,
    /// model or device was chosen, and what follows from it.
    ///
    /// `framehost check` prints it with the plan; a run says it in its first lines, as the event `note`.
    ///
    /// - Parameters:
    ///   - text: The sentence without the stage's id and without the full stop.
    ///   - isWarning: Whether the stage makes do with something poorer than was asked for.
    public func note(_ text: String, isWarning: Bool = false) {
        planNotes.append((text.hidingAddresses().printable(), isWarning))
        post("note", level: isWarning ? .warning : .info, text: "\(text).")
    }

    /// Writes a line to the log, as the event `log`. Write a few lines a second at most.
    public func log(_ text: String, level: Event.Level = .info) { post("log", level: level, text: text) }

    /// [any thread] Why the stage cannot work now and tries to recover, such as an unplugged camera; nil while all is
    /// well.
    ///
    /// People see it as the stage's state. When it is set in `start`, the chain does not count as healthy until it is
    /// nil.
    public var recovering: String? {
        get { recovery.withLock { $0.reason } }
        set {
            let isBefore = item.frame == nil
            let reason = newValue?.hidingAddresses()
            recovery.withLock { $0 = Recovery(reason: reason, isFirst: reason != nil && (isBefore || $0.isFirst)) }
        }
    }

    /// [any thread] How the stage works worse than it was asked to, in words that follow its name, without a full stop:
    /// `covers pictures completely, because the search is too slow`; nil while all is well.
    ///
    /// The chain does not count as healthy until it is nil. A watchdog does not start it anew, since that would not help.
    public var impairment: String? {
        get { impaired.withLock { $0 } }
        set { impaired.withLock { $0 = newValue } }
    }

    /// [any thread] Sources: what the input promises and what the stage gave of it; nil where the input has no end of
    /// its own. Set it in `start`, and again when the source ends.
    public var inputAccount: InputAccount? {
        get { account.withLock { $0 } }
        set { account.withLock { $0 = newValue } }
    }

    /// [any thread] Whether the stage said in `start` that it is away, and has been away since.
    var hasNeverBeenThere: Bool { recovery.withLock { $0.isFirst } }

    /// Shows figures of the stage's own beside the runner's: `figures` of its entry in `--stats`, and in the answer to
    /// the command `figures`.
    ///
    /// - Parameter body: Gives a JSON object of what is known now. Any thread may call it between `start` and the end
    ///   of the run, one at a time, and once after the run. It must not wait for the stage.
    public func showFigures(_ body: @escaping @Sendable () -> JSONNode) { ownFigures.withLock { $0 = body } }

    /// [any thread] Nil where the stage shows none.
    var figures: JSONNode? {
        guard let body = ownFigures.withLock({ $0 }) else { return nil }
        return figuresTurn.locked(body).hidingAddresses
    }

    /// [any thread] Releases what the stage has given to this context. That may hold the stage, which holds the
    /// context.
    func forgetStage() {
        ownFigures.withLock { $0 = nil }
        offeredAudio = nil
    }

    /// [control thread, in `negotiate`] Offers a source's sound to the stages behind it.
    public func offerAudio(_ origin: any AudioOrigin) {
        offeredAudio = PlacedAudio(origin, by: timeOffset)
    }

    /// [control thread, in `negotiate`] Tells the stages behind a source what its input says about itself.
    ///
    /// - Parameters:
    ///   - tags: The input's tags. The times of its chapters are those that the source gives.
    ///   - withheld: Why nobody should take them over unasked, where that was decided in an earlier run.
    public func offerTags(_ tags: MediaTags, withheld: PassedTags.Withheld? = nil) {
        offeredTags = PlacedTags(PassedTags(tags, withheld: withheld), by: timeOffset)
    }

    /// Hands over work that can wait and may go on after the stage's `stop`.
    ///
    /// The program stays until the job is done and shows its progress; a signal makes it give up
    /// (``JobProgress/isCancelled``). The jobs of a chain run one after the other on a thread of low priority. An error
    /// that a job throws becomes a warning, the event `job-failed`.
    ///
    /// - Parameters:
    ///   - title: For people: `finalising out.mp4`.
    ///   - body: The work.
    public func addJob(_ title: String, _ body: @escaping @Sendable (JobProgress) throws -> Void) {
        jobs.add(title, stage: stageID, body)
    }
}
