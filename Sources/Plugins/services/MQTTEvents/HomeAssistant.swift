// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Publishing

/// What Home Assistant needs to find a chain: one device, with a sensor for the chain and for each stage. Pure.
///
/// - SeeAlso: Home Assistant, integration MQTT, "Device discovery payload"; from version 2024.11 on.
struct HomeAssistant: Sendable {
    /// The topic of the configuration.
    let topic: String
    /// The topic in which Home Assistant says that it has started.
    let birthTopic: String
    private let id: String
    private let host: String
    private let chain: String
    private let topics: MQTTTopics

    init(prefix: String, host: String, chain: String, topics: MQTTTopics) {
        id = "framehost_\(EventName.word(host))_\(EventName.word(chain))"
        self.host = host
        self.chain = chain
        self.topics = topics
        topic = "\(prefix)/device/\(id)/config"
        birthTopic = "\(prefix)/status"
    }

    /// The configuration.
    ///
    /// - Parameters:
    ///   - stages: Ids of the chain's stages.
    ///   - removed: Ids of stages that the last configuration had; their sensors are removed.
    func configuration(stages: [String], removed: [String] = []) -> JSONNode {
        let states = JSONNode(.array(ChainStatus.State.allCases.map { .string($0.rawValue) }))
        var parts: [(key: String, value: JSONNode)] = [
            (
                "state",
                [
                    "platform": "sensor", "unique_id": .string("\(id)_state"), "name": "State",
                    "device_class": "enum", "options": states, "icon": "mdi:cctv",
                    "state_topic": .string(topics.state), "json_attributes_topic": .string(topics.details),
                ]
            ),
            (
                "problem",
                [
                    "platform": "binary_sensor", "unique_id": .string("\(id)_problem"), "name": "Problem",
                    "device_class": "problem", "state_topic": .string(topics.problem), "payload_on": "ON",
                    "payload_off": "OFF",
                ]
            ),
        ]
        for stage in stages {
            parts.append(
                (
                    Self.key(stage),
                    [
                        "platform": "sensor", "unique_id": .string("\(id)_\(Self.key(stage))"),
                        "name": .string("Stage \(stage)"), "device_class": "enum", "options": states,
                        "entity_category": "diagnostic", "state_topic": .string(topics.state(ofStage: stage)),
                    ]
                ))
        }
        // A part with nothing but its platform is removed.
        for stage in removed where !stages.contains(stage) { parts.append((Self.key(stage), ["platform": "sensor"])) }
        return [
            "device": [
                "identifiers": [.string(id)], "name": .string("\(chain) on \(host)"), "manufacturer": "framehost",
                "model": "chain",
            ],
            "origin": ["name": "framehost"],
            "availability_topic": .string(topics.status), "payload_available": "online",
            "payload_not_available": "offline", "qos": 1, "components": .object(parts),
        ]
    }

    private static func key(_ stage: String) -> String { "stage_\(EventName.word(stage))" }
}
