// SPDX-License-Identifier: Apache-2.0

import FrameCore

extension ControlAPI {
    /// All routes, in the order of the OpenAPI document.
    var routes: [Route] { ofServer + ofLogins + ofChain + ofStages + ofPictures }

    // MARK: The server

    private var ofServer: [Route] {
        [
            Route(
                method: .get, path: "/healthz", name: "getHealth", rights: .watch,
                summary: "Whether the chain is healthy.",
                answers: [
                    "200": OpenAPI.json("It is healthy.", "Health"),
                    "503": OpenAPI.json("It is not healthy; `problems` says why.", "Health"),
                ]
            ) { _ in
                let status = control.status
                return .json(
                    .object([
                        ("healthy", .bool(status.isHealthy)), ("state", .string(status.state.rawValue)),
                        ("problems", .array(status.problems.map { .string($0) })),
                    ]), status: status.isHealthy ? 200 : 503)
            },
            Route(
                method: .get, path: "/metrics", name: "getMetrics", rights: .watch,
                summary: "Figures in the Prometheus text format.",
                answers: ["200": OpenAPI.text("Figures.", MetricsText.type)]
            ) { _ in
                var text = MetricsText()
                text.add(
                    metrics: control.metrics, status: control.status, chain: control.chainName,
                    process: ProcessFigures.now())
                text.add(viewers: viewers.withLock { $0 })
                return Answer(200, MetricsText.type, .bytes(text.bytes))
            },
            Route(
                method: .get, path: "/openapi.json", name: "getOpenAPI", rights: .watch, summary: "This document.",
                answers: ["200": OpenAPI.json("An OpenAPI document, version 3.1.", nil)]
            ) { _ in
                .json(OpenAPI.document(routes, chain: control.chainName, desk: gate.desk))
            },
        ]
    }

    // MARK: The chain

    private var ofChain: [Route] {
        [
            Route(
                method: .get, path: "/api/v1/status", name: "getStatus", rights: .watch,
                summary: "What the chain and its stages are doing.",
                answers: ["200": OpenAPI.json("State and health.", "Status")]
            ) { _ in .json(control.namedStatus) },
            Route(
                method: .get, path: "/api/v1/chain", name: "getChain", rights: .watch,
                summary: "The running chain as a chain file.",
                answers: ["200": OpenAPI.json("A chain file.", "Chain")]
            ) { _ in .json(control.chain) },
            Route(
                method: .put, path: "/api/v1/chain", name: "putChain", rights: .control,
                summary: "Replaces the running chain by another one: completely or not at all.",
                body: .required(["$ref": "#/components/schemas/Chain"]), answers: OpenAPI.done
            ) { call in
                try await perform(
                    ["command": "reload", "chain": call.body ?? [:]], by: call.caller, within: Self.changePatience)
            },
            Route(
                method: .get, path: "/api/v1/plan", name: "getPlan", rights: .watch,
                summary: "Threads, queues, formats and budgets, as `framehost check --json` prints them.",
                answers: ["200": OpenAPI.json("The plan.", "Object")]
            ) { _ in .json(control.plan) },
            Route(
                method: .get, path: "/api/v1/figures", name: "getFigures", rights: .watch,
                summary: "Figures, as --stats writes them.",
                answers: ["200": OpenAPI.json("The figures.", "Object")]
            ) { _ in .json(control.figures) },
            Route(
                method: .get, path: "/api/v1/metrics", name: "getMetricsJSON", rights: .watch,
                summary: "The figures of /metrics as JSON, and rates computed from them.",
                query: [
                    QueryParameter(
                        name: "interval",
                        help: "Seconds over which rates are wanted, if more than 3: the time between two requests.",
                        kind: .number(0.1...3600))
                ],
                answers: ["200": OpenAPI.json("Stages, links, pools, the process and the rates.", "Metrics")]
            ) { call in
                let metrics = control.metricsWithProcess.asObject ?? []
                let rates = rates.json(over: call.query.double("interval"))
                return .json(.object(metrics.map { ($0.key, $0.value) } + [("rates", rates)]))
            },
            Route(
                method: .get, path: "/api/v1/kinds", name: "getKinds", rights: .watch,
                summary: "The stage types in the chain, as `framehost describe --json` prints them.",
                answers: ["200": OpenAPI.json("Members are named by stage type.", nil)]
            ) { _ in .json(control.kinds) },
            Route(
                method: .post, path: "/api/v1/branches", name: "attachBranch", rights: .control,
                summary: "Attaches stages after a stage of the running chain.",
                body: .required(OpenAPI.branch), answers: OpenAPI.done
            ) { call in
                let members = (call.body?.asObject ?? []).map { ($0.key, $0.value) }
                try Self.refuse(unknownIn: members.map(\.0), known: ["at", "stages", "copy"])
                return try await perform(
                    .object([("command", "attach")] + members), by: call.caller, within: Self.changePatience)
            },
            Route(
                method: .post, path: "/api/v1/drain", name: "drain", rights: .control,
                summary: "Ends the chain: sources stop, and what is in progress is finished.",
                body: .optional(OpenAPI.noMembers), answers: OpenAPI.done
            ) { call in
                try Self.refuse(unknownIn: (call.body?.asObject ?? []).map(\.key), known: [])
                return try await perform(["command": "drain"], by: call.caller, within: Self.stagePatience)
            },
            Route(
                method: .get, path: "/api/v1/events", name: "getEvents", rights: .watch,
                summary: "Events as they happen, as server-sent events; each is a line of --events.",
                answers: ["200": OpenAPI.text("A stream that ends with the chain.", EventStream.type)]
            ) { call in try eventStream(call) },
            Route(
                method: .get, path: LiveProtocol.path, name: "getLive", rights: .watch,
                summary: "A WebSocket with previews and events; docs/control.md has its messages.",
                answers: [
                    "101": ["description": "The WebSocket is open."],
                    "426": [
                        "description": "The request is not a WebSocket handshake.", "content": OpenAPI.errorContent,
                    ],
                ]
            ) { call in
                guard viewers.withLock({ $0.sockets }) < LiveProtocol.mostSockets else {
                    throw Self.tooMany("\(LiveProtocol.mostSockets) WebSockets are already open")
                }
                throw LiveHandshake.refusal(of: call.head)
            },
        ]
    }

