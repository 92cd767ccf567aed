// SPDX-License-Identifier: Apache-2.0

import FrameCore
import FrameSupport
import Glibc

/// Names and files of a batch's folder, with the sentences for what cannot be done.
enum BatchFiles {
    /// `name` without characters that recorders or terminals interpret. If that changes the name, a number keeps
    /// it distinct.
    static func safe(_ name: String) -> String {
        let isSafe: (UInt8) -> Bool = { $0 >= 0x20 && $0 != 0x7f && !"%{}$".utf8.contains($0) }
        guard !name.utf8.allSatisfy(isSafe) else { return name }
        var hash: UInt64 = 0xcbf2_9ce4_8422_2325
        for byte in name.utf8 { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3 }
        let text = String(decoding: name.utf8.map { isSafe($0) ? $0 : UInt8(ascii: "_") }, as: UTF8.self)
        let stem = withoutEnding(text)
        let ending = String(Substring(text.utf8.dropFirst(stem.utf8.count)))
        return "\(stem)~\(String(hash, radix: 16))\(ending)"
    }

    // By bytes, because a slash and a combining mark behind it are one character.
    static func last(_ path: String) -> String {
        path.utf8.split(separator: UInt8(ascii: "/")).last.map { String(Substring($0)) } ?? path
    }

    /// `2024/clip` of `2024/clip.mp4`.
    static func withoutEnding(_ path: String) -> String {
        let bytes = path.utf8
        let start = bytes.lastIndex(of: UInt8(ascii: "/")).map { bytes.index(after: $0) } ?? bytes.startIndex
        guard let dot = bytes[start...].lastIndex(of: UInt8(ascii: ".")), dot > start else { return path }
        return String(Substring(bytes[..<dot]))
    }

    static func fault(_ path: String, _ verb: String, _ code: Int32) -> FrameHostError {
        let remedy =
            switch code {
            case ENOSPC, EDQUOT: "Free some space"
            case EACCES, EPERM: "Give this user permission to do that"
            case EROFS: "Mount the disk for writing"
            case ENOTDIR: "Remove the file that is in the place of a folder"
            case EIO: "Check the disk"
            default: "Correct this"
            }
        return FrameHostError(
            .unavailable, place: path, what: "cannot be \(verb): \(String(cString: strerror(code)))",
            remedy: "\(remedy), then run the same command again.")
    }

    /// The names in a folder without `.` and `..`; nil if the folder cannot be read.
    static func list(_ folder: String) -> [String]? {
        guard let handle = opendir(folder) else { return nil }
        defer { closedir(handle) }
        var names: [String] = []
        while let entry = readdir(handle) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) {
                $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            if name != ".", name != ".." { names.append(name) }
        }
        return names
    }

    /// Makes a folder and the folders above it.
    static func makeFolders(_ path: String) throws {
        if mkdir(path, 0o777) == 0 { return }
        if errno == EEXIST {
            var status = stat()
            guard stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFDIR else {
                throw fault(path, "created", ENOTDIR)
            }
            return
        }
        guard errno == ENOENT, let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")), slash > path.startIndex else {
            throw fault(path, "created", errno)
        }
        try makeFolders(String(path[..<slash]))
        guard mkdir(path, 0o777) == 0 || errno == EEXIST else { throw fault(path, "created", errno) }
    }

    /// Removes a file or folder of attempts with everything that is in it. Links are not followed.
    static func removeAll(_ path: String) {
        if unlink(path) == 0 || errno == ENOENT { return }
        var status = stat()
        guard lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFDIR else { return }
        for name in list(path) ?? [] { removeAll("\(path)/\(name)") }
        rmdir(path)
    }

    static func isFolderOrMissing(_ path: String) -> Bool {
        var status = stat()
        return lstat(path, &status) != 0 || status.st_mode & S_IFMT == S_IFDIR
    }

    static func syncFolder(_ path: String) {
        let file = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard file >= 0 else { return }
        fsync(file)
        close(file)
    }

    /// Writes a file under another name first, so that nobody reads half of it. A file of that name is replaced.
    ///
    /// - Throws: ``FrameHostError``. Nothing is left then.
    static func replace(_ path: String, by text: String) throws {
        var random = SystemRandomNumberGenerator()
        let new = "\(path)-\(String(random.next() as UInt32, radix: 16))"
        let file = open(new, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o666)
        guard file >= 0 else { throw fault(new, "created", errno) }
        var code = Transfer.write(Array(text.utf8), to: file)
        close(file)
        if code == 0, rename(new, path) != 0 { code = errno }
        guard code == 0 else {
            unlink(new)
            throw fault(path, "written", code)
        }
    }
}
