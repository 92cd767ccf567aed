// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Glibc

/// What the outputs of a batch depend on beside their inputs: the chain and the plugins that it uses.
struct ChainIdentity: Sendable {
    /// SHA-256 of the chain's text without comments and spaces, of `--set`, of the variables that the text names, and
    /// of `--parts`.
    let chain: String
    /// SHA-256 of the image of each plugin, by the ids that the chain uses. Sorted.
    let plugins: [(id: String, sha256: String)]
    /// The files of the plugins.
    let images: [String]
    /// The files that the chain reads beside its input, and the content of the files that are the same for all inputs.
    let reads: ReadFiles
    let files: [FileDigest]

    /// Variables that differ from unit to unit.
    static let ownVariables: Set<String> = ["input", "output", "name"]

    /// - Throws: ``FrameHostError`` if a plugin's file cannot be read.
    init(
        _ root: JSONNode, settings: [String], parts: Double?, registry: PluginRegistry, reads: ReadFiles,
        _ identity: InputIdentity.Kind, _ digest: FetchLibrary
    ) throws {
        self.reads = reads
        files = reads.common.map { FileDigest($0, identity, digest) }
        var text = root.withoutPlaces.text() + "\n" + settings.joined(separator: "\n") + "\n"
        for name in Self.variables(in: text).subtracting(Self.ownVariables).sorted() {
            text += "\(name)=\(getenv(name).map { String(cString: $0) } ?? "")\n"
        }
        // Rate control does not cross a joint, so the output depends on the length of the parts.
        if let parts { text += "parts \(parts)\n" }
        chain = digest.sha256(of: text)
        // The planner inserts 'convert' between stages whose formats differ.
        let ids = Set((root["stages"]?.asArray ?? []).compactMap { $0["use"]?.asString } + ["convert"])
        images = ids.sorted().compactMap { registry.path(of: $0) }
        plugins = try ids.sorted().compactMap { id in
            guard let path = registry.path(of: id) else { return nil }
            let file = open(path, O_RDONLY | O_CLOEXEC)
            defer { if file >= 0 { close(file) } }
            guard file >= 0, let digest = digest.sha256(of: file) else {
                throw FrameHostError(
                    .unavailable, place: path, what: "cannot be read: \(String(cString: strerror(errno)))",
                    remedy: "Make the plugin's file readable for this user.")
            }
            return (id, digest)
        }
    }

    /// The names of all `${NAME}` and `${NAME:-default}` in a text.
    static func variables(in text: String) -> Set<String> {
        var names = Set<String>()
        var rest = text[...]
        while let mark = rest.firstRange(of: "$") {
            rest = rest[mark.upperBound...]
            // Two dollar signs stand for one.
            if rest.hasPrefix("$") {
                rest = rest.dropFirst()
            } else if rest.hasPrefix("{"), let end = rest.firstIndex(where: { $0 == "}" || $0 == ":" || $0 == "\"" }) {
                names.insert(String(rest[rest.index(after: rest.startIndex)..<end]))
            }
        }
        return names
    }

    /// The key of an input's attempts: 16 hexadecimal digits.
    func key(_ input: InputIdentity, _ digest: FetchLibrary) -> String {
        let parts =
            [chain, "\(input.bytes)", "\(input.modified)", input.sha256 ?? ""] + plugins.map { "\($0.id)=\($0.sha256)" }
            // So chains that read nothing beside the input keep the keys of earlier versions.
            + (files + input.beside).map { "reads \($0.content)" }
        return String(digest.sha256(of: parts.joined(separator: "\n")).prefix(16))
    }
}
