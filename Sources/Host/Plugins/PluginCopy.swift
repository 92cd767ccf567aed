// SPDX-License-Identifier: Apache-2.0

import FrameCore
import FrameSupport
import Glibc

/// A copy of a plugin's file, in a folder that only this program uses.
///
/// The file may change while it is checked, so the copy is both checked and loaded. The dynamic linker takes the
/// copy for a new image. The copy keeps the file's name, since backtraces show it. [control thread before the run, desk's
/// thread, thread of ``PluginLookout``]
struct PluginCopy {
    /// The file that was copied.
    let original: String
    let path: String
    /// A sum over its bytes, which tells a rebuilt file from one that was only touched.
    let sum: UInt64
    private let folder: String

    /// Copies the plugin at `original`.
    ///
    /// - Throws: ``FrameHostError`` `.unusablePlugin` where the file cannot be read, is not a regular file or is being
    ///   written; `.unavailable` where the copy cannot be made.
    init(of original: String) throws {
        func refuse(_ what: String, _ remedy: String, _ code: Int32 = 0) -> FrameHostError {
            FrameHostError(
                .unusablePlugin, place: original, what: what, remedy: Shortage.remedy(code) ?? remedy,
                reason: .of(errno: code))
        }
        let source = open(original, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard source >= 0 else {
            let code = errno
            throw refuse(
                "the file cannot be read: \(String(cString: strerror(code)))", "Build it again, or make it readable.",
                code)
        }
        defer { close(source) }
        var before = stat()
        guard fstat(source, &before) == 0, before.st_mode & S_IFMT == S_IFREG else {
            throw refuse("must be a regular file", "Remove it from the plugin folder.")
        }
        guard before.st_size <= Self.mostBytes else {
            throw refuse(
                "has \(before.st_size) bytes, more than the \(Self.mostBytes) that a plugin may have",
                "Remove it from the plugin folder, or build it without its symbols.")
        }
        guard !Self.isOpenForWriting(source) else {
            throw refuse("is being written", "Wait until the file is complete, and try again.")
        }

        self.original = original
        folder = try Self.makeFolder()
        path = "\(folder)/\(PluginRegistry.realPath(original).split(separator: "/").last ?? "plugin.so")"
        do {
            sum = try Self.copy(source, of: original, to: path)
            var after = stat()
            guard fstat(source, &after) == 0, after.st_size == before.st_size,
                after.st_mtim.tv_sec == before.st_mtim.tv_sec, after.st_mtim.tv_nsec == before.st_mtim.tv_nsec
            else { throw refuse("changed while it was being read", "Wait until the file is complete, and try again.") }
        } catch {
            Self.remove(folder)
            throw error
        }
    }

    /// Removes the copy's files. What is mapped stays.
    func remove() { Self.remove(folder) }

    /// More bytes than any plugin has: whatever takes its name is not read to an end that it may not have.
    static let mostBytes: Int64 = 1 << 30

    /// A sum over the bytes of the file at `path`; nil where it cannot be read, is not a regular file, or is larger than
    /// a plugin may be.
    static func sum(of path: String) -> UInt64? {
        guard let file = opened(path) else { return nil }
        defer { close(file) }
        return try? copy(file, of: path, to: nil)
    }

    /// Opens what may be a plugin; nil for anything else.
    private static func opened(_ path: String) -> Int32? {
        var status = stat()
        // Before the opening, which a device or the writer of a pipe would notice.
        guard stat(path, &status) == 0, isPossible(status) else { return nil }
        let file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
        guard file >= 0 else { return nil }
        // Another file may have taken the name.
        guard fstat(file, &status) == 0, isPossible(status) else {
            close(file)
            return nil
        }
        return file
    }

    private static func isPossible(_ status: stat) -> Bool {
        status.st_mode & S_IFMT == S_IFREG && status.st_size <= mostBytes
    }

    /// Whether some process has the file at `path` open for writing.
    static func isBeingWritten(_ path: String) -> Bool {
        guard let file = opened(path) else { return false }
        defer { close(file) }
        return isOpenForWriting(file)
    }

    /// A file that has not changed for this many seconds counts as complete, even where the system refuses a lease:
    /// NFS and SMB always do.
    private static let longestWrite = 60

    /// fcntl(2), F_SETLEASE: a read lease is granted only where no process has the file open for writing. False where
    /// the file system, or the file's owner, does not let us ask.
    private static func isOpenForWriting(_ file: Int32) -> Bool {
        let setLease: Int32 = 1024
        guard fcntl(file, setLease, Int32(F_RDLCK)) != 0 else {
            _ = fcntl(file, setLease, Int32(F_UNLCK))
            return false
        }
        guard errno == EAGAIN else { return false }
        var status = stat()
        // A time of the future, after a clock was set back, decides nothing.
        return fstat(file, &status) == 0 && (0..<longestWrite).contains(time(nil) - status.st_mtim.tv_sec)
    }

    // MARK: Libraries beside it

    /// Lets the copy find the libraries that lie beside the original (`$ORIGIN`).
    ///
    /// - Throws: ``FrameHostError`` `.unusablePlugin` where one of them is loaded and was rebuilt since: the dynamic
    ///   linker knows it by name and keeps the old one.
    func linkLibraries() throws {
        let home = PluginRegistry.realPath(original).split(separator: "/", omittingEmptySubsequences: false)
            .dropLast().joined(separator: "/")
        var open = (try? ELFFile(path).neededLibraries()) ?? []
        var seen = Set(open)
        while let name = open.popLast() {
            let file = "\(home)/\(name)"
            // The gate compares Core's fingerprint.
            guard !name.contains("/"), name != "libFrameCore.so", access(file, F_OK) == 0 else { continue }
            if let loaded = dlopen(name, RTLD_LAZY | RTLD_NOLOAD) {
                dlclose(loaded)
                guard !Self.isMappedWithoutName(file) else {
                    throw FrameHostError(
                        .unusablePlugin, place: original,
                        what: "uses \(name), which was rebuilt too, and a loaded library cannot be replaced",
                        remedy: "Restart the program to load both.")
                }
                continue
            }
            symlink(file, "\(folder)/\(name)")
            for next in (try? ELFFile(file).neededLibraries()) ?? [] where seen.insert(next).inserted {
                open.append(next)
            }
        }
    }

    /// proc(5), maps: a mapping of a file whose name now leads to another file is marked as deleted.
    private static func isMappedWithoutName(_ file: String) -> Bool {
        guard let maps = fopen("/proc/self/maps", "re") else { return false }
        defer { fclose(maps) }
        var line = [CChar](repeating: 0, count: 8192)
        while fgets(&line, Int32(line.count), maps) != nil {
            let text = String(decoding: line.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
            if text.hasSuffix(" \(file) (deleted)\n") { return true }
        }
        return false
    }

    // MARK: Files

    /// The fault of a copy that cannot be made. TMPDIR of a program that runs cannot be changed.
    private static func fault(_ place: String, _ what: String, _ code: Int32 = errno) -> FrameHostError {
        let start = code == ENOSPC || code == EDQUOT ? "Free some space there, or start" : "Start"
        return FrameHostError(
            .unavailable, place: place, what: "\(what): \(String(cString: strerror(code)))",
            remedy: Shortage.remedy(code)
                ?? "\(start) framehost again with TMPDIR set to a writable folder from which programs may be run.",
            reason: .of(errno: code))
    }

    private static func makeFolder() throws -> String {
        let base = getenv("TMPDIR").map { String(cString: $0) } ?? ""
        let template = "\(base.isEmpty ? "/tmp" : base)/framehost-plugin-XXXXXX"
        let folder = Leftovers.shared.makeFolder {
            var name = Array(template.utf8CString)
            guard mkdtemp(&name) != nil else { return nil }
            return String(decoding: name.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
        }
        guard let folder else { throw fault(template, "the folder for a copy of the plugin cannot be made") }
        return folder
    }

    /// - Parameters:
    ///   - original: The plugin's path, for a fault.
    ///   - path: nil to compute only the sum.
    private static func copy(_ source: Int32, of original: String, to path: String?) throws -> UInt64 {
        let target = path.map { open($0, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o500) } ?? -1
        guard path == nil || target >= 0 else { throw fault(path ?? "", "the copy of the plugin cannot be made") }
        defer { if target >= 0 { close(target) } }
        var sum: UInt64 = 0xcbf2_9ce4_8422_2325
        var total: Int64 = 0
        var buffer = [UInt8](repeating: 0, count: 1 << 16)
        while true {
            let count = SystemCall.retrying { read(source, &buffer, buffer.count) }
            guard count >= 0 else {
                let code = errno
                throw FrameHostError(
                    .unavailable, place: original,
                    what: "the plugin cannot be read: \(String(cString: strerror(code)))",
                    remedy: Shortage.remedy(code) ?? "Build the plugin again.", reason: .of(errno: code))
            }
            if count == 0 { return sum }
            total += Int64(count)
            // It may grow while it is read.
            guard total <= mostBytes else {
                throw FrameHostError(
                    .unusablePlugin, place: original,
                    what: "has more than the \(mostBytes) bytes that a plugin may have",
                    remedy: "Remove it from the plugin folder, or build it without its symbols.")
            }
            for byte in buffer[..<count] { sum = (sum ^ UInt64(byte)) &* 0x100_0000_01b3 }
            guard target >= 0 else { continue }
            let code = buffer.withUnsafeBytes {
                Transfer.write(UnsafeRawBufferPointer(rebasing: $0[..<count]), to: target)
            }
            guard code == 0 else { throw fault(path ?? "", "the copy of the plugin cannot be written", code) }
        }
    }

    /// Removes the folder and the files in it. ``init(of:)`` and ``linkLibraries()`` make no folders in it.
    private static func remove(_ folder: String) {
        _ = FileFolder.remove(folder)
        Leftovers.shared.forget(folder: folder)
    }
}
