// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Publishing

/// The topics of a chain, and the contents of those that are retained. Pure.
struct MQTTTopics: Sendable {
    /// `framehost/HOST/CHAIN`.
    let base: String

    init(topic: String, host: String, chain: String) {
        base = "\(topic)/\(EventName.word(host))/\(EventName.word(chain))"
    }

    /// `online`, or `offline`, which is the last will too.
    var status: String { "\(base)/status" }
    /// The chain's state in a word.
    var state: String { "\(base)/state" }
    /// `ON` while something keeps the chain from doing its work, else `OFF`.
    var problem: String { "\(base)/problem" }
    /// States, reasons and problems as JSON.
    var details: String { "\(base)/details" }
    /// A stage's state in a word.
    func state(ofStage id: String) -> String { "\(base)/stage/\(EventName.word(id))/state" }
    /// Events of one name; not retained.
    func event(_ name: String) -> String { "\(base)/events/\(name)" }

    /// What the retained topics hold, ``status`` aside.
    func retained(_ status: ChainStatus) -> [String: String] {
        var all = [
            state: status.state.rawValue, problem: status.isHealthy ? "OFF" : "ON", details: status.json.text(),
        ]
        for stage in status.stages { all[state(ofStage: stage.id)] = stage.state.rawValue }
        return all
    }
}
