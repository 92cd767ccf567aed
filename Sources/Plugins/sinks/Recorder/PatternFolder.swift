// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Glibc

/// The folders in which a pattern makes files.
enum PatternFolder {
    /// Removes the temporary files that a recorder or finaliser of such files left when it was killed.
    static func removeLeftOvers(of pattern: FileNamePattern, single: String?, _ files: RunFiles) {
        func isOurs(_ name: String) -> Bool {
            guard let sidecar = Sidecar.allCases.first(where: { name.hasSuffix($0.ending) }) else {
                return pattern.number(ofName: name) != nil
            }
            return pattern.number(ofName: name.dropLast(sidecar.ending.count) + pattern.ending) != nil
        }
        func originals(_ name: String) -> [String] {
            [Finaliser.original(ofTemporary: name), FileNames.original(ofTemporary: name)].compactMap(\.self)
        }
        visit(pattern) { folder in
            for name in FolderListing.names(in: folder) {
                guard let original = originals(name).first(where: { isOurs($0) }) else { continue }
                _ = removeLeftOver("\(folder)/\(name)", of: original, files)
            }
        }
        guard let single else { return }
        let folder = FileNames.folder(of: single)
        let names = ([single] + Sidecar.allCases.map { $0.path(beside: single) }).map(FileNames.name(of:))
        for name in FolderListing.names(in: folder) {
            guard let original = originals(name).first(where: names.contains) else { continue }
            _ = removeLeftOver("\(folder)/\(name)", of: original, files)
        }
    }

    /// Removes a temporary file if a recorder has made it: it is empty, or its mark names the file that it was to
    /// replace.
    static func removeLeftOver(_ path: String, of original: String, _ files: RunFiles) -> FileRefusal? {
        var status = stat()
        guard lstat(path, &status) == 0 else { return errno == ENOENT ? .absent : .unknown(errno) }
        guard status.st_mode & S_IFMT == S_IFREG else { return .exists }
        let identity = FileIdentity(status)
        let name = FileNames.name(of: original)
        guard status.st_size == 0 || MarkedFile.marks(of: path, meant: identity).contains(where: { $0.file == name })
        else { return .exists }
        return files.remove(path, meant: identity, as: OutputFile.holder)
    }

    /// Calls `body` with each folder in which the pattern makes files.
    static func visit(_ pattern: FileNamePattern, _ body: (String) -> Void) {
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
