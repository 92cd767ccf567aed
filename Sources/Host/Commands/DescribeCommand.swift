// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import FrameCore

struct DescribeCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "describe",
        abstract:
            "Describes a stage type (what it takes and gives, its options, commands and events), one of its topics (an effect of frei0r, for example), or a service.",
        discussion: "`framehost describe chain` lists the events of the chain itself and of every stage.")

    @Argument(
        help: ArgumentHelp(
            "The id of a stage type, a service or the picture encoder; `framehost plugins` lists them.",
            valueName: "id"))
    var id: String

    @Argument(help: "One of the stage's topics, such as an effect of frei0r.")
    var topic: String?

    @Flag(help: "Print JSON.")
    var json = false

    @OptionGroup var plugins: PluginOptions

    func run() throws {
        guard id != ChainEventText.id || topic != nil else {
            return Terminal.say(json ? ChainEventText.json.text(pretty: true) : ChainEventText.text)
        }
        let registry = try plugins.registry()
        do {
            guard let stage = try registry.stage(id) else {
                let found = try other(registry)
                if let topic, found != nil || id == ChainEventText.id {
                    throw FrameHostError(
                        .invalidConfiguration, place: id, what: "has no topic '\(topic)': only stage types have topics",
                        remedy: "Leave '\(topic)' out.")
                }
                guard let other = found else {
                    throw FrameHostError(
                        .invalidConfiguration, place: id, what: "no such stage type or service",
                        remedy: registry.remedy(forUnknown: id) {
                            Suggestion.nearest(to: $0, in: $1 + registry.otherIDs)
                        })
                }
                return Terminal.say(json ? other.json.text(pretty: true) : other.text)
            }
            if let topic {
                let found = try CrashNote.during("\(id)", "describing '\(topic)'") { try stage.topic(topic) }
                let text = TopicText(found, of: stage)
                Terminal.say(json ? text.json.text(pretty: true) : text.text)
            } else {
                let topics = try CrashNote.during("\(id)", "listing its topics") { try stage.topics() }
                let text = StageText(stage, topics: topics)
                Terminal.say(json ? text.json.text(pretty: true) : text.text)
            }
        } catch {
            throw report(error)
        }
    }

    /// A service or the picture encoder of this id; nil when no plugin has it.
    private func other(_ registry: PluginRegistry) throws -> ServiceText? {
        if let service = try registry.service(id) {
            let key = ChainFile.services.first { $0.value == id }?.key
            return ServiceText(
                id: id, summary: service.info.summary, kind: "service", key: key,
                use: key.map { "Write \"\($0)\": { … } beside \"stages\" in the chain file." }
                    ?? "This program starts no such service.",
                options: service.options)
        }
        guard let summary = try registry.encoderSummary(of: id) else { return nil }
        return ServiceText(
            id: id, summary: summary, kind: "encoder",
            use:
                "It is loaded when a picture is asked for, for example by `framehost snapshot` or the command \"snapshot\"."
        )
    }
}
