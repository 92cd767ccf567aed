// SPDX-License-Identifier: Apache-2.0

import Glibc

/// Regular files that are held open for reading, each once. `@unchecked Sendable`: lies under a lock.
struct ReadFiles: @unchecked Sendable {
    /// A long list of pictures would take all descriptors; the stage that reads it holds the one that it reads.
    private static let most = 64
    private var held: [FileIdentity: HeldFile] = [:]

    /// Holds the file, if it is one and there is room.
    mutating func add(_ path: String, as name: String) {
        var status = stat()
        // Opening a pipe would be seen by its writer.
        guard held.count < Self.most, stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG,
            held[FileIdentity(status)] == nil, let file = RunFiles.read(path, as: name)
        else { return }
        held[file.identity] = file
    }
}
