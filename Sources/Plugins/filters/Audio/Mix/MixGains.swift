// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Glibc

/// A gain in decibels for each input that has one: `{ "mic": 3, "music": -12 }`.
struct MixGains: OptionValue, Equatable {
    /// In the order of the file.
    var list: [Gain] = []

    struct Gain: Equatable {
        var input: String
        var db: Double
    }

    static let range = -120.0...60.0

    /// What the samples of an input are multiplied with. The lowest gain is silence.
    func factor(of input: String) -> Float {
        guard let db = list.last(where: { $0.input == input })?.db else { return 1 }
        return db <= Self.range.lowerBound ? 0 : Float(pow(10, db / 20))
    }

    static func decodeOption(_ node: JSONNode) throws(OptionFault) -> MixGains {
        let remedy = "Write { \"mic\": 3, \"music\": -12 }: inputs by their ids, with their gains in dB."
        guard let members = node.asObject else {
            throw OptionFault("\(node.text()) must be an object with gains in dB", remedy: remedy)
        }
        var list: [Gain] = []
        for member in members {
            guard let db = member.value.asDouble, range.contains(db) else {
                throw OptionFault(
                    "the gain of '\(member.key)' must be a number from -120 to 60, but is \(member.value.text())",
                    remedy: remedy)
            }
            list.append(Gain(input: member.key, db: db))
        }
        return MixGains(list: list)
    }
    var optionJSON: JSONNode { .object(list.map { ($0.input, $0.db.optionJSON) }) }
    static var optionTypeName: String { "gains" }
    static var optionSchema: JSONNode {
        ["type": "object", "additionalProperties": ["type": "number", "minimum": -120, "maximum": 60]]
    }
}
