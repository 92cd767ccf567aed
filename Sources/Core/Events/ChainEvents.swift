// SPDX-License-Identifier: Apache-2.0

/// The events that Core and the program post themselves: of the chain as a whole, and of any stage.
public enum ChainEvents {
    /// What an event is about.
    public enum Scope: String, Sendable {
        /// The chain as a whole: the event names no stage.
        case chain = "the chain"
        /// A stage, of any kind.
        case stage = "any stage"
        /// The chain or a stage.
        case both = "the chain and any stage"
    }

    /// An event, and what it is about.
    public struct Entry: Sendable, Equatable {
        /// The event.
        public var event: EventDeclaration
        /// What it is about.
        public var scope: Scope
    }

    /// All of them, in the order of a run.
    public static let all: [Entry] = ofState + ofStructure + ofFaults + ofRules

    /// The event called `name`; nil when there is none.
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
                "state", "The state of the chain or of a stage has changed.",
                [
                    .string("state", "The new state.", words: ChainStatus.State.allCases.map(\.rawValue)),
                    .string("reason", "Why the stage recovers."),
                ]), scope: .both),
        stage("note", "What you should know before the run: the file, device or model that was chosen."),
        stage("log", "A line that the stage logs."),
        stage("stage-paused", "The stage was paused."), stage("stage-resumed", "The stage was resumed."),
        stage(
            "option-changed", "Live options were set.",
            [.object("options", "The options that were set, unless the list is too long.")]
        ),
        stage(
            "option-lost", "The stage refuses the value of an option that it should have after a change or its refusal."
        ),
        stage(
            "stage-lost", "The process of an isolated stage has ended, or was ended.",
            [
                .number("deaths", "How many processes of the stage have ended in this run."),
                .string("reason", "What happened, with the signal and the last lines that the process wrote."),
            ]
        ),
        stage(
            "frame-failed",
            "A stage in another language could not process frames, and lives on. Posted at once, then at most every 10 s.",
            [
                .number("frames", "How many frames since the last such event."),
                .string("reason", "What the stage says of the last one: the exception, with its file and line."),
                .string("cause", "More of it: the traceback."),
            ]
        ),
        stage(
            "frames-dropped",
            "Items were dropped. Posted at once, then at most every 10 s for each reason; a warning where a live chain loses items.",
            [
                .string("reason", "Why.", words: DropReason.allCases.filter { $0 != .replaced }.map(\.name)),
                .number("count", "Items dropped since the last such event."),
                .number("total", "Items dropped in total."),
                .string("place", "Where they were dropped, in words."),
                .string(
                    "bound", "Of a link, which limit its queue reached: a key of 'link'.",
                    words: ["queue", "seconds", "megabytes"]),
                .string(
                    "tooSlow",
                    "Id of the stage that is too slow: its thread was at work nearly all the time, and most of that in this stage."
                ),
                .number("busyPercent", "Per cent of the last second in which that stage was at work."),
            ]),
    ]

    private static let ofStructure = [
        chain(
            "structure-changed", "One change attached, detached or replaced stages, or set options.",
            [
                .list("attached", "Ids."), .list("detached", "Ids."), .list("replaced", "Ids."), .list("set", "Ids."),
            ]),
        stage("stage-attached", "The stage was attached."),
        stage("stage-replaced", "A new instance of the stage, or another stage, has replaced it."),
        stage("replace-waits", "A call of the stage has not returned. The stage is replaced when it does."),
        stage("replace-missed", "The stage ended before it could be replaced."),
        stage(
            "detach-waits", "A call of the stage has not returned. The detached stages on its thread end when it does."),
        stage("attach-waits", "A call of the stage has not returned. The change is complete when it does."),
        stage("branch-detached", "The branch that starts with this stage was detached."),
        stage("branch-ended", "The detached branch has finished the items it held.", [.list("stages", "Ids.")]),
        chain("branch-stopped", "The detached branch did not finish in time and was stopped."),
    ]

    private static let ofFaults = [
        stage(
            "stage-end-failed", "An instance of the stage that was replaced, or was not needed, could not end in order."
        ),
        stage(
            "stage-failed", "The stage has failed.",
            [
                .string("code", "The code of the fault.", words: FrameHostError.Code.allCases.map(\.rawValue))
            ]),
        stage("stage-restarted", "A failed stage was restarted."),
        stage("restart-failed", "A failed stage could not be restarted."),
        stage("stage-hangs", "A call of the stage has not returned for too long.", ofCall),
        stage(
            "stage-returned", "A call that took too long has returned.",
            ofCall + [
                .number("lost", "Frames that a live chain lost during the call.")
            ]),
        chain("stage-abandoned", "A call of the stage did not return after stop, and the stage was abandoned."),
        stage(
            "out-of-buffers", "The stage's pool has been empty for a while.",
            [
                .string("pool", "The stage whose pool it is."), .number("ms", "For how long."),
                .number("held", "Buffers in use."),
                .number("buffers", "Buffers of the pool."), .list("holders", "The stages that hold them."),
                .list("overDeclaration", "Stages that keep more than they declare."),
            ]),
        stage(
            "link-stalled", "The link before the stage has been full for a while.",
            [
                .string("from", "The stage that waits."), .string("to", "The stage that does not take items."),
                .number("ms", "For how long."),
            ]),
        stage(
            "time-not-rising", "The stage gave a frame a time that is not later than the one before.",
            [
                .number("frame", "The frame's number."), .number("ptsNanoseconds", "The frame's PTS."),
            ]),
        stage(
            "over-retention", "The stage keeps more buffers than it declares.",
            [
                .number("kept", "Buffers that it keeps."), .number("declared", "The hold that it declares."),
            ]),
        stage(
            "metadata-lost", "The stage gave an output a PTS, but holds no input with this PTS.",
            [
                .number("ptsNanoseconds", "The output's PTS.")
            ]),
        stage(
            "items-unmatched", "Items of an input matched no item of the leading input: the 10th, 100th, 1,000th …",
            ofInput),
        stage("input-mostly-unmatched", "At the end: most items of an input matched no other item.", ofInput),
        stage(
            "usual-priority",
            "A thread runs at normal priority, because the system refused it a higher one. On a busy machine what it captures may be lost."
        ),
        stage("job-failed", "A job that a stage left behind has failed.", [.string("job", "Name of the job.")]),
        chain(
            "trace-did-stop", "The trace has ended, or could no longer be written.",
            [
                .string("path", "The trace file."), .number("bytes", "Bytes in the trace file."),
                .number("lost", "Entries that were lost."),
            ]),
        chain(
            "lines-lost",
            "Lines of the log or of standard output were left out, since nobody read them in time. On standard output it stands where they are missing.",
            [
                .string("stream", "Which of the two.", words: ["output", "log"]), .number("lines", "How many."),
            ]),
        chain("leases-grew", "A stage shares more frames than its hold allows."),
        chain("ledger-fault", "At the end: the ledger of items does not balance. This is a bug."),
    ]

    private static let ofRules = [
        chain("rule-did", "A rule's commands were sent.", ofRule),
        chain(
            "rule-failed", "A command of a rule has failed.",
            ofRule + [
                .string("command", "Path of the command in the chain file."), .string("error", "Why."),
            ]),
        chain("rule-rests", "A rule ran too often within a short time and rests.", ofRule),
        chain("rule-events-lost", "Events came faster than the rules could follow.", [.number("count", "How many.")]),
        chain(
            "rules-changed", "A reload has changed the rules.",
            [
                .number("count", "Number of rules now."), .number("kept", "Rules that keep their state."),
            ]),
    ]

    private static let ofCall: [MemberDeclaration] = [
        .string("call", "The function that was called."), .number("frame", "Number of the item that it works on."),
        .number("ms", "For how long."),
    ]
    private static let ofInput: [MemberDeclaration] = [
        .string("input", "Id of the input."), .number("given", "Items that were used."),
        .number("unmatched", "Items that matched no other."), .number("repeated", "Items that were used again."),
        .number("missing", "Times that the input had no item."),
    ]
    private static let ofRule: [MemberDeclaration] = [
        .string("rule", "Its path in the chain file."), .bool("otherwise", "True for the commands of 'otherwise'."),
    ]
}
