// SPDX-License-Identifier: Apache-2.0

import FrameCore

struct Frei0rOptions: StageOptions {
    @Option(
        help:
            "Name of the effect, such as glow, or the path of its library in a folder of effects. If absent, `framehost check` lists the installed effects."
    )
    var effect = ""
    @Option(
        help:
            "Values of the effect's parameters by their names, in upper or lower case: { \"Blur\": 0.7 }. A value is true or false, 0...1, \"#rrggbb\", [x, y] or a string. If a name is unknown, `framehost check` suggests a similar name, or lists all names.",
        live: true)
    var parameters = EffectParameters()
}

/// The option `parameters`: names and values as in the chain file. Only the effect knows what they mean.
struct EffectParameters: OptionValue {
    var members: [JSONNode.Member] = []

    static func decodeOption(_ node: JSONNode) throws(OptionFault) -> EffectParameters {
        guard let members = node.asObject else {
            throw OptionFault(
                "expected an object, found \(node.kindName)", remedy: "Write names and values: { \"Blur\": 0.7 }.")
        }
        return EffectParameters(members: members)
    }
    var optionJSON: JSONNode { JSONNode(.object(members)) }
    static var optionTypeName: String { "object" }
    static var optionSchema: JSONNode { ["type": "object"] }
}
