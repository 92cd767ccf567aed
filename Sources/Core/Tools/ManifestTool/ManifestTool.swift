// SPDX-License-Identifier: Apache-2.0

import Foundation

/// Writes `FramehostManifest.swift`, run by the build-tool plugin of the same name.
///
///     manifest-tool core|plugin CORE_FOLDER OUTPUT CORE_FILE… -- SOURCE_FILE…
///
/// The manifest is text, so that `readelf -p .framehost plugin.so` shows it:
///
///     FRAMEHOST-PLUGIN
///     interface=1
///     compiler=6.3.1 …
///     configuration=release
///     core=3f6b…            fingerprint of all of Core's sources
///     stage=mirror filter
///
/// Instead of stages a plugin may have `service=control-server` or `encoder=picture-encoder`.
@main
struct ManifestTool {
    static func main() {
        do {
            try run(Array(CommandLine.arguments.dropFirst()))
        } catch {
            FileHandle.standardError.write(Data("error: \(error)\n".utf8))
            exit(1)
        }
    }

    static func run(_ arguments: [String]) throws {
        guard arguments.count >= 3, let dash = arguments.firstIndex(of: "--") else {
            throw Fault("usage: manifest-tool core|plugin CORE_FOLDER OUTPUT CORE_FILE… -- SOURCE_FILE…")
        }
        let core = URL(fileURLWithPath: arguments[1])
        let fingerprint = try fingerprint(of: arguments[3..<dash].map { ($0, core.appending(path: $0)) })
        let text: String
        if arguments[0] == "core" {
            text = coreFile(fingerprint: fingerprint)
        } else {
            let exports = try SourceScan(files: arguments[(dash + 1)...].map { URL(fileURLWithPath: $0) }).exports()
            text = pluginFile(fingerprint: fingerprint, exports: exports)
        }
        try write(text, to: URL(fileURLWithPath: arguments[2]))
    }

    /// Leaves a file alone that has this content already. SwiftPM links this tool anew for every build and so runs
    /// it again. A file that is written again, though equal, would make it compile all of Core and every plugin
    /// once more.
    private static func write(_ text: String, to file: URL) throws {
        let data = Data(text.utf8)
        if (try? Data(contentsOf: file)) != data { try data.write(to: file) }
    }

    struct Fault: Error, CustomStringConvertible {
        let description: String
        init(_ description: String) { self.description = description }
    }

    /// Two FNV-1a sums with different starts over names and contents, 32 hexadecimal digits. They tell versions
    /// apart, but do not guard against forgery (a plugin runs inside the host anyway).
    static func fingerprint(of files: [(name: String, url: URL)]) throws -> String {
        var a: UInt64 = 0xcbf2_9ce4_8422_2325
        var b: UInt64 = 0x8422_2325_cbf2_9ce4
        func add(_ byte: UInt8) {
            a = (a ^ UInt64(byte)) &* 0x100_0000_01b3
            b = (b ^ UInt64(byte ^ 0x5a)) &* 0x100_0000_01b3
        }
        for (name, url) in files {
            for byte in name.utf8 { add(byte) }
            add(0)
            for byte in try Data(contentsOf: url) { add(byte) }
            add(0)
        }
        func hex(_ value: UInt64) -> String {
            let digits = String(value, radix: 16)
            return String(repeating: "0", count: 16 - digits.count) + digits
        }
        return hex(a) + hex(b)
    }

    static var compiler: String {
        #if compiler(>=6.4)
            "6.4 or newer"
        #elseif compiler(>=6.3.1)
            "6.3.1"
        #elseif compiler(>=6.3)
            "6.3"
        #else
            "older than 6.3"
        #endif
    }

    static func coreFile(fingerprint: String) -> String {
        """
        // Written by manifest-tool; changes with every source file of Core.

        /// The Core that this program runs with. The loader compares it with the one that a plugin was built against.
        public enum CoreIdentity {
            /// The fingerprint of all of Core's sources: 32 hexadecimal digits.
            public static let fingerprint = "\(fingerprint)"
            /// The compiler that built it: `6.3.1`.
            public static let compiler = "\(compiler)"
            #if DEBUG
                /// How it was built: `debug` or `release`.
                public static let configuration = "debug"
            #else
                /// How it was built: `debug` or `release`.
                public static let configuration = "release"
            #endif
        }

        """
    }