    // MARK: Stages

    private var ofStages: [Route] {
        let stage = "/api/v1/stages/{id}"
        return [
            Route(
                method: .get, path: "/api/v1/stages", name: "getStages", rights: .watch,
                summary: "A short list of the stages.",
                answers: ["200": OpenAPI.json("In the order of the chain.", "Stages")]
            ) { _ in .json(.array(StageList(control).inShort)) },
            Route(
                method: .get, path: stage, name: "getStage", rights: .watch,
                summary: "A stage: its state, its part of the chain file, its figures.",
                answers: ["200": OpenAPI.json("The stage.", "Stage")]
            ) { call in
                let id = call.path["id"] ?? ""
                guard let whole = StageList(control).whole(id) else { throw noStage(id) }
                return .json(whole)
            },
            Route(
                method: .patch, path: "\(stage)/options", name: "setOptions", rights: .control,
                summary: "Changes live options of a stage: all of them or none.",
                body: .required(["type": "object", "description": "New values, by option name."]),
                answers: OpenAPI.done
            ) { call in
                let id = call.path["id"] ?? ""
                return try await perform(
                    ["stage": .string(id), "set": call.body ?? [:]], by: call.caller, subject: id,
                    within: Self.stagePatience)
            },
            Route(
                method: .post, path: "\(stage)/commands/{name}", name: "sendCommand", rights: .control,
                summary: "Sends the stage one of its own commands.",
                body: .optional(["type": "object", "description": "The command's arguments."]), answers: OpenAPI.done
            ) { call in
                let (id, name) = (call.path["id"] ?? "", call.path["name"] ?? "")
                // These commands have addresses of their own. As a stage's own command they would mean something else.
                guard !["pause", "resume", "detach", "replace", "snapshot"].contains(name) else {
                    throw Refusal(
                        404, "not-found", place: "path",
                        "'\(name)' has an address of its own and must not be sent to this one",
                        "Find the address of '\(name)' in /openapi.json.")
                }
                return try await perform(
                    ["stage": .string(id), "command": .string(name), "arguments": call.body ?? [:]], by: call.caller,
                    subject: id,
                    within: Self.stagePatience)
            },
            Route(
                method: .post, path: "\(stage)/pause", name: "pauseStage", rights: .control,
                summary:
                    "Pauses a stage: a source gives nothing; a filter passes frames unchanged or, with `drop`, drops them.",
                body: .optional(OpenAPI.drop), answers: OpenAPI.done
            ) { call in
                let id = call.path["id"] ?? ""
                let members = (call.body?.asObject ?? []).map { ($0.key, $0.value) }
                try Self.refuse(unknownIn: members.map(\.0), known: ["drop"])
                return try await perform(
                    .object([("stage", .string(id)), ("command", "pause")] + members), by: call.caller, subject: id,
                    within: Self.stagePatience)
            },
            Route(
                method: .post, path: "\(stage)/resume", name: "resumeStage", rights: .control, summary: "Ends a pause.",
                body: .optional(OpenAPI.noMembers), answers: OpenAPI.done
            ) { call in
                let id = call.path["id"] ?? ""
                try Self.refuse(unknownIn: (call.body?.asObject ?? []).map(\.key), known: [])
                return try await perform(
                    ["stage": .string(id), "command": "resume"], by: call.caller, subject: id,
                    within: Self.stagePatience)
            },
            Route(
                method: .put, path: stage, name: "replaceStage", rights: .control,
                summary: "Replaces a stage by another one; its neighbours stay.",
                query: [
                    QueryParameter(
                        name: "drop", help: "Drops what the stage still holds, instead of draining it.",
                        kind: .flag)
                ],
                body: .required(["$ref": "#/components/schemas/ChainStage"]), answers: OpenAPI.done
            ) { call in
                let id = call.path["id"] ?? ""
                return try await perform(
                    [
                        "stage": .string(id), "command": "replace", "with": call.body ?? [:],
                        "drop": .bool(call.query.flag("drop")),
                    ], by: call.caller, subject: id, within: Self.changePatience)
            },
            Route(
                method: .delete, path: stage, name: "detachStage", rights: .control,
                summary: "Removes a stage and everything after it from the running chain.", answers: OpenAPI.done
            ) { call in
                let id = call.path["id"] ?? ""
                return try await perform(
                    ["stage": .string(id), "command": "detach"], by: call.caller, subject: id,
                    within: Self.changePatience)
            },
        ]
    }

