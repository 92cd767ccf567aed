// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// Files that options of a service name.
package enum ServerPath {
    /// A relative path begins at the chain file's folder.
    package static func resolve(_ path: String, folder: String) -> String {
        path.hasPrefix("/") || folder.isEmpty ? path : "\(folder)/\(path)"
    }

    /// The files that options name, for ``Service/readsFiles(folder:)``; `env:NAME` names none.
    package static func files(_ names: String?..., folder: String) -> [String] {
        names.compactMap { $0 }.filter { !$0.isEmpty && !$0.hasPrefix("env:") }.map { resolve($0, folder: folder) }
    }

    /// - Throws: ``FrameHostError`` where the file that `option` names cannot be read.
    package static func readable(_ path: String, option: String, folder: String) throws -> String {
        let path = resolve(path, folder: folder)
        try RunFiles.checkReadable(path, option: option)
        return path
    }
}
