// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Glibc

/// Finds which known models are in the data folders, and whether their files are right.
struct ModelShelf {
    enum State: Equatable {
        case missing
        /// The file's hash is the model's.
        case right(path: String)
        /// Another file has its name.
        case wrong(path: String, sha256: String)
        case unreadable(path: String, why: String)

        var path: String? {
            switch self {
            case .missing: nil
            case .right(let path), .wrong(let path, _), .unreadable(let path, _): path
            }
        }
    }

    let folders: DataFolders
    let library: FetchLibrary

    /// The file that a stage would take, and whether it is the model.
    func state(of model: KnownModel) -> State {
        if let path = folders.find([model.fileName]) { return state(of: path, model) }
        // A file name that several models share counts for the model whose hash it has.
        if let path = folders.find(model.otherNames), case .right = state(of: path, model) { return .right(path: path) }
        return .missing
    }

    func state(of path: String, _ model: KnownModel) -> State {
        // Does not block: a FIFO of this name must not stop the program.
        let file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard file >= 0 else { return .unreadable(path: path, why: String(cString: strerror(errno))) }
        defer { close(file) }
        var status = stat()
        guard fstat(file, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
            return .unreadable(path: path, why: "it is not a regular file")
        }
        guard let sha256 = library.sha256(of: file) else {
            return .unreadable(path: path, why: String(cString: strerror(errno)))
        }
        return sha256 == model.sha256 ? .right(path: path) : .wrong(path: path, sha256: sha256)
    }
}
