// SPDX-License-Identifier: Apache-2.0

import Glibc

/// The folders where a stage looks for models and other data files. The first folder that has the file wins.
///
/// The folders are `$FRAMEHOST_DATA`, then `framehost` in the user's data folder, `/usr/local/share` and `/usr/share`
/// (XDG Base Directory Specification), then `share/framehost` beside the program's own folder.
public struct DataFolders: Sendable {
    /// The folders, in the order of search.
    public var folders: [String]

    /// Looks in these folders.
    public init(folders: [String]) { self.folders = folders }

    /// The folders by the environment of this process.
    public static func ofProcess() -> DataFolders {
        func variable(_ name: String) -> String? {
            getenv(name).map { String(cString: $0) }.flatMap { $0.isEmpty ? nil : $0 }
        }
        var folders: [String] = []
        if let named = variable("FRAMEHOST_DATA") { folders.append(named) }
        if let home = variable("XDG_DATA_HOME") ?? variable("HOME").map({ "\($0)/.local/share" }) {
            folders.append("\(home)/framehost")
        }
        for shared in (variable("XDG_DATA_DIRS") ?? "/usr/local/share:/usr/share").split(separator: ":") {
            folders.append("\(shared)/framehost")
        }
        if let program = programFolder() { folders.append("\(program)/../share/framehost") }
        return DataFolders(folders: folders)
    }

    /// Finds the first of `names` in the first folder that has one of them, and returns its path.
    ///
    /// A file that cannot be read counts too: opening it tells why.
    public func find(_ names: [String]) -> String? {
        for folder in folders {
            for name in names where Self.isThere("\(folder)/\(name)") { return "\(folder)/\(name)" }
        }
        return nil
    }

    /// Whether `path` is a file that can be read.
    public static func exists(_ path: String) -> Bool {
        var status = stat()
        return stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFREG && access(path, R_OK) == 0
    }

    /// Whether anything has this name, even a link that leads nowhere.
    public static func isThere(_ path: String) -> Bool {
        var status = stat()
        return lstat(path, &status) == 0
    }

    private static func programFolder() -> String? {
        withUnsafeTemporaryAllocation(of: CChar.self, capacity: 4096) { buffer in
            let count = readlink("/proc/self/exe", buffer.baseAddress!, buffer.count - 1)
            guard count > 0 else { return nil }
            buffer[count] = 0
            let path = String(cString: buffer.baseAddress!)
            return path.lastIndex(of: "/").map { String(path[..<$0]) }
        }
    }
}
