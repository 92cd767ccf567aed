// SPDX-License-Identifier: Apache-2.0

import Glibc

/// Which file a name leads to: its device and inode (stat(2)). Equal for `x`, `./x`, links to it and further names of
/// it.
public struct FileIdentity: Hashable, Sendable {
    /// The device that the file is on.
    public let device: UInt64
    /// The file's inode.
    public let inode: UInt64

    /// The file with this device and inode.
    public init(device: UInt64, inode: UInt64) {
        self.device = device
        self.inode = inode
    }

    /// The file that stat(2) described.
    public init(_ status: stat) { self.init(device: UInt64(status.st_dev), inode: UInt64(status.st_ino)) }

    /// The file behind a name, with links followed; nil when there is none, or when it cannot be found out.
    public init?(path: String) {
        var status = stat()
        guard stat(path, &status) == 0 else { return nil }
        self.init(status)
    }
}

/// Names derived from the name of a file: its folder, what its links lead to, its temporary file.
public enum FileNames {
    /// The folder of a name; `.` for a name without a folder.
    public static func folder(of path: String) -> String {
        guard let slash = path.lastIndex(of: "/") else { return "." }
        return slash == path.startIndex ? "/" : String(path[..<slash])
    }

    /// The last part of a path.
    public static func name(of path: String) -> String { String(path.split(separator: "/").last ?? "") }

    /// The name that a file gets when `path` is created: links in the last part are followed, also those that lead
    /// nowhere yet.
    ///
    /// It is `path` itself where that is not a link, and where 40 links lead to no end (as the kernel counts).
    public static func followed(_ path: String) -> String {
        var name = path
        for _ in 0..<40 {
            guard let target = linkTarget(name) else { return name }
            name = target.hasPrefix("/") ? target : "\(folder(of: name))/\(target)"
        }
        return path
    }

    private static func linkTarget(_ path: String) -> String? {
        withUnsafeTemporaryAllocation(of: CChar.self, capacity: Int(PATH_MAX)) { buffer in
            let count = readlink(path, buffer.baseAddress!, buffer.count)
            guard count > 0, count < buffer.count else { return nil }
            return String(decoding: buffer[..<count].map { UInt8(bitPattern: $0) }, as: UTF8.self)
        }
    }

    /// `.out.mp4.4711.new` in the folder of `path`: the file that is to replace `path` is made there. Another
    /// program makes other names.
    ///
    /// - Parameter again: 1 first, then 2, 3 … while the name is taken, by what a program of the same number left: its
    ///   name is no proof of that, so it stays.
    static func temporary(for path: String, again: Int = 1) -> String {
        let name = path.split(separator: "/").last ?? ""
        let folder = folder(of: path)
        return "\(folder == "/" ? "" : folder)/.\(name).\(getpid())\(again > 1 ? "-\(again)" : "").new"
    }
}
