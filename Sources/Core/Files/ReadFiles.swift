// SPDX-License-Identifier: Apache-2.0

import Glibc

/// Regular files that are held open for reading, each once. `@unchecked Sendable`: lies under a lock.
struct ReadFiles: @unchecked Sendable {
    /// The most files that are held. A long list of pictures would take all descriptors. The stage that reads such
    /// a list holds the picture that it is reading.
    private static let most = 64
    private var held: [FileIdentity: HeldFile] = [:]

    /// Holds the file if it is a regular file and there is room.
    mutating func add(_ path: String, as name: String) {
        var status = stat()
        // Opening a pipe would be seen by its writer.
        guard held.count < Self.most, stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG,
            held[FileIdentity(status)] == nil, let file = RunFiles.read(path, as: name)
        else { return }
        held[file.identity] = file
    }
}
