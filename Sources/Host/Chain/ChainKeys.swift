// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// The keys of the chain file. Those of services and of a stage's options come from the plugins.
enum ChainKeys {
    static let chain = ChainObject<ChainRequest>(
        title: "A chain", help: "A chain of stages.", example: "{ \"stages\": [ … ] }",
        keys: [
            ChainKey(
                "stages", help: "The stages.",
                [
                    "type": "array", "minItems": 1, "maxItems": .number(ChainFile.mostStages),
                    "items": ["$ref": "#/$defs/stage"],
                ], example: "[ { \"use\": \"test-source\" }, … ]"),
            ChainKey(
                "drainSeconds", help: "Longest time that a drain may take (s).",
                ChainValue(0...3600, default: ChainRequest(file: "", folder: "", stages: []).drainSeconds, unit: "s")
            ) { $0.drainSeconds = $1 },
            ChainKey(
                "buffers",
                help:
                    "Buffers of a stage's pool, by the stage's id, instead of the computed number. Fewer than 'min' are refused; in a chain with a join 'min' is 'need'. With fewer than 'need' the source may wait, or lose frames if it is live.",
                ["type": "object", "additionalProperties": .object(buffers.schema)]),
            ChainKey(
                "spare",
                help:
                    "Buffers of each pool beyond 'need', for branches that are attached while the chain runs. They take no memory until a branch needs them. A pool whose number 'buffers' sets gets none. Default: 3 in live chains, else 0.",
                ChainValue(0...4096)
            ) { $0.spare = $1 },
            ChainKey(
                "on", help: "Rules: commands that are sent when events happen.",
                ["type": "array", "maxItems": .number(RuleReader.most), "items": ["$ref": "#/$defs/rule"]]),
            .note,
            ChainKey(
                "$schema", help: "The JSON Schema by which an editor checks the file; framehost ignores it.",
                ["type": "string"]),
        ])

    /// A number in `buffers`.
    static let buffers = ChainValue(1...4096)

    /// What a stage says beside its options and inputs.
    struct Stage {
        var onError: OnError?
        var isUnread = false
        var isOriginal = false
        var isolation: IsolationRequest?
    }

    static let stage = ChainObject<Stage>(
        title: "A stage", help: "A stage and its options.", example: "{ \"use\": \"…\" }", isOpen: true,
        keys: [
            ChainKey(
                "use",
                help:
                    "The stage type, or a program that is a filter: `python:blur.py`, `program:invert`, each by its path from the chain file's folder.",
                ["type": "string"], example: "\"test-source\"",
                strangers: ["type", "plugin"]),
            ChainKey(
                "id",
                help:
                    "Its name in this chain: 1 to 64 letters (a to z, A to Z), digits, '-' or '_'. Default: the value of 'use'; for a program, its file's name without the ending.",
                ["type": "string", "pattern": "^[A-Za-z0-9_-]{1,64}$"]),
            ChainKey(
                "from",
                help:
                    "The stage that gives its input, or an output of it (clip.audio). A list for a join, and for a sink of several inputs. Two stages that name the same stage make a fork. Default: the stage before it.",
                ["anyOf": [["type": "string"], ["type": "array", "minItems": 1, "items": ["type": "string"]]]]),
            ChainKey("link", link),
            ChainKey("join", join),
            ChainKey(
                "unread", help: "True if no stage takes its output, on purpose. Otherwise that is a fault.",
                ChainValue(default: Stage().isUnread)
            ) { $0.isUnread = $1 },
            ChainKey(
                "original",
                help:
                    "True if the sink may have pictures in which a privacy stage hides something. Otherwise that is a fault.",
                ChainValue(default: Stage().isOriginal)
            ) { $0.isOriginal = $1 },
            ChainKey(
                "isolate",
                help:
                    "Runs a filter in a process of its own, so that its crash or hang ends nothing else: true, or an object with how.",
                ["anyOf": [["type": "boolean"], .object(isolation.schema())]]),
            ChainKey(
                "onError",
                help:
                    "What happens when the stage fails. Default: \"stop\", but \"continue\" for a sink that is not the only one.",
                ChainValue<OnError>()
            ) { $0.onError = $1 },
            .note,
        ])

    static let isolation = ChainObject<IsolationRequest>(
        title: "'isolate'", help: "How a stage runs in a process of its own.",
        example: "true, or { \"onDeath\": \"drop\" }",
        keys: [
            ChainKey(
                "onDeath",
                help:
                    "What becomes of a frame while there is no process. Default: \"pass\", but \"cover\" for a stage that hides something.",
                ChainValue<IsolationRequest.OnDeath>()
            ) { $0.onDeath = $1 },
            ChainKey(
                "sandbox",
                help:
                    "What the process may not do: \"default\" forbids the network, \"none\" only new rights and core files.",
                ChainValue(default: IsolationRequest().sandbox)
            ) { $0.sandbox = $1 },
            ChainKey(
                "deadlineMs",
                help:
                    "Longest time that the process may take for a frame (ms); then it is ended. Default: four frame times, at least 100. The first frame may take 5000.",
                ChainValue(1...3_600_000, unit: "ms")
            ) { $0.deadlineMs = $1 },
            ChainKey(
                "deathsPerMinute",
                help: "How often the process may end within a minute. With one time more the stage has failed.",
                ChainValue(0...1000, default: IsolationRequest().deathsPerMinute)
            ) { $0.deathsPerMinute = $1 },
        ])

