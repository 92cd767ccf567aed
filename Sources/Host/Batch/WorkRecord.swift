// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Glibc

/// The record of a finished attempt. A unit is done when its record exists and matches.
struct WorkRecord: Sendable {
    /// A file that was made.
    struct Output: Equatable, Sendable {
        /// The name of the file in DIR.
        var name: String
        var bytes: Int64
        /// Nanoseconds since 1970.
        var modified: Int64
    }

    var inputPath: String
    var input: InputIdentity
    /// The files that were made. The first is the unit's own output.
    var outputs: [Output]
    var chainFile: String
    var chain: String
    var plugins: [(id: String, sha256: String)]
    /// The files that the chain read for every input.
    var files: [FileDigest]
    var program: String
    var attempt: Int
    /// The name of the attempt's folder.
    var folder = ""
    /// The machine on which the attempt ran.
    var host: String
    /// Nanoseconds since 1970.
    var began: Int64
    var seconds: Double
    var frames: Int
    /// The duration of the pictures; 0 if no rate is known.
    var mediaSeconds: Double
    /// The first warnings of the worker.
    var warnings: [String]
    /// Why the output has less than the input promises: the batch ran with `--accept-damaged`. Empty for a whole
    /// output.
    var damage = ""
    /// What the input promised, and what the source gave of that; empty if this is not known.
    var account: JSONNode = .object([])
    /// Why the output was made again; empty for the first output.
    var replaced: String

    /// The version of the form.
    static let form = 1

    var json: JSONNode {
        .object([
            ("framehostBatch", .number(Self.form)),
            ("input", input.json(path: inputPath)),
            (
                "outputs",
                .array(
                    outputs.map {
                        .object([
                            ("name", .string($0.name)), ("bytes", .number($0.bytes)),
                            ("modified", .number($0.modified)),
                        ])
                    })
            ),
            ("chain", .object([("file", .string(chainFile)), ("sha256", .string(chain))])),
            ("plugins", .object(plugins.map { ($0.id, .string($0.sha256)) })),
            ("files", FileDigest.json(files)), ("program", .string(program)),
            ("attempt", .number(attempt)), ("folder", .string(folder)), ("host", .string(host)),
            ("began", .string(WallTime.text(began))),
            ("seconds", .number(seconds)), ("frames", .number(frames)), ("mediaSeconds", .number(mediaSeconds)),
            ("warnings", .array(warnings.map { .string($0) })), ("replaced", .string(replaced)),
            ("damage", .string(damage)), ("pictures", account),
        ])
    }

    /// Nil if the file is not a record of this form.
    init?(json: JSONNode) {
        guard json["framehostBatch"]?.asInt == Self.form, let input = json["input"],
            let list = json["outputs"]?.asArray,
            let attempt = json["attempt"]?.asInt, attempt > 0, let folder = json["folder"]?.asString,
            Self.isInside(folder),
            !folder.utf8.contains(UInt8(ascii: "/"))
        else { return nil }
        self.folder = folder
        inputPath = input["path"]?.asString ?? ""
        self.input = InputIdentity(json: input)
        outputs = list.compactMap {
            guard let name = $0["name"]?.asString, let bytes = $0["bytes"]?.asInt, let modified = $0["modified"]?.asInt
            else { return nil }
            return Output(name: name, bytes: Int64(bytes), modified: Int64(modified))
        }
        guard !outputs.isEmpty, outputs.count == list.count, outputs.allSatisfy({ Self.isInside($0.name) }) else {
            return nil
        }
        chainFile = json["chain"]?["file"]?.asString ?? ""
        chain = json["chain"]?["sha256"]?.asString ?? ""
        plugins = (json["plugins"]?.asObject ?? []).map { ($0.key, $0.value.asString ?? "") }
        files = FileDigest.list(json["files"])
        program = json["program"]?.asString ?? ""
        self.attempt = attempt
        host = json["host"]?.asString ?? ""
        began = 0
        seconds = json["seconds"]?.asDouble ?? 0
        frames = max(0, json["frames"]?.asInt ?? 0)
        mediaSeconds = json["mediaSeconds"]?.asDouble ?? 0
        warnings = (json["warnings"]?.asArray ?? []).compactMap(\.asString)
        replaced = json["replaced"]?.asString ?? ""
        damage = json["damage"]?.asString ?? ""
        account = json["pictures"] ?? .object([])
    }

    init(
        inputPath: String, input: InputIdentity, chainFile: String, _ chain: ChainIdentity, attempt: Int, began: Int64,
        seconds: Double, frames: Int, mediaSeconds: Double, warnings: [String], replaced: String
    ) {
        self.inputPath = inputPath
        self.input = input
        outputs = []
        self.chainFile = chainFile
        self.chain = chain.chain
        plugins = chain.plugins
        files = chain.files
        program = FrameHost.configuration.version
        self.attempt = attempt
        host = Self.hostName
        self.began = began
        self.seconds = seconds
        self.frames = frames
        self.mediaSeconds = mediaSeconds
        self.warnings = warnings
        self.replaced = replaced
    }

    /// A record comes from a file, so its names must not lead out of DIR.
    private static func isInside(_ name: String) -> Bool {
        !name.isEmpty
            && name.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false).allSatisfy { part in
                !part.isEmpty && ![".", "..", ".framehost"].contains { part.elementsEqual($0.utf8) }
            }
    }

    /// What differs, in words: "the input and the chain".
    func changes(to input: InputIdentity, _ chain: ChainIdentity) -> String {
        var parts: [String] = []
        var (own, other) = (self.input, input)
        (own.beside, other.beside) = ([], [])
        if own != other { parts.append("the input") }
        if chain.chain != self.chain { parts.append("the chain") }
        parts += Self.changed(self.input.beside + files, input.beside + chain.files).map { "the file \($0)" }
        let old = Dictionary(plugins, uniquingKeysWith: { first, _ in first })
        parts += chain.plugins.filter { old[$0.id] != $0.sha256 && old[$0.id] != nil }.map { "the plugin of \($0.id)" }
        return parts.count > 1
            ? parts.dropLast().joined(separator: ", ") + " and " + parts.last! : parts.first ?? "its record"
    }

    /// The paths of those files of `new` that `old` does not have, or has with another content.
    private static func changed(_ old: [FileDigest], _ new: [FileDigest]) -> [String] {
        new.enumerated().filter { index, file in old.indices.contains(index) ? old[index] != file : true }
            .map(\.element.path)
    }

    static func nanoseconds(_ time: timespec) -> Int64 {
        let (product, overflow) = Int64(time.tv_sec).multipliedReportingOverflow(by: 1_000_000_000)
        let (sum, tooLarge) = product.addingReportingOverflow(Int64(time.tv_nsec))
        return overflow || tooLarge ? 0 : sum
    }

    /// Nanoseconds since 1970.
    static func now() -> Int64 {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return nanoseconds(time)
    }

    static let hostName: String = {
        var name = [CChar](repeating: 0, count: 256)
        guard gethostname(&name, name.count - 1) == 0 else { return "host" }
        return String(decoding: name.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }()
}
