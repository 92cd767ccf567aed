// SPDX-License-Identifier: Apache-2.0

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
        var services: [(key: String, type: ServiceType)] = []
        for (key, id) in ChainFile.services.sorted(by: { $0.key < $1.key }) {
            do { if let service = try registry.service(id) { services.append((key, service)) } } catch {
                Terminal.complain("\(error)")
            }
        }
        Terminal.say(ChainSchema(stages: stages, services: services).json.text(pretty: true))
    }
}
