import FrameCore
import Glibc

/// Which finished files of a recorder go, by age and by their size together. Pure.
struct RetentionPolicy {
    struct File: Equatable {
        var path: String
        var bytes: Int64
        /// When it was last written, nanoseconds since 1970.
        var time: Int64
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
        var total = oldestFirst.reduce(writing) { $0 + $1.bytes }
        return oldestFirst.filter { file in
            let isOld = age.map { now - file.time > $0 } ?? false
            let isMuch = byteLimit.map { total > $0 } ?? false
            guard isOld || isMuch else { return false }
            total -= file.bytes
            return true
        }
    }
}

/// The files a pattern has made, on the disk.
enum PatternFolder {
    /// All regular files whose folders and names the pattern can have made. Never goes through a link below the pattern's fixed folder.
    static func files(of pattern: FileNamePattern) -> [RetentionPolicy.File] {
        var found: [RetentionPolicy.File] = []
        visit(pattern) { folder in
            for name in FolderListing.names(in: folder) where pattern.number(ofName: name) != nil {
                let path = "\(folder)/\(name)"
                var status = stat()
                guard lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { continue }
                let time = Int64(status.st_mtim.tv_sec) * 1_000_000_000 + Int64(status.st_mtim.tv_nsec)
                found.append(RetentionPolicy.File(path: path, bytes: Int64(status.st_size), time: time))
            }
        }
        return found
    }

    /// Removes the temporary files that a finaliser of such files left when it was killed.
    static func removeLeftOvers(of pattern: FileNamePattern, single: String?) {
        visit(pattern) { folder in
            for name in FolderListing.names(in: folder) {
                guard let original = Finaliser.original(ofTemporary: name), pattern.number(ofName: original) != nil else { continue }
                remove("\(folder)/\(name)")
            }
        }
        if let single { remove(Finaliser.temporary(for: single)) }
    }

    private static func remove(_ path: String) {
        var status = stat()
        guard lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG, !OutputFile.isLocked(path) else { return }
        unlink(path)
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

    /// Removes a file that nobody is writing, and the folders above it that are empty then.
    static func removeFile(_ file: RetentionPolicy.File, of pattern: FileNamePattern) -> Bool {
        guard !OutputFile.isLocked(file.path), unlink(file.path) == 0 else { return false }
        var folder = RecordingFault.folder(of: file.path)
        for _ in 1..<pattern.components.count {
            guard rmdir(folder) == 0 else { break }
            folder = RecordingFault.folder(of: folder)
        }
        return true
    }
}
