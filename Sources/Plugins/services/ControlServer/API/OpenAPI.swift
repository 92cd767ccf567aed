// SPDX-License-Identifier: Apache-2.0

import FrameCore
import ServerAccess

/// The OpenAPI 3.1 document, made from the routes.
enum OpenAPI {
    static func document(_ routes: [Route], chain: String, desk: LoginDesk) -> JSONNode {
        var paths: [(key: String, value: JSONNode)] = []
        for route in routes {
            var operations = [(route.method.rawValue, operation(route))]
            if route.method == .get { operations.append(("head", headOperation(route))) }
            if let index = paths.firstIndex(where: { $0.key == route.path }) {
                paths[index].value = .object(
                    (paths[index].value.asObject ?? []).map { ($0.key, $0.value) } + operations)
            } else {
                paths.append((route.path, .object(pathParameters(route) + operations)))
            }
        }
        var members: [(String, JSONNode)] = [
            ("openapi", "3.1.0"),
            (
                "info",
                [
                    "title": .string("framehost: \(chain)"), "version": "1",
                    "description": "Observes and controls a running chain of video stages. See docs/control.md.",
                ]
            ),
            ("paths", .object(paths)), ("components", .object(components(desk))),
        ]
        if !desk.isOpen {
            let ways: [JSONNode] =
                (desk.hasToken || desk.hasUsers ? [["token": []]] : []) + (desk.hasUsers ? [["user": []]] : [])
            members.append(("security", .array(ways)))
        }
        return .object(members)
    }

    // MARK: Operations

    private static func operation(_ route: Route) -> JSONNode {
        var members: [(String, JSONNode)] =
            [
                ("operationId", .string(route.name)), ("summary", .string(route.summary)),
            ] + rights(route)
        if !route.query.isEmpty { members.append(("parameters", query(route))) }
        switch route.body {
        case .none: break
        case .optional(let schema): members.append(("requestBody", body(schema, isRequired: false)))
        case .required(let schema): members.append(("requestBody", body(schema, isRequired: true)))
        }
        members.append(("responses", responses(route.answers)))
        return .object(members)
    }

    /// What its caller needs.
    private static func rights(_ route: Route) -> [(String, JSONNode)] {
        let words = route.rights.words
        guard !words.isEmpty else { return [("description", "Needs no right."), ("security", [])] }
        return [("description", .string("Needs the right \(words.map { "`\($0)`" }.joined(separator: " and "))."))]
    }

    private static func headOperation(_ route: Route) -> JSONNode {
        var members: [(String, JSONNode)] = [
            ("operationId", .string("head" + route.name.dropFirst(3))), ("summary", .string(route.summary)),
        ]
        if !route.query.isEmpty { members.append(("parameters", query(route))) }
        members.append(("responses", ["default": ["description": "The header fields of the GET response."]]))
        return .object(members)
    }

    private static func pathParameters(_ route: Route) -> [(String, JSONNode)] {
        guard !route.parameters.isEmpty else { return [] }
        let parameters: [JSONNode] = route.parameters.map { name in
            [
                "name": .string(name), "in": "path", "required": true,
                "description": name == "id" ? "The id of a stage." : "The name of a command.",
                "schema": ["type": "string", "minLength": 1],
            ]
        }
        return [("parameters", .array(parameters))]
    }

    private static func query(_ route: Route) -> JSONNode {
        .array(
            route.query.map { parameter in
                [
                    "name": .string(parameter.name), "in": "query", "description": .string(parameter.help),
                    "schema": parameter.schema,
                ]
            })
    }

    private static func body(_ schema: JSONNode, isRequired: Bool) -> JSONNode {
        ["required": .bool(isRequired), "content": ["application/json": ["schema": schema]]]
    }

