// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// Reads the options that `--set` gives to stages of a chain file.
struct SettingReader: ChainPartReader {
    /// An option from the command line, and the argument that it came from.
    typealias Setting = (member: JSONNode.Member, text: String)

    let name: String
    /// Indices of the stages, by id.
    let ids: [String: Int]
    var faults: [FrameHostError] = []

    init(name: String, ids: [String: Int]) {
        self.name = name
        self.ids = ids
    }

    /// Reads `--set stage.option=value`, where the value is JSON or else a string. Returns the settings by index of
    /// the stage.
    mutating func read(_ settings: [String]) -> [Int: [Setting]] {
        var changes: [Int: [Setting]] = [:]
        for setting in settings {
            let place = "--set \(Self.shown(setting))"
            func refuse(_ what: String, _ remedy: String) {
                faults.append(
                    FrameHostError(
                        .invalidConfiguration, place: FaultPlace(argument: place), what: what, remedy: remedy))
            }
            guard let (stage, option, value) = Self.parts(of: setting) else {
                refuse("must have the form stage.option=value", "Write for example --set h264.bitrateKbps=2500.")
                continue
            }
            guard let index = ids[stage] else {
                refuse(
                    "no stage '\(stage)'",
                    remedyOfUnknownStage(stage, in: ids.sorted { $0.value < $1.value }.map(\.key)))
                continue
            }
            guard !ChainKeys.stage.names.contains(option) else {
                refuse(
                    "'\(option)' is a key of the chain file, and --set changes only the options of a stage",
                    "Change '\(option)' in the chain file.")
                continue
            }
            let filled = setting.contains("${") ? expanded(value, "stages[\(index)].\(option)") : value
            changes[index, default: []].append((JSONNode.Member(key: option, value: filled), setting))
        }
        return changes
    }

    /// A setting as a fault names it: without a value that is, or may be, a secret.
    static func shown(_ setting: String) -> String {
        guard let end = setting.firstIndex(of: "=") else { return setting.contains("@") ? "…" : setting }
        let option = setting[..<end].lowercased()
        let isSecret = ["token", "login", "password", "credentials", "key"].contains { option.hasSuffix($0) }
        return isSecret || setting[end...].contains("@") ? "\(setting[...end])…" : setting
    }

    /// The parts of `stage.option=value`; nil for a text of another form.
    static func parts(of setting: String) -> (stage: String, option: String, value: JSONNode)? {
        guard let equals = setting.firstIndex(of: "="), let dot = setting[..<equals].firstIndex(of: ".") else {
            return nil
        }
        let text = String(setting[setting.index(after: equals)...])
        var value = (try? JSONReader.read(Array(text.utf8), file: "--set")) ?? .string(text)
        value.place = TextPlace(line: 0, column: 0)
        return (String(setting[..<dot]), String(setting[setting.index(after: dot)..<equals]), value)
    }
}
