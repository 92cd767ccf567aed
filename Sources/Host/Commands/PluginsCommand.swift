// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import FrameCore

struct PluginsCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "plugins",
        abstract: "Lists the plugins that were found, their folders, and which files were skipped and why.")

    @Flag(help: "Print JSON.")
    var json = false

    @OptionGroup var plugins: PluginOptions

    func run() throws {
        let registry = try plugins.registry()
        var rows: [[String]] = []
        var nodes: [JSONNode] = []
        var refused = registry.skipped + registry.conflicts
        for plugin in registry.plugins {
            let services = plugin.manifest.services.map { PluginManifest.Stage(id: $0, kind: "service") }
            let encoders = plugin.manifest.encoders.map { PluginManifest.Stage(id: $0, kind: "encoder") }
            for stage in plugin.manifest.stages + services + encoders {
                var summary = ""
                do { summary = try registry.summary(of: stage) } catch {
                    let error = FrameHostError.wrap(error)
                    if !refused.contains(error) { refused.append(error) }
                    continue
                }
                rows.append([stage.id, stage.kind, summary, shown(plugin.path, registry)])
                nodes.append(
                    .object([
                        ("id", .string(stage.id)), ("kind", .string(stage.kind)), ("path", .string(plugin.path)),
                        ("summary", .string(summary)),
                    ]))
            }
        }
        if json {
            Terminal.say(
                JSONNode.object([
                    ("plugins", .array(nodes)), ("skipped", .array(refused.map(\.json))),
                    ("folders", .array(registry.folders.map { .string($0) })),
                ]).text(pretty: true))
            return
        }
        let others = rows.filter { StageKind(rawValue: $0[1]) == nil }
        let stages = rows.filter { StageKind(rawValue: $0[1]) != nil }
        Terminal.say(Terminal.table([["id", "kind", "what", "from"]] + stages.sorted { $0[0] < $1[0] }))
        if !others.isEmpty {
            Terminal.say("\nNot stages")
            Terminal.say(Terminal.table(others.sorted { $0[0] < $1[0] }))
        }
        if !refused.isEmpty {
            Terminal.say("\nSkipped")
            for fault in refused { Terminal.say("  \(fault)") }
        }
        Terminal.say("\nSearched: \(registry.folders.joined(separator: ", "))")
    }

    /// The file's name alone where it is one of framehost's own folder, the last that is searched.
    private func shown(_ path: String, _ registry: PluginRegistry) -> String {
        guard let own = registry.folders.last, path.hasPrefix("\(own)/") else { return path }
        return String(path.dropFirst(own.utf8.count + 1))
    }
}
