// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Glibc

/// Finds out which loaded plugins were rebuilt, by inotify(7) on their folders. [thread of ``PluginLookout``]
///
/// A file counts once it is complete: closed after writing or renamed into place, unchanged for ``settleNs``, and not
/// open for writing in any process.
struct PluginWatch {
    /// Nanoseconds without another event before a file is looked at.
    private static let settleNs: Int64 = 200_000_000
    /// Nanoseconds between two looks at whether the paths still lead to the folders that are watched.
    private static let retryNs: Int64 = 500_000_000
    private static let mask = UInt32(
        IN_CLOSE_WRITE | IN_MOVED_TO | IN_CREATE | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR)

    private let file: Int32
    /// By watch descriptor; several paths may lead to one folder.
    private var folders: [Int32: Set<String>] = [:]
    /// For each plugin, the paths that its file may have: its own path, and what that leads to.
    private var places: [String: Set<String>] = [:]
    /// When to look at each plugin for which an event came.
    private var due: [String: Int64] = [:]
    private var nextTry: Int64 = 0
    private var buffer = [UInt8](repeating: 0, count: 16384)

    /// - Throws: ``FrameHostError`` where the system's limit of inotify instances is reached.
    init() throws {
        file = inotify_init1(Int32(IN_NONBLOCK) | Int32(IN_CLOEXEC))
        guard file >= 0 else {
            throw FrameHostError(
                .unavailable, place: "--watch-plugins",
                what: "folders cannot be watched: \(String(cString: strerror(errno)))",
                remedy:
                    "Raise fs.inotify.max_user_instances, or leave --watch-plugins out and reload plugins with the command 'reload-plugin'."
            )
        }
    }

    /// Paths of plugins whose file differs from the loaded one, each once per change.
    mutating func changed(now: Int64) -> [String] {
        if now >= nextTry {
            nextTry = now + Self.retryNs
            watchFolders(now: now)
        }
        readEvents(now: now)
        let ripe = due.filter { $0.value <= now }.map(\.key).sorted()
        return ripe.filter { path in
            if PluginCopy.isBeingWritten(path) {
                due[path] = now + Self.settleNs
                return false
            }
            due[path] = nil
            // A removed file has not changed: a build may be about to write a new one.
            guard let sum = PluginCopy.sum(of: path) else { return false }
            return PluginImages.here.isNews(sum, of: path)
        }
    }

    /// Watches the folders to which the paths of loaded plugins lead now: new ones, those that have come back, and those
    /// that have taken the place of others.
    private mutating func watchFolders(now: Int64) {
        var isBack: Set<String> = []
        for path in PluginImages.here.paths {
            let all: Set<String> = [path.contains("/") ? path : "./\(path)", PluginRegistry.realPath(path)]
            // It may have been written since it was loaded, or a link on its way leads elsewhere now.
            if places[path] != all { due[path] = now + Self.settleNs }
            places[path] = all
            for folder in Set(all.map(Self.folder)) {
                // The same descriptor for a folder that is watched already.
                let watch = inotify_add_watch(file, folder, Self.mask)
                guard watch >= 0, folders[watch]?.contains(folder) != true else { continue }
                forget(folder)
                folders[watch, default: []].insert(folder)
                isBack.insert(folder)
            }
        }
        let wanted = Set(places.values.joined().map(Self.folder))
        for folder in Set(folders.values.joined()).subtracting(wanted) { forget(folder) }
        // A file that was written there before went unnoticed.
        for (path, all) in places where !isBack.isDisjoint(with: all.map(Self.folder)) {
            due[path] = now + Self.settleNs
        }
    }

    /// The path leads to another folder now, where it led to one.
    private mutating func forget(_ folder: String) {
        for watch in folders.keys where folders[watch]?.remove(folder) != nil && folders[watch]?.isEmpty == true {
            inotify_rm_watch(file, watch)
            folders[watch] = nil
        }
    }

    private static func folder(of path: String) -> String {
        let parts = path.split(separator: "/", omittingEmptySubsequences: false).dropLast()
        return parts == [""] ? "/" : parts.joined(separator: "/")
    }

    private mutating func readEvents(now: Int64) {
        while true {
            let count = read(file, &buffer, buffer.count)
            guard count > 0 else { return }
            var start = 0
            // struct inotify_event: watch, mask, cookie, length of the name, the name.
            while start + 16 <= count {
                func word(_ at: Int) -> UInt32 {
                    (0..<4).reduce(0) { $0 | UInt32(buffer[start + at + $1]) << UInt32(8 * $1) }
                }
                let length = Int(word(12))
                guard start + 16 + length <= count else { return }
                let name = String(decoding: buffer[start + 16..<start + 16 + length].prefix { $0 != 0 }, as: UTF8.self)
                hear(Int32(bitPattern: word(0)), word(4), name, now: now)
                start += 16 + length
            }
        }
    }

    private mutating func hear(_ watch: Int32, _ mask: UInt32, _ name: String, now: Int64) {
        if mask & UInt32(IN_Q_OVERFLOW) != 0 {
            for path in places.keys { due[path] = now + Self.settleNs }
        } else if mask & UInt32(IN_IGNORED) != 0 {
            folders[watch] = nil
        } else if mask & UInt32(IN_DELETE_SELF | IN_MOVE_SELF) != 0 {
            inotify_rm_watch(file, watch)
            folders[watch] = nil
        } else {
            let heard = Set((folders[watch] ?? []).map { $0 == "/" ? "/\(name)" : "\($0)/\(name)" })
            for (path, all) in places where !heard.isDisjoint(with: all) { due[path] = now + Self.settleNs }
        }
    }
}
