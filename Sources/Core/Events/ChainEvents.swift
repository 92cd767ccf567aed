/// The events that Core and the program post themselves: of the chain as a whole, and of any stage.
public enum ChainEvents {
    /// Whose an event is.
    public enum Scope: String, Sendable {
        /// The chain's: it names no stage.
        case chain = "the chain"
        /// A stage's, of whatever kind.
        case stage = "any stage"
        /// Either's.
        case both = "the chain and any stage"
    }

    public struct Entry: Sendable, Equatable {
        public var event: EventDeclaration
        public var scope: Scope
    }

    /// In the order of a run.
    public static let all: [Entry] = ofState + ofStructure + ofFaults + ofRules

    /// The declaration of this name.
    public static func entry(_ name: String) -> Entry? { byName[name] }

    private static let byName = Dictionary(uniqueKeysWithValues: all.map { ($0.event.name, $0) })

    private static func chain(_ name: String, _ summary: String, _ members: [MemberDeclaration] = []) -> Entry {
        Entry(event: EventDeclaration(name, summary, members), scope: .chain)
    }

    private static func stage(_ name: String, _ summary: String, _ members: [MemberDeclaration] = []) -> Entry {
        Entry(event: EventDeclaration(name, summary, members), scope: .stage)
    }

    private static let ofState = [
        Entry(
            event: EventDeclaration(
                "state", "The chain, or a stage, does something else now.",
                [
                    .string("state", "What it does.", words: ChainStatus.State.allCases.map(\.rawValue)),
                    .string("reason", "Why a stage recovers."),
                ]), scope: .both),
        stage("note", "What a person should know before the run: the file, device or model that was chosen."),
        stage("log", "A line of the stage's."),
        stage("stage-paused", "The stage was paused."), stage("stage-resumed", "The stage goes on after a pause."),
        stage(
            "option-changed", "Live options were set.", [.object("options", "Those that were set, where not too long.")]
        ),
        stage(
            "frames-dropped", "Items were dropped; at once, then at most every 10 s for each reason.",
            [
                .string("reason", "Why.", words: DropReason.allCases.map(\.name)),
                .number("count", "How many since the last such event."), .number("total", "How many in all."),
                .string("place", "Where, in words."),
            ]),
    ]

    private static let ofStructure = [
        chain(
            "structure-changed", "Stages were attached, taken away, replaced, or had options set, by one change.",
            [
                .list("attached", "Ids."), .list("detached", "Ids."), .list("replaced", "Ids."), .list("set", "Ids."),
            ]),
        stage("stage-attached", "The stage was attached."),
        stage("stage-replaced", "Another instance of the stage, or another stage, is in its place."),
        stage("replace-waits", "The stage has not come back from its code and is replaced when it does."),
        stage("detach-waits", "A stage has not come back from its code; what ran on its thread ends after that."),
        stage("branch-detached", "The branch that begins with this stage was taken away."),
        stage("branch-ended", "What was taken away has finished what it had.", [.list("stages", "Ids.")]),
        chain("branch-stopped", "What was taken away did not finish in time and was stopped."),
    ]

    private static let ofFaults = [
        stage(
            "stage-failed", "The stage has failed.",
            [
                .string("code", "The class of the fault.", words: FrameHostError.Code.allCases.map(\.rawValue))
            ]),
        stage("stage-restarted", "A stage that had failed was started anew."),
        stage("restart-failed", "A stage that had failed could not be started anew."),
        stage("stage-hangs", "A call of the stage has not returned for too long.", ofCall),
        stage(
            "stage-returned", "A call that took too long has returned.",
            ofCall + [
                .number("lost", "Frames that a live chain lost meanwhile.")
            ]),
        chain("stage-abandoned", "A stage did not come back from its code after stop, and was left."),
        stage(
            "out-of-buffers", "The stage's pool has been empty for a while.",
            [
                .string("pool", "Whose."), .number("ms", "For how long."),
                .number("held", "Buffers that somebody has."),
                .number("buffers", "Buffers of the pool."), .list("holders", "Who has them."),
                .list("overDeclaration", "Stages that keep more than they declare."),
            ]),
        stage(
            "link-stalled", "The link before the stage has been full for a while.",
            [
                .string("from", "The stage that waits."), .string("to", "The stage that does not take."),
                .number("ms", "For how long."),
            ]),
        stage(
            "time-not-rising", "The stage gave a frame a time that is not later than the one before.",
            [
                .number("frame", "Its number."), .number("ptsNanoseconds", "Its time."),
            ]),
        stage(
            "over-retention", "The stage keeps more buffers than it declares.",
            [
                .number("kept", "Buffers."), .number("declared", "Its hold."),
            ]),
        stage(
            "metadata-lost", "The stage gave an answer a time that none of its items has.",
            [
                .number("ptsNanoseconds", "That time.")
            ]),
        stage(
            "items-unmatched", "Items of an input matched none of the leading one: the 10th, 100th, 1,000th …", ofInput),
        stage("input-mostly-unmatched", "At the end: most items of an input found no partner.", ofInput),
        stage("usual-priority", "The system permits no higher priority for a thread that would lose pictures without."),
        stage("job-failed", "Work that a stage had left behind has failed.", [.string("job", "Which.")]),
        chain(
            "trace-did-stop", "The trace has ended, or could not be written further.",
            [
                .string("path", "Its file."), .number("bytes", "What it has."),
                .number("lost", "Entries that were lost."),
            ]),
        chain("leases-grew", "A stage shares more frames than its hold allows."),
        chain("ledger-fault", "At the end: the account of items does not balance; a bug."),
    ]

    private static let ofRules = [
        chain("rule-did", "A rule's commands were sent.", ofRule),
        chain(
            "rule-failed", "A command of a rule has failed.",
            ofRule + [
                .string("command", "Path of the command in the chain file."), .string("error", "Why."),
            ]),
        chain("rule-rests", "A rule was done too often within a short time and rests.", ofRule),
        chain("rule-events-lost", "More events came than the rules could be shown.", [.number("count", "How many.")]),
        chain(
            "rules-changed", "A reload has brought other rules.",
            [
                .number("count", "Rules there are now."), .number("kept", "Those that keep their state."),
            ]),
    ]

    private static let ofCall: [MemberDeclaration] = [
        .string("call", "Which of its functions."), .number("frame", "The item in hand."),
        .number("ms", "For how long."),
    ]
    private static let ofInput: [MemberDeclaration] = [
        .string("input", "Id of the input."), .number("given", "Items that were used."),
        .number("unmatched", "Items that matched none."), .number("repeated", "Items that were used again."),
        .number("missing", "Times that it had none."),
    ]
    private static let ofRule: [MemberDeclaration] = [
        .string("rule", "Its path in the chain file."), .bool("otherwise", "It is about the way back."),
    ]
}
