// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Glibc
import Synchronization

/// Files as they were when the batch began. Tells whether the content of a file has changed. [any thread]
///
/// A further hard link, another mode or `touch` changes what the kernel knows of a file, and nothing that a worker
/// reads. After such a change the file is read once more, and its content decides.
final class FileStamps: Sendable {
    private struct Stamp: Equatable {
        var identity: FileIdentity
        var bytes: Int64
        var modified: Int64
        var changed: Int64

        init?(_ path: String) {
            var status = stat()
            guard stat(path, &status) == 0 else { return nil }
            identity = FileIdentity(status)
            bytes = Int64(status.st_size)
            modified = WorkRecord.nanoseconds(status.st_mtim)
            changed = WorkRecord.nanoseconds(status.st_ctim)
        }
    }

    private struct Entry {
        let path: String
        let content: String
        let kind: InputIdentity.Kind
        /// What the file was when its content was last known to be `content`.
        var stamp: Stamp?
    }

    private let digest: FetchLibrary
    private let entries: Mutex<[Entry]>

    /// - Parameters:
    ///   - paths: Files that are compared by their content.
    ///   - kind: How large files are told apart.
    init(_ paths: [String], _ kind: InputIdentity.Kind, _ digest: FetchLibrary) {
        self.digest = digest
        entries = Mutex(
            paths.map { path in
                // The stamp comes first, so that a change between the two is seen later.
                let stamp = Stamp(path)
                return Entry(path: path, content: FileDigest(path, kind, digest).content, kind: kind, stamp: stamp)
            })
    }

    /// The first file whose content has changed; nil if no content has changed.
    var changed: String? {
        entries.withLock { entries in
            for index in entries.indices {
                let entry = entries[index]
                let stamp = Stamp(entry.path)
                if stamp == entry.stamp { continue }
                guard FileDigest(entry.path, entry.kind, digest).content == entry.content else { return entry.path }
                entries[index].stamp = stamp
            }
            return nil
        }
    }
}
