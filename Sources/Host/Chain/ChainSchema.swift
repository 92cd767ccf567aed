// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// The JSON Schema of chain files, from the same options that ``ChainFile`` checks with. JSON Schema 2020-12, core and
/// validation.
struct ChainSchema {
    private let stages: [StageType]
    /// Services, by their key in the chain file.
    private let services: [(key: String, type: ServiceType)]

    init(stages: [StageType], services: [(key: String, type: ServiceType)] = []) {
        self.stages = stages
        self.services = services
    }

    var json: JSONNode {
        [
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "title": "framehost chain",
            "type": "object",
            "required": ["stages"],
            "additionalProperties": false,
            "properties": .object(properties),
            "$defs": .object(definitions),
        ]
    }

    private var properties: [(key: String, value: JSONNode)] {
        let own: JSONNode =
            [
                "$schema": ["type": "string"],
                "note": ["description": "A comment for people; framehost ignores it."],
                "drainSeconds": [
                    "type": "number", "minimum": 0, "maximum": 3600, "default": 10,
                    "description": "Longest time that a drain may take (s).",
                ],
                "buffers": [
                    "type": "object",
                    "description": "Buffers of a stage's pool, by its id, instead of the computed number.",
                    "additionalProperties": ["type": "integer", "minimum": 1, "maximum": 4096],
                ],
                "spare": [
                    "type": "integer", "minimum": 0, "maximum": 4096,
                    "description":
                        "Extra buffers in each pool, for branches that are attached while the chain runs.",
                ],
                "on": [
                    "type": "array", "maxItems": .number(RuleReader.most),
                    "description": "Rules: commands that are sent when events happen.",
                    "items": ["$ref": "#/$defs/rule"],
                ],
                "stages": [
                    "type": "array", "minItems": 1, "maxItems": .number(ChainFile.mostStages),
                    "items": ["$ref": "#/$defs/stage"],
                ],
            ]
        return (own.asObject ?? []).map { ($0.key, $0.value) }
            + services.map { key, type in
                (
                    key,
                    [
                        "type": "object", "description": .string(type.info.summary), "additionalProperties": false,
                        "properties": .object(type.options.map(Self.property)),
                    ]
                )
            }
    }

    private var definitions: [(key: String, value: JSONNode)] {
        [
            (
                "stage",
                [
                    "type": "object", "required": ["use"],
                    "properties": ["use": ["enum": .array(stages.map { .string($0.info.id) })]],
                    "allOf": .array(
                        stages.map { stage in
                            [
                                "if": ["properties": ["use": ["const": .string(stage.info.id)]], "required": ["use"]],
                                "then": ["$ref": .string("#/$defs/\(stage.info.id)")],
                            ]
                        }),
                ]
            ),
            ("id", ["type": "string", "pattern": "^[A-Za-z0-9_-]{1,64}$"]),
            (
                "from",
                [
                    "description":
                        "The stage that gives its input, or an output of it (clip.audio). Default: the stage before it. A list for a join, and for a sink of several inputs.",
                    "anyOf": [["type": "string"], ["type": "array", "minItems": 1, "items": ["type": "string"]]],
                ]
            ),
            (
                "link",
                [
                    "type": "object", "additionalProperties": false, "description": "The queue before this stage.",
                    "properties": [
                        "queue": [
                            "type": "integer", "minimum": 0, "maximum": 4096,
                            "description": "Places; 0 runs the stage on its producer's thread.",
                        ],
                        "whenFull": ["enum": .array(DropPolicy.allCases.map { .string($0.rawValue) })],
                        "seconds": [
                            "type": "number", "exclusiveMinimum": 0, "maximum": 3600,
                            "description": "Access units: longest span queued (s).",
                        ],
                        "megabytes": [
                            "type": "number", "exclusiveMinimum": 0, "maximum": 16384,
                            "description": "Access units: most bytes queued (MB).",
                        ],
                        "copy": [
                            "type": "boolean", "default": false,
                            "description": "The stage and those after it get copies, in buffers of their own.",
                        ],
                    ],
                ]
            ),
            (
                "join",
                [
                    "type": "object", "additionalProperties": false,
                    "description": "How a join matches its inputs.",
                    "properties": [
                        "match": [
                            "enum": .array(JoinMatch.allCases.map { .string($0.rawValue) }), "default": "nearest",
                            "description": "How items are matched to those of the leading input.",
                        ],
                        "lead": ["type": "string", "description": "The leading input. Default: the first."],
                        "whenEnded": [
                            "enum": .array(JoinEnd.allCases.map { .string($0.rawValue) }), "default": "lead",
                            "description": "The join ends when this input ends.",
                        ],
                        "hold": [
                            "type": "boolean", "default": false,
                            "description": "An input that has ended keeps giving its last picture.",
                        ],
                    ],
                ]
            ),
            ("rule", RuleSchema(stages: stages).rule), ("command", RuleSchema.command),
            // The value of a text with ${NAME} is known only when the chain is read.
            ("environment", ["type": "string", "pattern": "\\$\\{"]),
        ] + stages.map { ($0.info.id, schema(of: $0)) }
    }

    private static func property(_ option: OptionField) -> (key: String, value: JSONNode) {
        let isText =
            option.schema["type"]?.asString == "string" && option.schema["pattern"] != nil
            || option.schema["enum"] != nil
        return (option.name, isText ? ["anyOf": [option.schema, ["$ref": "#/$defs/environment"]]] : option.schema)
    }

    private func schema(of stage: StageType) -> JSONNode {
        var properties: [(key: String, value: JSONNode)] = [
            ("use", ["const": .string(stage.info.id)]), ("id", ["$ref": "#/$defs/id"]),
            ("from", ["$ref": "#/$defs/from"]),
            ("link", ["$ref": "#/$defs/link"]),
            ("note", ["description": "A comment for people; framehost ignores it."]),
            ("unread", ["type": "boolean", "description": "No stage takes its output, on purpose."]),
            ("onError", ["enum": .array(OnError.allCases.map { .string($0.rawValue) })]),
        ]
        if stage.kind == .join { properties.append(("join", ["$ref": "#/$defs/join"])) }
        properties += stage.options.map(Self.property)
        return [
            "type": "object", "description": .string(stage.info.summary), "additionalProperties": false,
            "properties": .object(properties),
        ]
    }
}
