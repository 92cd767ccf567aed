import ArgumentParser
import FrameCore

struct SchemaCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "schema",
        abstract: "Prints one JSON Schema (2020-12) for chain files, with the options of every plugin found.",
        discussion:
            "Save it beside your chain files and name it in \"$schema\": editors then complete and check as you type.")

    @OptionGroup var plugins: PluginOptions

    func run() throws {
        let registry = try plugins.registry()
        var stages: [StageType] = []
        for id in registry.ids {
            do { if let stage = try registry.stage(id) { stages.append(stage) } } catch {
                Terminal.complain("\(error)")
            }
        }
        for fault in registry.skipped { Terminal.complain("skipped: \(fault)") }
        Terminal.say(ChainSchema(stages: stages).json.text(pretty: true))
    }
}
