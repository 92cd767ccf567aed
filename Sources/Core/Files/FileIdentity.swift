import Glibc

/// Which file a name leads to: its device and inode (stat(2)). Equal for `x`, `./x`, links to it and further names of
/// it.
public struct FileIdentity: Hashable, Sendable {
    public let device: UInt64
    public let inode: UInt64

    public init(device: UInt64, inode: UInt64) {
        self.device = device
        self.inode = inode
    }

    public init(_ status: stat) { self.init(device: UInt64(status.st_dev), inode: UInt64(status.st_ino)) }

    /// Of the file behind a name, links followed; nil when there is none, or when that cannot be found out.
    public init?(path: String) {
        var status = stat()
        guard stat(path, &status) == 0 else { return nil }
        self.init(status)
    }
}

/// Names beside and behind other names.
public enum FileNames {
    /// The folder a name lies in: `.` where it says none.
    public static func folder(of path: String) -> String {
        guard let slash = path.lastIndex(of: "/") else { return "." }
        return slash == path.startIndex ? "/" : String(path[..<slash])
    }

    /// The name that creating `path` would give the file: links in the last part are followed, also those that lead
    /// nowhere yet.
    ///
    /// `path` itself where it is no link, and where 40 links do not lead to an end (as the kernel counts).
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

    /// `.out.mp4.4711.new`, in the folder of `path`: where a file is made that is to replace it. Another program makes
    /// other names.
    static func temporary(for path: String) -> String {
        let name = path.split(separator: "/").last ?? ""
        let folder = folder(of: path)
        return "\(folder == "/" ? "" : folder)/.\(name).\(getpid())\(suffix)"
    }

    /// The name (without folder) of the file that a temporary one was to replace; nil when `name` is none of ours.
    public static func original(ofTemporary name: String) -> String? {
        guard name.hasPrefix("."), name.hasSuffix(suffix) else { return nil }
        let middle = name.dropFirst().dropLast(suffix.count)
        guard let dot = middle.lastIndex(of: "."), dot != middle.startIndex else { return nil }
        let number = middle[middle.index(after: dot)...]
        guard !number.isEmpty, number.utf8.allSatisfy({ (48...57).contains($0) }) else { return nil }
        return String(middle[..<dot])
    }

    private static let suffix = ".new"
}
