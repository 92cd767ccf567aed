// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Glibc

/// Identifies the content of an input, so that a changed file of the same name is noticed.
struct InputIdentity: Equatable, Sendable {
    /// By what inputs are told apart: `--identity`.
    enum Kind: String, CaseIterable, Sendable {
        /// Size and time of the last change.
        case time
        /// Size and SHA-256 of the content: reads each input once more.
        case sha256
    }

    var bytes: Int64
    /// Nanoseconds since 1970; 0 where the content's digest says more.
    var modified: Int64
    var sha256: String?

    /// Looks at the file.
    ///
    /// - Throws: ``FrameHostError``.
    init(_ path: String, _ kind: Kind, _ digest: FetchLibrary) throws {
        let file = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK)
        func cannot(_ verb: String) -> FrameHostError {
            FrameHostError(
                .unavailable, place: path, what: "cannot be \(verb): \(String(cString: strerror(errno)))",
                remedy: "Leave it out, or make it readable.")
        }
        guard file >= 0 else { throw cannot("opened") }
        defer { close(file) }
        var status = stat()
        guard fstat(file, &status) == 0 else { throw cannot("examined") }
        guard status.st_mode & S_IFMT == S_IFREG else {
            throw FrameHostError(
                .unavailable, place: path, what: "must be a regular file",
                remedy: "Name files; a batch tries some of them twice.")
        }
        bytes = Int64(status.st_size)
        switch kind {
        case .time:
            modified = WorkRecord.nanoseconds(status.st_mtim)
        case .sha256:
            modified = 0
            guard let digest = digest.sha256(of: file) else { throw cannot("read") }
            sha256 = digest
        }
    }

    init(json: JSONNode) {
        bytes = Int64(json["bytes"]?.asInt ?? -1)
        modified = Int64(json["modified"]?.asInt ?? 0)
        sha256 = json["sha256"]?.asString
    }

    func json(path: String) -> JSONNode {
        .object(
            [("path", .string(path)), ("bytes", .number(bytes))]
                + (sha256.map { [("sha256", .string($0))] } ?? [("modified", .number(modified))]))
    }
}

/// What the outputs of a batch depend on beside their inputs: the chain and the plugins that it uses.
struct ChainIdentity: Sendable {
    /// SHA-256 of the chain's text without comments and spaces, of `--set`, of the variables it names, and of `--parts`.
    let chain: String
    /// SHA-256 of the image of each plugin, by the ids that the chain uses, sorted.
    let plugins: [(id: String, sha256: String)]
    /// The files of the plugins.
    let images: [String]

    /// Variables that differ from unit to unit.
    static let ownVariables: Set<String> = ["input", "output", "name"]

    /// - Throws: ``FrameHostError`` where a plugin's file cannot be read.
    init(
        _ root: JSONNode, settings: [String], parts: Double?, registry: PluginRegistry, _ digest: FetchLibrary
    ) throws {
        var text = root.withoutPlaces.text() + "\n" + settings.joined(separator: "\n") + "\n"
        for name in Self.variables(in: text).subtracting(Self.ownVariables).sorted() {
            text += "\(name)=\(getenv(name).map { String(cString: $0) } ?? "")\n"
        }
        // Rate control does not cross a joint, so the length of the parts is seen in the output.
        if let parts { text += "parts \(parts)\n" }
        chain = digest.sha256(of: text)
        let ids = Set((root["stages"]?.asArray ?? []).compactMap { $0["use"]?.asString })
        images = ids.sorted().compactMap { registry.path(of: $0) }
        plugins = try ids.sorted().compactMap { id in
            guard let path = registry.path(of: id) else { return nil }
            let file = open(path, O_RDONLY | O_CLOEXEC)
            defer { if file >= 0 { close(file) } }
            guard file >= 0, let digest = digest.sha256(of: file) else {
                throw FrameHostError(
                    .unavailable, place: path, what: "cannot be read: \(String(cString: strerror(errno)))",
                    remedy: "Make the plugin readable.")
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
            // Two of them are a dollar sign.
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
        return String(digest.sha256(of: parts.joined(separator: "\n")).prefix(16))
    }
}

/// Files as they were when the batch began, to see whether one has changed. [any thread]
struct FileStamps: Sendable {
    private struct Stamp: Equatable {
        var identity: FileIdentity
        var bytes: Int64
        var changed: Int64
    }

    private let stamps: [(path: String, stamp: Stamp?)]

    init(_ paths: [String]) { stamps = paths.map { ($0, Self.stamp($0)) } }

    /// The first that is not as it was; nil where all are.
    var changed: String? { stamps.first { Self.stamp($0.path) != $0.stamp }?.path }

    private static func stamp(_ path: String) -> Stamp? {
        var status = stat()
        guard stat(path, &status) == 0 else { return nil }
        return Stamp(
            identity: FileIdentity(status), bytes: Int64(status.st_size),
            changed: WorkRecord.nanoseconds(status.st_ctim))
    }
}
