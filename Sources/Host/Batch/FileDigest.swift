// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Glibc

/// What identifies the content of a file that a chain reads beside its input: a model, a covering picture, a font.
struct FileDigest: Equatable, Sendable {
    /// The path of the file on this machine, for people. Only the content counts, because another machine may have the
    /// file elsewhere.
    var path: String
    /// SHA-256. For a large file and `--identity time` it is the size and the time of the last change. `missing` if
    /// there is no file, and `special` for anything but a regular file.
    var content: String

    static func == (one: FileDigest, other: FileDigest) -> Bool { one.content == other.content }

    /// Larger files are read only by `--identity sha256`.
    private static let mostBytes: Int64 = 256 << 20

    init(_ path: String, _ kind: InputIdentity.Kind, _ digest: FetchLibrary) {
        self.path = path
        let file = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK)
        guard file >= 0 else {
            content = "missing"
            return
        }
        defer { close(file) }
        var status = stat()
        guard fstat(file, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
            content = "special"
            return
        }
        let stamp = "\(Int64(status.st_size)) \(WorkRecord.nanoseconds(status.st_mtim))"
        let isRead = kind == .sha256 || Int64(status.st_size) <= Self.mostBytes
        content = (isRead ? digest.sha256(of: file) : nil) ?? stamp
    }

    private init(path: String, content: String) { (self.path, self.content) = (path, content) }

    static func json(_ files: [FileDigest]) -> JSONNode {
        .array(files.map { .object([("path", .string($0.path)), ("content", .string($0.content))]) })
    }

    static func list(_ json: JSONNode?) -> [FileDigest] {
        (json?.asArray ?? []).map {
            FileDigest(path: $0["path"]?.asString ?? "", content: $0["content"]?.asString ?? "")
        }
    }
}
