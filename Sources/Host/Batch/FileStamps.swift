// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Glibc

/// Files as they were when the batch began, to see whether one has changed. [any thread]
struct FileStamps: Sendable {
    private struct Stamp: Equatable {
        var identity: FileIdentity
        var bytes: Int64
        var changed: Int64
    }

    private let stamps: [(path: String, stamp: Stamp?)]

    init(_ paths: [String]) { stamps = paths.map { ($0, Self.stamp($0)) } }

    /// The first file that has changed; nil where none has.
    var changed: String? { stamps.first { Self.stamp($0.path) != $0.stamp }?.path }

    private static func stamp(_ path: String) -> Stamp? {
        var status = stat()
        guard stat(path, &status) == 0 else { return nil }
        return Stamp(
            identity: FileIdentity(status), bytes: Int64(status.st_size),
            changed: WorkRecord.nanoseconds(status.st_ctim))
    }
}