    static func pluginFile(fingerprint: String, exports: [(id: String, kind: String)]) -> String {
        func section(_ configuration: String) -> String {
            var text =
                "FRAMEHOST-PLUGIN\ninterface=1\ncompiler=\(compiler)\nconfiguration=\(configuration)\ncore=\(fingerprint)\n"
            for export in exports {
                let isStage = !["service", "encoder"].contains(export.kind)
                text += isStage ? "stage=\(export.id) \(export.kind)\n" : "\(export.kind)=\(export.id)\n"
            }
            var bytes = Array(text.utf8) + [0]
            while bytes.count % 8 != 0 { bytes.append(0) }
            let words = stride(from: 0, to: bytes.count, by: 8).map { start in
                bytes[start..<start + 8].reversed().reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
            }
            let type = words.map { _ in "UInt64" }.joined(separator: ", ")
            let values = words.map { "0x" + String($0, radix: 16) }.joined(separator: ", ")
            return "@section(\".framehost\") @used let framehostManifest: (\(type)) =\n    (\(values))"
        }
        return """
            // Written by manifest-tool: what the host reads from the file before it loads it.
            #if DEBUG
            \(section("debug"))
            #else
            \(section("release"))
            #endif

            """
    }
}

/// Finds what a plugin exports in its sources: the types named in `PluginEntry.export(…)`, the protocol each
/// adopts, and its `id:`.
struct SourceScan {
    let texts: [(name: String, text: String)]

    init(files: [URL]) throws {
        texts = try files.map {
            ($0.lastPathComponent, Self.withoutComments(try String(contentsOf: $0, encoding: .utf8)))
        }
    }

    func exports() throws -> [(id: String, kind: String)] {
        let exports = texts.flatMap { matches(#"PluginEntry\s*\.\s*export\s*\(([^)]*)\)"#, in: $0.text) }
        guard exports.count == 1 else {
            throw ManifestTool.Fault(
                exports.isEmpty
                    ? "this target has no PluginEntry.export(…): add one, as docs/writing-a-plugin.md of framehost shows"
                    : "PluginEntry.export(…) appears \(exports.count) times in this target: write one entry with all its stages"
            )
        }
        return try exports[0][1].split(separator: ",").map { part in
            // `Mirror.self`, or with the argument's name before it: `service: ControlServer.self`.
            let name = part.split(separator: ":").last.map(String.init) ?? ""
            return try export(name.trimmingCharacters(in: .whitespacesAndNewlines).replacing(".self", with: ""))
        }
    }

    private func export(_ type: String) throws -> (id: String, kind: String) {
        let kinds = [
            "Source": "source", "Filter": "filter", "MultiFilter": "filter", "DelayingFilter": "filter",
            "Transform": "transform", "MultiTransform": "transform",
            "Join": "join", "Sink": "sink", "MultiSink": "sink", "Service": "service", "PictureEncoder": "encoder",
        ]
        for (name, text) in texts {
            let pattern = #"(?:class|struct|actor)\s+"# + type + #"\s*:\s*([A-Za-z0-9_,\s.]+?)\s*\{"#
            guard let found = matches(pattern, in: text).first else { continue }
            let adopted = found[1].split(separator: ",").map { $0.trimmingCharacters(in: .whitespacesAndNewlines) }
            guard let kind = adopted.compactMap({ kinds[String($0.split(separator: ".").last ?? "")] }).first else {
                throw ManifestTool.Fault(
                    "\(name): \(type) must adopt one of Source, Filter, Transform, Join, Sink, Service and PictureEncoder"
                )
            }
            // The id that follows the type's declaration most closely.
            let after = String(text[text.range(of: found[0])!.upperBound...])
            let info = ["service", "encoder"].contains(kind) ? "ServiceInfo" : "StageInfo"
            guard let id = matches(info + #"\s*\(\s*id\s*:\s*"([a-z0-9-]+)""#, in: after).first else {
                throw ManifestTool.Fault(
                    "\(name): \(type) has no `\(info)(id: \"…\"` with a literal in kebab-case as its first argument")
            }
            return (id[1], kind)
        }
        throw ManifestTool.Fault(
            "\(type) is exported, but no source file of this target declares it with its protocol: final class \(type): Filter"
        )
    }

    private func matches(_ pattern: String, in text: String) -> [[String]] {
        guard let expression = try? NSRegularExpression(pattern: pattern) else { return [] }
        let whole = NSRange(text.startIndex..., in: text)
        return expression.matches(in: text, range: whole).map { match in
            (0..<match.numberOfRanges).map { Range(match.range(at: $0), in: text).map { String(text[$0]) } ?? "" }
        }
    }

    /// The text with comments blanked, so that an example in a doc comment is not taken for code.
    private static func withoutComments(_ text: String) -> String {
        var result: [Substring] = []
        for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
            let trimmed = line.drop { $0 == " " || $0 == "\t" }
            result.append(trimmed.hasPrefix("//") ? "" : line)
        }
        return result.joined(separator: "\n")
    }
}
