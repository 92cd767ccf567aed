// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// What a plugin's file declares in its ELF section `.framehost`. It is read before any code of the plugin runs.
struct PluginManifest: Equatable {
    static let magic = "FRAMEHOST-PLUGIN"

    var interface: Int
    var compiler: String
    var configuration: String
    /// Fingerprint of the Core it was built against.
    var core: String
    var stages: [Stage]
    /// Ids of services and picture encoders.
    var services: [String]
    var encoders: [String]

    struct Stage: Equatable {
        var id: String
        var kind: String
    }

    /// Reads the section's text.
    ///
    /// - Throws: ``ManifestFault``.
    init(section bytes: [UInt8]) throws(ManifestFault) {
        let text = String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
        var lines = text.split(separator: "\n", omittingEmptySubsequences: true).map(String.init)
        guard lines.first == Self.magic else { throw .wrongMagic }
        lines.removeFirst()
        var fields: [String: String] = [:]
        var stages: [Stage] = []
        var (services, encoders): ([String], [String]) = ([], [])
        for line in lines {
            let parts = line.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
            guard parts.count == 2 else { throw .damaged(line) }
            switch parts[0] {
            case "stage":
                let words = parts[1].split(separator: " ").map(String.init)
                guard words.count == 2 else { throw .damaged(line) }
                stages.append(Stage(id: words[0], kind: words[1]))
            case "service": services.append(parts[1])
            case "encoder": encoders.append(parts[1])
            default: fields[parts[0]] = parts[1]
            }
        }
        guard let interface = fields["interface"].flatMap({ Int($0) }) else { throw .damaged("interface") }
        self.interface = interface
        compiler = fields["compiler"] ?? ""
        configuration = fields["configuration"] ?? ""
        core = fields["core"] ?? ""
        self.stages = stages
        self.services = services
        self.encoders = encoders
    }

    /// Everything that the plugin has, with its kind: `crop-orient (transform)`.
    var exports: [String] {
        stages.map { "\($0.id) (\($0.kind))" } + services.map { "\($0) (service)" }
            + encoders.map { "\($0) (encoder)" }
    }
}

/// Why a section is not a manifest.
enum ManifestFault: Error, Equatable {
    case wrongMagic
    case damaged(String)
}

/// The Core that this program runs with.
var hostIdentity: String {
    "\(CoreIdentity.fingerprint.prefix(12)), Swift \(CoreIdentity.compiler), \(CoreIdentity.configuration)"
}