    /// The answers of a route, and the refusals that every route may give.
    private static func responses(_ answers: JSONNode) -> JSONNode {
        let own = (answers.asObject ?? []).map { ($0.key, $0.value) }
        return .object(
            own + [
                (
                    "401",
                    [
                        "description":
                            "The token or login is missing or wrong. `logins` of the error says which there are.",
                        "headers": ["WWW-Authenticate": ["schema": ["type": "string"]]], "content": errorContent,
                    ]
                ),
                (
                    "403",
                    [
                        "description":
                            "The client does not have the right, or the request comes from a page of another origin.",
                        "content": errorContent,
                    ]
                ),
                (
                    "429",
                    [
                        "description": "There were too many wrong logins from this address.",
                        "headers": ["Retry-After": ["schema": ["type": "integer"]]], "content": errorContent,
                    ]
                ),
                ("405", ["description": "`Allow` lists the methods.", "headers": allow, "content": errorContent]),
                (
                    "default",
                    [
                        "description": "Nothing was done. The error says what is wrong, where, and what to do.",
                        "content": errorContent,
                    ]
                ),
            ])
    }

    private static let allow: JSONNode = ["Allow": ["schema": ["type": "string"]]]
    static let errorContent: JSONNode = [
        "application/json": ["schema": ["$ref": "#/components/schemas/Error"]]
    ]

    // MARK: Answers

    /// - Parameter schema: The name of a component; nil for any object.
    static func json(_ description: String, _ schema: String?) -> JSONNode {
        let schema: JSONNode = schema.map { ["$ref": .string("#/components/schemas/\($0)")] } ?? ["type": "object"]
        return ["description": .string(description), "content": ["application/json": ["schema": schema]]]
    }

    static func text(_ description: String, _ type: String) -> JSONNode {
        let schema: JSONNode = ["schema": ["type": "string"]]
        return [
            "description": .string(description),
            "content": .object([(String(type.prefix { $0 != ";" }), schema)]),
        ]
    }

    static let done: JSONNode = ["200": json("It was done.", "Done")]

    static let picture: JSONNode = [
        "200": [
            "description": "The picture.",
            "headers": [
                "Framehost-Frame": ["description": "Its sequence number.", "schema": ["type": "string"]],
                "Framehost-Captured": ["description": "When it was captured, UTC.", "schema": ["type": "string"]],
            ], "content": ["image/jpeg": [:], "image/png": [:]],
        ],
        "204": ["description": "There was no picture within a second."],
    ]

    // MARK: Schemas

    static let noMembers: JSONNode = ["type": "object", "additionalProperties": false]
    static let drop: JSONNode = [
        "type": "object", "properties": ["drop": ["type": "boolean"]], "additionalProperties": false,
    ]
    static let branch: JSONNode = [
        "type": "object", "required": ["at", "stages"], "additionalProperties": false,
        "properties": [
            "at": ["type": "string", "description": "The stage whose pictures the branch gets."],
            "stages": ["type": "array", "minItems": 1, "items": ["$ref": "#/components/schemas/ChainStage"]],
            "copy": [
                "type": "boolean", "description": "Gives the branch copies, so that it never blocks the chain.",
            ],
        ],
    ]

    private static func components(_ desk: LoginDesk) -> [(key: String, value: JSONNode)] {
        let schemas: [(String, JSONNode)] = [
            ("Object", ["type": "object"]), ("Metrics", metrics), ("Rates", rates), ("Done", done(of: ["frame"])),
            ("Error", error), ("Health", health), ("Login", login(withSession: false)),
            ("Session", login(withSession: true)),
            ("Status", status), ("Chain", chain), ("ChainStage", chainStage), ("StageInShort", stageInShort),
            ("Stages", ["type": "array", "items": ["$ref": "#/components/schemas/StageInShort"]]),
            (
                "Stage",
                [
                    "allOf": [["$ref": "#/components/schemas/StageInShort"]], "type": "object",
                    "required": ["chain", "figures"],
                    "properties": [
                        "chain": ["type": ["object", "null"], "description": "Its part of the chain file."],
                        "figures": ["type": ["object", "null"], "description": "As --stats writes them."],
                    ],
                ]
            ),
        ]
        var components: [(key: String, value: JSONNode)] = [("schemas", .object(schemas.map { ($0.0, $0.1) }))]
        guard !desk.isOpen else { return components }
        var schemes: [(key: String, value: JSONNode)] = [
            (
                "token",
                [
                    "type": "http", "scheme": "bearer",
                    "description": "The token of `control`, or the session of a login.",
                ]
            )
        ]
        if desk.hasUsers { schemes.append(("user", ["type": "http", "scheme": "basic"])) }
        components.append(("securitySchemes", .object(schemes)))
        return components
    }

