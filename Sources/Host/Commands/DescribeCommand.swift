import ArgumentParser
import FrameCore

struct DescribeCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "describe", abstract: "Describes a kind of stage: what it takes and gives, its options and commands.")

    @Argument(help: "The plugin's id, such as test-source.")
    var id: String

    @Flag(help: "Print JSON.")
    var json = false

    @OptionGroup var plugins: PluginOptions

    func run() throws {
        let registry = plugins.registry
        do {
            guard let stage = try registry.stage(id) else {
                throw FrameHostError(
                    .invalidConfiguration, place: id, what: "no such plugin",
                    remedy: registry.remedy(forUnknown: id, nearest: Suggestion.nearest))
            }
            Terminal.say(json ? StageText(stage).json.text(pretty: true) : StageText(stage).text)
        } catch {
            throw report(error)
        }
    }
}
