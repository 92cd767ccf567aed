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

    /// Topics that states of several stages would go to, with these stages in their order.
    func shared(by stages: [String]) -> [(topic: String, stages: [String])] {
        Dictionary(grouping: stages) { state(ofStage: $0) }.filter { $0.value.count > 1 }
            .sorted { $0.key < $1.key }.map { (topic: $0.key, stages: $0.value) }
    }

    /// What the retained topics hold, ``status`` aside.
    func retained(_ status: ChainStatus) -> [String: String] {
        var all = [
            state: status.state.rawValue, problem: status.isHealthy ? "OFF" : "ON", details: status.json.text(),
        ]
        for stage in status.stages { all[state(ofStage: stage.id)] = stage.state.rawValue }
        return all
    }
}

/// Which shared topics have been reported: each, with its stages, once in a run.
struct SharedTopics {
    private var told: Set<[String]> = []
    /// No more are remembered or reported.
    private static let most = 1000

    /// Those of `shared` that were not reported before.
    mutating func take(_ shared: [(topic: String, stages: [String])]) -> [(topic: String, stages: [String])] {
        shared.filter { told.count < Self.most && told.insert([$0.topic] + $0.stages).inserted }
    }
}
