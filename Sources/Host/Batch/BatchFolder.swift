// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Glibc

/// The output folder (`--out`, DIR), made and checked before any unit is looked at. Main thread.
struct BatchFolder {
    /// The absolute path of DIR.
    let out: String
    /// The folder of the batches' owner files (``BatchOwner``).
    let owners: String
    /// Folders that were made for this batch, the innermost last.
    private var made: [String] = []

    /// The folder at which relative names start.
    static var current: String {
        guard let path = getcwd(nil, 0) else { return "." }
        defer { free(path) }
        return String(cString: path)
    }

    /// Makes the folder if it is not there.
    ///
    /// - Throws: ``FrameHostError``.
    init(_ path: String) throws {
        let trimmed = path.count > 1 && path.hasSuffix("/") ? String(path.dropLast()) : path
        let whole = trimmed.hasPrefix("/") ? trimmed : "\(Self.current)/\(trimmed)"
        guard !whole.utf8.contains(where: { "%{}$".utf8.contains($0) }), !path.isEmpty else {
            throw FrameHostError(
                .invalidConfiguration, place: FaultPlace(argument: path.isEmpty ? "--out" : "--out \(path)"),
                what: path.isEmpty
                    ? "names no folder" : "\(whole) has a %, {, } or $, which recorders read as a pattern",
                remedy: path.isEmpty ? "Name a folder." : "Name a folder whose path has no %, {, } or $.")
        }
        out = whole
        owners = "\(whole)/\(BatchUnitFolder.hidden)/owners"
        var missing: [String] = []
        var folder = owners
        while access(folder, F_OK) != 0, let slash = folder.lastIndex(of: "/"), slash > folder.startIndex {
            missing.append(folder)
            folder = String(folder[..<slash])
        }
        for folder in missing.reversed() {
            guard mkdir(folder, 0o777) == 0 || errno == EEXIST else {
                let code = errno
                removeEmpty()
                throw FrameHostError(
                    .invalidConfiguration, place: FaultPlace(argument: "--out \(path)"),
                    what: "\(folder) cannot be created: \(String(cString: strerror(code)))",
                    remedy: "Name a folder that can be written.")
            }
            made.append(folder)
        }
        guard access(owners, W_OK) == 0 else {
            throw FrameHostError(
                .invalidConfiguration, place: FaultPlace(argument: "--out \(path)"),
                what: "files cannot be created in \(owners): \(String(cString: strerror(errno)))",
                remedy: "Make that folder writable for this user, or name another folder.")
        }
    }

    /// Removes the folders that were made and are empty.
    func removeEmpty() { for folder in made.reversed() { rmdir(folder) } }

    /// Checks that the file system has hard links: claims and commits are made of them.
    ///
    /// - Throws: ``FrameHostError`` if it has none, or if a link cannot be made.
    func checkLinks(_ owner: BatchOwner) throws {
        let name = owner.path + ".link"
        guard link(owner.path, name) == 0 else {
            let code = errno
            owner.end()
            let hasLinks = ![EPERM, EOPNOTSUPP, ENOSYS, EMLINK, EINVAL].contains(code)
            let reason = String(cString: strerror(code))
            throw FrameHostError(
                .invalidConfiguration, place: FaultPlace(argument: "--out \(out)"),
                what: hasLinks
                    ? "a hard link cannot be created in \(owners): \(reason)"
                    : "the file system must support hard links: \(reason)",
                remedy: hasLinks
                    ? code == ENOSPC || code == EDQUOT
                        ? "Free some space, or name another folder." : "Name another folder."
                    : "Name a folder on another file system (ext4, XFS, Btrfs, NFS).")
        }
        unlink(name)
    }

    /// Removes the owner files of batches that are gone.
    func sweepOwners(_ owner: BatchOwner) {
        for name in BatchFiles.list(owners) ?? [] where !name.hasPrefix(".") {
            let path = "\(owners)/\(name)"
            if owner.life(ofClaim: path) == .gone { unlink(path) }
        }
    }

    /// Whether a file of this name can be written. If not, `errno` says why.
    static func canWrite(_ path: String) -> Bool {
        if access(path, F_OK) == 0 { return access(path, W_OK) == 0 }
        return access(FileNames.folder(of: path), W_OK) == 0
    }
}
