// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Glibc

/// Which finished files of a recorder go, by age and by their size together. Pure.
struct RetentionPolicy {
    struct File: Equatable {
        var path: String
        var bytes: Int64
        /// When it was last written, nanoseconds since 1970.
        var time: Int64
        /// Nil in tests of the policy alone.
        var identity: FileIdentity? = nil
    }

    /// Nanoseconds; nil keeps files of any age.
    let age: Int64?
    let byteLimit: Int64?

    init(seconds: Double?, megabytes: Double?) {
        age = seconds.map { Int64($0 * 1e9) }
        byteLimit = megabytes.map { Int64($0 * 1_000_000) }
    }

    var isOn: Bool { age != nil || byteLimit != nil }

    /// The files to remove, oldest first.
    ///
    /// - Parameters:
    ///   - files: Without the one being written.
    ///   - writing: Bytes of the one being written, which count.
    func excess(_ files: [File], writing: Int64, now: Int64) -> [File] {
        let oldestFirst = files.sorted { ($0.time, $0.path) < ($1.time, $1.path) }
        var total = oldestFirst.reduce(writing) { Self.sum($0, $1.bytes) }
        return oldestFirst.filter { file in
            let isOld = age.map { now - file.time > $0 } ?? false
            let isMuch = byteLimit.map { total > $0 } ?? false
            guard isOld || isMuch else { return false }
            total -= min(file.bytes, total)
            return true
        }
    }

    /// Sizes are what files say: sparse ones, a few exabytes each.
    private static func sum(_ a: Int64, _ b: Int64) -> Int64 {
        let (sum, isTooMuch) = a.addingReportingOverflow(b)
        return isTooMuch ? .max : sum
    }
}

extension RetentionPolicy.File {
    /// A file on the disk. Time and size are bounded here, so that no arithmetic behind them overflows: to the years
    /// 1970 to 2223, and to a petabyte times eight.
    init(path: String, _ status: stat) {
        let seconds = min(max(Int64(status.st_mtim.tv_sec), 0), 8_000_000_000)
        let nanoseconds = min(max(Int64(status.st_mtim.tv_nsec), 0), 999_999_999)
        self.init(
            path: path, bytes: min(max(Int64(status.st_size), 0), 1 << 53), time: seconds * 1_000_000_000 + nanoseconds,
            identity: FileIdentity(status))
    }
}

/// The files a pattern has made, on the disk.
enum PatternFolder {
    /// All regular files whose folders and names the pattern can have made, each once, also where it has further names.
    /// Never goes through a link below the pattern's fixed folder.
    ///
    /// - Parameter current: The file being written, which is left out under whatever name.
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
                found.append(RetentionPolicy.File(path: path, status))
            }
        }
        return found
    }

    /// Removes the temporary files that a recorder or finaliser of such files left when it was killed.
    static func removeLeftOvers(of pattern: FileNamePattern, single: String?, _ files: RunFiles) {
        func originals(_ name: String) -> [String] {
            [Finaliser.original(ofTemporary: name), FileNames.original(ofTemporary: name)].compactMap(\.self)
        }
        visit(pattern) { folder in
            for name in FolderListing.names(in: folder)
            where originals(name).contains(where: { pattern.number(ofName: $0) != nil }) {
                _ = files.remove("\(folder)/\(name)", as: OutputFile.holder)
            }
        }
        guard let single else { return }
        let folder = FileNames.folder(of: single)
        for name in FolderListing.names(in: folder)
        where originals(name).contains(String(single.split(separator: "/").last ?? "")) {
            _ = files.remove("\(folder)/\(name)", as: OutputFile.holder)
        }
    }

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

    /// Removes a file that nobody uses, and the folders above it that are empty then.
    ///
    /// - Returns: Why it is still there; nil when it has gone.
    static func removeFile(_ file: RetentionPolicy.File, of pattern: FileNamePattern, _ files: RunFiles) -> FileRefusal?
    {
        if let refusal = files.remove(file.path, meant: file.identity, as: OutputFile.holder) { return refusal }
        var folder = FileNames.folder(of: file.path)
        for _ in 1..<pattern.components.count {
            guard rmdir(folder) == 0 else { break }
            folder = FileNames.folder(of: folder)
        }
        return nil
    }
}
