// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Glibc

/// Identifies the content of an input, so that a changed file of the same name is noticed.
struct InputIdentity: Equatable, Sendable {
    /// How inputs are told apart: `--identity`.
    enum Kind: String, CaseIterable, Sendable {
        /// Size and time of the last change.
        case time
        /// Size and SHA-256 of the content: reads each input once more.
        case sha256
    }

    var bytes: Int64
    /// Nanoseconds since 1970; 0 if ``sha256`` identifies the content.
    var modified: Int64
    var sha256: String?
    /// Files that the chain reads for this input alone.
    var beside: [FileDigest] = []

    /// Reads the identity of the file as it is now.
    ///
    /// - Parameter beside: Files that the chain reads for this input alone.
    /// - Throws: ``FrameHostError``.
    init(_ path: String, _ kind: Kind, beside: [String] = [], _ digest: FetchLibrary) throws {
        let file = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK)
        func cannot(_ verb: String) -> FrameHostError {
            let code = errno
            let remedy =
                switch code {
                case ENOENT, ENOTDIR, ELOOP, ENAMETOOLONG: "Correct the path, or leave the file out."
                case EACCES, EPERM: "Make the file readable for this user, or leave it out."
                case EMFILE, ENFILE: "Use fewer --jobs, or raise the limit of open files (ulimit -n)."
                default: "Check the file and the disk that it is on, or leave the file out."
                }
            return FrameHostError(
                .unavailable, place: path, what: "cannot be \(verb): \(String(cString: strerror(code)))",
                remedy: remedy)
        }
        guard file >= 0 else { throw cannot("opened") }
        defer { close(file) }
        var status = stat()
        guard fstat(file, &status) == 0 else { throw cannot("examined") }
        guard status.st_mode & S_IFMT == S_IFREG else {
            let kind = status.st_mode & S_IFMT == S_IFDIR ? "a folder" : "a device or a pipe"
            throw FrameHostError(
                .unavailable, place: path, what: "must be a regular file, but is \(kind)",
                remedy: "Name a regular file: a batch may read it more than once.")
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
        self.beside = beside.map { FileDigest($0, kind, digest) }
    }

    init(json: JSONNode) {
        bytes = Int64(json["bytes"]?.asInt ?? -1)
        modified = Int64(json["modified"]?.asInt ?? 0)
        sha256 = json["sha256"]?.asString
        beside = FileDigest.list(json["beside"])
    }

    /// Whether the file is the one that `earlier` was, as far as both say. `--identity` may have had another value
    /// then.
    func isUnchanged(since earlier: InputIdentity) -> Bool {
        guard bytes == earlier.bytes else { return false }
        if let sha256, let before = earlier.sha256 { return sha256 == before }
        return sha256 != nil || earlier.sha256 != nil || modified == earlier.modified
    }

    func json(path: String) -> JSONNode {
        .object(
            [("path", .string(path)), ("bytes", .number(bytes))]
                + (sha256.map { [("sha256", .string($0))] } ?? [("modified", .number(modified))])
                + (beside.isEmpty ? [] : [("beside", FileDigest.json(beside))]))
    }
}