    // MARK: Pictures

    private var ofPictures: [Route] {
        let stage = "/api/v1/stages/{id}"
        return [
            Route(
                method: .get, path: "\(stage)/picture", name: "getPicture", rights: .watch,
                summary: "The next picture of a stage. Waits at most one second.",
                query: PictureQuery.parameters(isStream: false), answers: OpenAPI.picture
            ) { call in try await picture(call) },
            Route(
                method: .get, path: "\(stage)/pictures", name: "getPictures", rights: .watch,
                summary: "Pictures of a stage as they arrive (multipart/x-mixed-replace). A slow viewer gets fewer.",
                query: PictureQuery.parameters(isStream: true),
                answers: ["200": OpenAPI.text("A stream that ends with the chain.", PictureStream.type)]
            ) { call in try await pictureStream(call) },
        ]
    }

    // MARK: Faults

    func noStage(_ id: String) -> Refusal {
        let ids = control.status.stages.map(\.id)
        return Refusal(
            404, "not-found", place: String(id.prefix(256)), "no such stage",
            Suggestion.nearest(to: id, in: ids).map { "Did you mean '\($0)'?" }
                ?? "Name a stage of the chain: \(QueryParameter.alternatives(ids.map { "'\($0)'" })).",
            reason: .noSuchStage)
    }

    static func refuse(unknownIn keys: [String], known: [String]) throws {
        guard let odd = keys.first(where: { !known.contains($0) }) else { return }
        throw Refusal(
            400, "invalid-configuration", place: String(odd.prefix(256)), "no such member",
            Suggestion.nearest(to: odd, in: known).map { "Did you mean '\($0)'?" }
                ?? (known.isEmpty ? "Leave it out." : "Use \(QueryParameter.alternatives(known)), or leave it out."),
            reason: .noSuchKey)
    }
}

/// The stages of the running chain as the API shows them.
struct StageList {
    private let control: any RunControl
    private let figures: [JSONNode]
    private let status: ChainStatus

    init(_ control: any RunControl) {
        self.control = control
        figures = control.metrics["stages"]?.asArray ?? []
        status = control.status
    }

    var inShort: [JSONNode] { figures.map { .object(short($0)) } }

    /// Everything about a stage; nil where none has this id.
    func whole(_ id: String) -> JSONNode? {
        guard let found = figures.first(where: { $0["id"]?.asString == id }) else { return nil }
        let inFile = (control.chain["stages"]?.asArray ?? []).first {
            ($0["id"] ?? $0["use"])?.asString == id
        }
        let figures = (control.figures["stages"]?.asArray ?? []).first { $0["id"]?.asString == id }
        return .object(
            short(found) + [
                ("chain", inFile ?? .null), ("figures", figures ?? .null),
            ])
    }

    private func short(_ figures: JSONNode) -> [(key: String, value: JSONNode)] {
        let id = figures["id"]?.asString ?? ""
        var members: [(key: String, value: JSONNode)] = ["id", "use", "kind", "framesIn", "framesOut"].map {
            ($0, figures[$0] ?? .null)
        }
        if let stage = status.stages.first(where: { $0.id == id }) {
            members.append(("state", .string(stage.state.rawValue)))
            if !stage.reason.isEmpty { members.append(("reason", .string(stage.reason))) }
        } else {
            members.append(("state", .string(status.state.rawValue)))
        }
        members.append(("showsOriginals", .bool(control.showsOriginals(id))))
        return members
    }
}
