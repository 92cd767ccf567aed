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
        let services = services.map { key, type in
            (
                key,
                [
                    "type": "object", "description": .string(type.info.summary), "additionalProperties": false,
                    "properties": .object(type.options.map(Self.property)),
                ] as JSONNode
            )
        }
        return .object(
            [("$schema", "https://json-schema.org/draft/2020-12/schema"), ("title", "framehost chain")]
                + ChainKeys.chain.schema(further: services) + [("$defs", .object(definitions))])
    }

    private var definitions: [(key: String, value: JSONNode)] {
        let types: [JSONNode] = stages.map { stage in
            [
                "if": ["properties": ["use": ["const": .string(stage.info.id)]], "required": ["use"]],
                "then": ["$ref": .string("#/$defs/\(stage.info.id)")],
            ]
        }
        let ids = JSONNode.array(stages.map { .string($0.info.id) })
        // The options of a program are known only to the program.
        let use: JSONNode = ["anyOf": [["enum": ids], ["pattern": .string(ProgramStages.pattern)]]]
        return [
            ("stage", .object(ChainKeys.stage.schema(values: ["use": use]) + [("allOf", .array(types))])),
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
        let own: [(key: String, value: JSONNode)] = ChainKeys.stage.names.compactMap { key in
            if key == "use" { return (key, ["const": .string(stage.info.id)]) }
            guard key != "join" || stage.kind == .join else { return nil }
            return (key, ["$ref": .string("#/$defs/stage/properties/\(key)")])
        }
        return [
            "type": "object", "description": .string(stage.info.summary), "additionalProperties": false,
            "properties": .object(own + stage.options.map(Self.property)),
        ]
    }
}
