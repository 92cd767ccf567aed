// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Glibc
import Recordings

extension PatternFolder {
    /// Removes the copies that a finaliser of such files left when it was killed.
    static func removeLeftOvers(of pattern: FileNamePattern, single: String?, _ files: RunFiles) {
        visit(pattern) { folder in
            for name in FolderListing.names(in: folder) {
                guard let original = Finaliser.original(ofTemporary: name),
                    pattern.number(ofName: original) != nil
                else { continue }
                _ = removeLeftOver("\(folder)/\(name)", of: original, files)
            }
        }
        guard let single else { return }
        let folder = FileNames.folder(of: single)
        let original = FileNames.name(of: single)
        _ = removeLeftOver("\(folder)/\(Finaliser.temporary(for: original))", of: original, files)
    }

    /// Removes a temporary file if a recorder has made it: its mark names the file that it was to replace, in this folder
    /// and on this machine. An empty file is anybody's, and so stays.
    static func removeLeftOver(_ path: String, of original: String, _ files: RunFiles) -> FileRefusal? {
        var status = stat()
        guard lstat(path, &status) == 0 else { return errno == ENOENT ? .absent : .unknown(errno) }
        guard status.st_mode & S_IFMT == S_IFREG else { return .exists }
        let identity = FileIdentity(status)
        let name = FileNames.name(of: original)
        let folder = RecordingMark.fingerprint(ofFolder: FileNames.folder(of: path))
        let marks = MarkedFile.marks(of: path, meant: identity)
        guard marks.contains(where: { $0.names(name, in: folder, recorder: $0.recorder) }) else { return .exists }
        return files.remove(path, meant: identity, as: OutputFile.holder)
    }
}