    static let credentials: JSONNode = [
        "type": "object", "required": ["name", "password"], "additionalProperties": false,
        "properties": ["name": ["type": "string"], "password": ["type": "string"]],
    ]

    private static func login(withSession: Bool) -> JSONNode {
        var properties: [(key: String, value: JSONNode)] = [
            ("by", ["enum": ["nobody", "token", "user"], "description": "How the client has shown who it is."]),
            ("name", ["type": ["string", "null"], "description": "Of a user."]),
            ("rights", ["type": "array", "items": ["enum": .array(Rights.words.map { .string($0.word) })]]),
        ]
        if withSession {
            properties.append(
                ("session", ["type": "string", "description": "Sent from now on as a token: Authorization: Bearer."]))
        }
        return [
            "type": "object", "required": .array(properties.map { .string($0.key) }), "properties": .object(properties),
        ]
    }

    private static func done(of required: [JSONNode]) -> JSONNode {
        [
            "type": "object", "required": .array(required),
            "properties": [
                "frame": [
                    "type": "integer", "minimum": 0,
                    "description": "Sequence number of the first frame that is affected.",
                ],
                "text": ["type": "string", "description": "The same for people."],
            ],
        ]
    }

    private static let fault: JSONNode = [
        "type": "object", "required": ["what", "place", "remedy", "code"],
        "properties": [
            "what": ["type": "string"], "place": ["type": "string"], "remedy": ["type": "string"],
            "code": ["type": "string"], "cause": ["type": "string"],
            "reason": [
                "type": "string", "enum": .array(FrameHostError.Reason.allCases.map { .string($0.rawValue) }),
                "description": "What exactly is wrong, for programs. The sentences may change.",
            ],
            "option": ["type": "string", "description": "The option or key that the error is about."],
            "logins": [
                "type": "array", "items": ["enum": ["user", "token"]],
                "description": "How a client may show who it is, of status 401.",
            ],
        ],
    ]
    private static let error: JSONNode = [
        "type": "object", "required": ["error"],
        "properties": [
            "error": fault,
            "faults": ["type": "array", "items": fault, "description": "All errors, if there are several."],
        ],
    ]
    private static let states: JSONNode = [
        "type": "string", "enum": .array(ChainStatus.State.allCases.map { .string($0.rawValue) }),
    ]
    private static let problems: JSONNode = ["type": "array", "items": ["type": "string"]]
    private static let health: JSONNode = [
        "type": "object", "required": ["healthy", "state", "problems"],
        "properties": ["healthy": ["type": "boolean"], "state": states, "problems": problems],
    ]
    private static let status: JSONNode = [
        "type": "object", "required": ["name", "state", "healthy", "problems", "stages"],
        "properties": [
            "name": ["type": "string"], "state": states, "healthy": ["type": "boolean"], "problems": problems,
            "stages": [
                "type": "array",
                "items": [
                    "type": "object", "required": ["id", "state"],
                    "properties": ["id": ["type": "string"], "state": states, "reason": ["type": "string"]],
                ],
            ],
        ],
    ]
    private static let metrics: JSONNode = [
        "type": "object", "required": ["stages", "links", "pools", "process", "rates"],
        "properties": [
            "stages": objects, "links": objects, "pools": objects, "process": ["type": "object"],
            "rates": ["$ref": "#/components/schemas/Rates"],
        ],
    ]
    private static let objects: JSONNode = ["type": "array", "items": ["type": "object"]]
    private static let count: JSONNode = ["type": "integer", "minimum": 0]
    /// Null for what is not known yet.
    private static let known: JSONNode = ["type": ["number", "null"]]
    /// The members that `LiveFigures` writes.
    private static let rates: JSONNode = [
        "type": "object",
        "description":
            "Times in seconds, shares from 0 to 1, null for what is not known yet. Rates cover the last 3 s, and p99 and losses the last 10 s.",
        "required": ["name", "state", "healthy", "problems", "captured", "latency", "stages", "links", "pools"],
        "properties": [
            "name": ["type": "string"], "state": states, "healthy": ["type": "boolean"], "problems": problems,
            "captured": known, "uptimeSeconds": known, "processor": known,
            "residentBytes": ["type": ["integer", "null"]],
            "latency": ["type": ["object", "null"], "properties": ["sink": ["type": "string"], "seconds": known]],
            "stages": [
                "type": "array",
                "items": [
                    "type": "object", "required": ["id", "state", "rate", "busy", "lost", "drops", "notes"],
                    "properties": [
                        "id": ["type": "string"], "use": ["type": "string"], "kind": ["type": "string"],
                        "state": states, "rate": known, "waitSeconds": known, "busy": known, "busySeconds": known,
                        "latencySeconds": known, "p99Seconds": known, "p99IsBound": ["type": "boolean"],
                        "p99AboveSeconds": known, "queues": objects, "held": count, "heldLimit": count,
                        "heldOldestSeconds": known, "dropRate": known, "drops": count, "lost": count,
                        "lostInAll": count, "replaced": count, "format": ["type": "string"], "problems": problems,
                        "notes": [
                            "type": "array",
                            "items": [
                                "type": "object", "required": ["level", "word", "text"],
                                "properties": [
                                    "level": ["enum": ["bad", "warn", "rest"]], "word": ["type": "string"],
                                    "text": ["type": "string"],
                                ],
                            ],
                        ],
                    ],
                ],
            ],
            "links": [
                "type": "array",
                "items": [
                    "type": "object", "required": ["from", "to", "rate", "lost", "full"],
                    "properties": [
                        "from": ["type": "string"], "to": ["type": "string"], "depth": count, "capacity": count,
                        "rate": known, "drops": count, "replaced": count, "lost": count,
                        "full": ["type": "boolean"],
                    ],
                ],
            ],
            "pools": [
                "type": "array",
                "items": [
                    "type": "object", "required": ["name", "buffers", "free", "starved"],
                    "properties": ["name": ["type": "string"], "buffers": count, "free": count, "starved": known],
                ],
            ],
        ],
    ]
    private static let chainStage: JSONNode = [
        "type": "object", "required": ["use"], "properties": ["use": ["type": "string"], "id": ["type": "string"]],
        "description": "A stage as in a chain file.",
    ]
    private static let chain: JSONNode = [
        "type": "object", "required": ["stages"],
        "properties": [
            "stages": ["type": "array", "minItems": 1, "items": ["$ref": "#/components/schemas/ChainStage"]]
        ],
        "description": "As `framehost schema` describes it.",
    ]
    private static let stageInShort: JSONNode = [
        "type": "object", "required": ["id", "use", "kind", "state"],
        "properties": [
            "id": ["type": "string"], "use": ["type": "string"], "kind": ["type": "string"], "state": states,
            "reason": ["type": "string"], "framesIn": ["type": "integer"], "framesOut": ["type": "integer"],
            "showsOriginals": [
                "type": "boolean",
                "description":
                    "Whether its pictures need the right `originals`: a stage with privacy behind it covers something.",
            ],
        ],
    ]
}
