// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Glibc

/// The files a pattern has made, on the disk.
enum PatternFolder {
    /// All regular files whose folders and names the pattern can have made, each once even if it has several names.
    /// Never follows a link below the pattern's fixed folder.
    ///
    /// - Parameter current: The file being written, which is left out under any name.
    static func files(of pattern: FileNamePattern, except current: FileIdentity? = nil) -> [RetentionPolicy.File] {
        var found: [RetentionPolicy.File] = []
        var seen = Set<FileIdentity>()
        if let current { seen.insert(current) }
        visit(pattern) { folder in
            for name in FolderListing.names(in: folder) where pattern.number(ofName: name) != nil {
                let path = "\(folder)/\(name)"
                var status = stat()
                guard lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { continue }
                guard seen.insert(FileIdentity(status)).inserted else { continue }
                var file = RetentionPolicy.File(path: path, status)
                // The files beside it are removed with it, and so count with it.
                for sidecar in Sidecar.allCases { file.bytes += sidecar.size(beside: path) ?? 0 }
                found.append(file)
            }
        }
        return found
    }

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
            for name in FolderListing.names(in: folder)
            where originals(name).contains(where: { isOurs($0) }) {
                _ = files.remove("\(folder)/\(name)", as: OutputFile.holder)
            }
        }
        guard let single else { return }
        let folder = FileNames.folder(of: single)
        let names = ([single] + Sidecar.allCases.map { $0.path(beside: single) }).map(name(of:))
        for name in FolderListing.names(in: folder)
        where originals(name).contains(where: names.contains) {
            _ = files.remove("\(folder)/\(name)", as: OutputFile.holder)
        }
    }

    private static func name(of path: String) -> String { String(path.split(separator: "/").last ?? "") }

    /// Calls `body` with each folder in which the pattern makes files.
    private static func visit(_ pattern: FileNamePattern, _ body: (String) -> Void) {
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

    /// Removes a file that nothing uses, and the folders above it that are then empty.
    ///
    /// - Returns: Why it is still there; nil when it has gone.
    static func removeFile(_ file: RetentionPolicy.File, of pattern: FileNamePattern, _ files: RunFiles) -> FileRefusal?
    {
        if let refusal = files.remove(file.path, meant: file.identity, as: OutputFile.holder) { return refusal }
        for sidecar in Sidecar.allCases { sidecar.remove(beside: file.path, files) }
        var folder = FileNames.folder(of: file.path)
        for _ in 1..<pattern.components.count {
            guard rmdir(folder) == 0 else { break }
            folder = FileNames.folder(of: folder)
        }
        return nil
    }
}
