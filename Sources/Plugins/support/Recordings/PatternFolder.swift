// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Glibc

/// The folders in which a pattern makes files.
package enum PatternFolder {
    /// Calls `body` with each folder in which the pattern makes files.
    package static func visit(_ pattern: FileNamePattern, _ body: (String) -> Void) {
        func go(_ folder: String, _ level: Int) {
            guard level < pattern.components.count - 1 else { return body(folder) }
            for name in FolderListing.names(in: folder) where pattern.matches(folder: name, level: level) {
                let path = "\(folder)/\(name)"
                var status = stat()
                if lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFDIR { go(path, level + 1) }
            }
        }
        go(pattern.folder, 0)
    }
}

/// What lies in a folder.
package enum FolderListing {
    /// The names except `.` and `..`, in no particular order; none when the folder cannot be read.
    package static func names(in folder: String) -> [String] {
        guard let stream = opendir(folder) else { return [] }
        defer { closedir(stream) }
        var names: [String] = []
        while let entry = readdir(stream) {
            let name = withUnsafeBytes(of: entry.pointee.d_name) {
                String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
            }
            if name != ".", name != ".." { names.append(name) }
        }
        return names
    }
}
