// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import FrameCore

struct DevicesCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "devices",
        abstract: "Lists cameras and other devices that stages can use: formats, sizes, rates, controls.",
        discussion: "`framehost describe alsa-source` lists the sound cards.")

    @Flag(help: "Print JSON.")
    var json = false

    @OptionGroup var plugins: PluginOptions

    func run() throws {
        let registry = try plugins.registry()
        var found: [(stage: String, device: StageDevice)] = []
        do {
            // Other stage types have no devices, and loading their plugins would only take time.
            let ids = registry.plugins.flatMap { $0.manifest.stages.filter { $0.kind == "source" }.map(\.id) }
            for id in ids.sorted() {
                guard let stage = try registry.stage(id), let devices = stage.devices else { continue }
                let all = try CrashNote.during("\(id)", "listing its devices") { try devices() }
                found += all.map { (id, $0) }
            }
        } catch {
            throw report(error)
        }
        let texts = found.map { DeviceText($0.device, of: $0.stage) }
        if json {
            Terminal.say(JSONNode.object([("devices", .array(texts.map(\.json)))]).text(pretty: true))
        } else if texts.isEmpty {
            Terminal.say("No camera was found: no /dev/video* gives pictures. Plug one in, or load its driver.")
        } else {
            Terminal.say(texts.map(\.text).joined(separator: "\n\n"))
        }
    }
}