    static let link = ChainObject<LinkRequest>(
        title: "A link", help: "The queue before this stage.", example: "{ \"queue\": 2, \"whenFull\": \"wait\" }",
        keys: [
            ChainKey(
                "queue", help: "Length in items; 0 runs the stage on its producer's thread.", ChainValue(0...4096)
            ) { $0.queue = $1 },
            ChainKey("whenFull", help: "What happens to an item that finds the queue full.", ChainValue<DropPolicy>()) {
                $0.whenFull = $1
            },
            ChainKey(
                "seconds", help: "Access units and sound: longest span queued (s). Default: 8.",
                ChainValue(above: 0, to: 3600)
            ) { $0.seconds = $1 },
            ChainKey(
                "megabytes", help: "Access units and sound: most bytes queued (MB). Default: 64.",
                ChainValue(above: 0, to: 16384)
            ) { $0.megabytes = $1 },
            ChainKey(
                "copy",
                help:
                    "The stage and those after it get copies, in buffers of their own. So the stages before it never wait for them to give buffers back.",
                ChainValue(default: LinkRequest().copies)
            ) { $0.copies = $1 },
        ])

    static let join = ChainObject<JoinRequest>(
        title: "A join", help: "How a join matches its inputs, and when it ends.",
        example: "{ \"match\": \"nearest\" }",
        keys: [
            ChainKey(
                "match", help: "How items are matched to those of the leading input.", ChainValue(default: usual.match)
            ) { $0.match = $1 },
            ChainKey(
                "lead", help: "The leading input, whose times the result has. Default: the first of 'from'.",
                ["type": "string"]),
            ChainKey(
                "whenEnded", help: "The join ends when this input ends.", ChainValue(default: usual.whenEnded)
            ) { $0.whenEnded = $1 },
            ChainKey(
                "hold", help: "An input that has ended keeps giving its last picture.", ChainValue(default: usual.hold)
            ) { $0.hold = $1 },
        ])
    private static let usual = JoinRule(frameTimes: [])

    /// The times of a rule, or of its `otherwise`.
    struct RuleTimes {
        var holdNs: Int64?
        var everyNs: Int64?
    }

    private static let holds = ChainValue<Double>(0...86_400, unit: "s")
    private static let commands: JSONNode = [
        "anyOf": [
            ["$ref": "#/$defs/command"],
            [
                "type": "array", "minItems": 1, "maxItems": .number(RuleReader.mostCommands),
                "items": ["$ref": "#/$defs/command"],
            ],
        ]
    ]
    private static let command = "{ \"stage\": \"…\", \"command\": \"…\" }"

    static let rule = ChainObject<RuleTimes>(
        title: "A rule", help: "What the chain does when something happens.",
        example: "{ \"event\": \"…\", \"do\": { … } }",
        keys: [
            ChainKey(
                "event",
                help:
                    "The event that triggers the rule; `framehost describe TYPE` and `framehost describe chain` list the events.",
                ["type": "string"], example: "\"…\""),
            ChainKey(
                "stage", help: "The stage that posts the event; needed when several stages post it.",
                ["type": "string"]),
            ChainKey(
                "when", help: "Conditions on the event's members. Without them every such event fits.",
                ["type": "object", "minProperties": 1]),
            ChainKey("for", help: "How long the conditions must hold (s).", holds, needs: "when") {
                $0.holdNs = MediaTime(seconds: $1).nanoseconds
            },
            ChainKey(
                "every", help: "Shortest time before the rule acts again (s).",
                ChainValue<Double>(0.1...86_400, unit: "s")
            ) {
                $0.everyNs = MediaTime(seconds: $1).nanoseconds
            },
            ChainKey("do", help: "The commands that are sent.", commands, example: command),
            ChainKey("otherwise", otherwise, needs: "when"),
            .note,
        ], hint: " Options of commands go in 'do'.")

    static let otherwise = ChainObject<RuleTimes>(
        title: "'otherwise'", help: "What is done when the conditions no longer hold, after 'do' was done.",
        example: "{ \"for\": 5, \"do\": { … } }",
        keys: [
            ChainKey("for", help: "How long the conditions must not hold (s). Default: 0.", holds) {
                $0.holdNs = MediaTime(seconds: $1).nanoseconds
            },
            ChainKey("do", help: "The commands that are sent.", commands, example: command),
        ])
}
