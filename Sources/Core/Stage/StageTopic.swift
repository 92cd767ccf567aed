// SPDX-License-Identifier: Apache-2.0

/// Something that a stage type finds on the system, such as an installed effect: what `framehost describe TYPE
/// TOPIC` tells.
///
/// Plain values, so that a host prints them without knowing what they are about.
public struct StageTopic: Sendable {
    /// As people ask for it: `glow`.
    public var name: String
    /// One sentence, or a part of one; may be empty.
    public var summary: String
    /// Further things to know, each under a word of its own: `file`, `author`.
    public var facts: [Fact]
    /// What can be set, and in which option it is written.
    public var values: [OptionField]
    /// The option that takes `values`; empty where there are none.
    public var option: String

    /// One line about a topic.
    public struct Fact: Sendable, Equatable {
        /// The word before the value: `author`.
        public var name: String
        /// The value.
        public var value: String

        /// A line `name: value`.
        public init(_ name: String, _ value: String) {
            self.name = name
            self.value = value
        }
    }

    /// Describes a topic.
    public init(_ name: String, summary: String, facts: [Fact] = [], values: [OptionField] = [], option: String = "") {
        self.name = name
        self.summary = summary
        self.facts = facts
        self.values = values
        self.option = option
    }
}

extension StageType {
    /// [control thread] The topic of this name, in any case.
    ///
    /// - Throws: ``FrameHostError`` that names the nearest topic, or says that the stage has none; what the stage
    ///   throws.
    public func topic(_ name: String) throws -> StageTopic {
        if let topic = try findTopic(name) { return topic }
        let names = try findTopics().map(\.name)
        throw FrameHostError(
            .invalidConfiguration, place: info.id,
            what: names.isEmpty
                ? "has no topic '\(name)': this stage type has no topics"
                : names.count == 1
                    ? "its only topic is '\(names[0])', not '\(name)'"
                    : "'\(name)' is not among its \(names.count) topics",
            remedy: Suggestion.nearest(to: name, in: names).map { "Did you mean '\($0)'?" }
                ?? (names.isEmpty
                    ? "Write only `framehost describe \(info.id)`."
                    : "Run `framehost describe \(info.id)` to list its topics."))
    }

    /// [control thread] All topics, without their values.
    ///
    /// - Throws: What the stage throws.
    public func topics() throws -> [StageTopic] { try findTopics() }
}
