// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import FrameCore

struct DescribeCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "describe",
        abstract:
            "Describes a kind of stage: what it takes and gives, its options, commands and events; or one of its topics; or the options of a service.",
        discussion: "`framehost describe chain` lists the events of the chain itself and of every stage.")

    @Argument(help: "The plugin's id, such as test-source.")
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
                if topic == nil, let service = try registry.service(id) {
                    let text = ServiceText(service)
                    return Terminal.say(json ? text.json.text(pretty: true) : text.text)
                }
                throw FrameHostError(
                    .invalidConfiguration, place: id, what: "no such plugin",
                    remedy: registry.remedy(forUnknown: id, nearest: Suggestion.nearest))
            }
            if let topic {
                let text = TopicText(try stage.topic(topic), of: stage)
                Terminal.say(json ? text.json.text(pretty: true) : text.text)
            } else {
                let text = StageText(stage, topics: try stage.topics())
                Terminal.say(json ? text.json.text(pretty: true) : text.text)
            }
        } catch {
            throw report(error)
        }
    }
}
