// SPDX-License-Identifier: Apache-2.0

import FrameCore
import FrameSupport
import Glibc
import Synchronization

/// A batch as other batches see it: a file that the batch keeps locked, and touches. The claims of the batch are hard
/// links of that file.
///
/// The lock and the lease only save work. ``BatchUnitFolder`` alone decides what a batch may publish.
final class BatchOwner: Sendable {
    /// The path of the file.
    let path: String
    /// The file, open and locked. Workers inherit the descriptor, so that the lock lasts as long as any worker.
    let file: Int32
    private let identity: FileIdentity
    private let lease: Double
    /// The interval at which the file is touched, in seconds.
    let beat: Double
    /// Files of other owners: when each file was touched last, and since when this batch has known of that touch
    /// (``MonotonicTime/seconds()``).
    private let seen = Mutex<[FileIdentity: (modified: Int64, since: Double)]>([:])

    /// - Parameter lease: Seconds without a touch after which an owner counts as gone.
    /// - Throws: ``FrameHostError`` if the folder cannot be written.
    init(in folder: String, lease: Double) throws {
        self.lease = lease
        beat = lease / 4
        var number = SystemRandomNumberGenerator()
        let name = "\(BatchFiles.safe(WorkRecord.hostName))-\(getpid())-\(String(number.next() as UInt32, radix: 16))"
        path = "\(folder)/\(name)"
        file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0o644)
        guard file >= 0 else {
            let code = errno
            throw FrameHostError(
                .unavailable, place: path, what: "cannot be created: \(String(cString: strerror(code)))",
                remedy: code == ENOSPC || code == EDQUOT
                    ? "Free some space, or name another folder with --out."
                    : code == EMFILE || code == ENFILE
                        ? "Raise the limit of open files (ulimit -n)."
                        : "Use --out to name a folder that can be written to.")
        }
        // On a file system without locks, only the lease counts.
        _ = flock(file, LOCK_EX | LOCK_NB)
        var status = stat()
        fstat(file, &status)
        identity = FileIdentity(status)
        let words: JSONNode = .object([
            ("host", .string(WorkRecord.hostName)), ("boot", .string(Self.bootID)), ("pid", .number(getpid())),
            ("program", .string(FrameHost.configuration.version)),
        ])
        let code = Transfer.write(Array((words.text() + "\n").utf8), to: file)
        guard code == 0 else {
            unlink(path)
            throw FrameHostError(
                .unavailable, place: path, what: "cannot be written: \(String(cString: strerror(code)))",
                remedy: "Free some space, or name another folder with --out.")
        }
    }

    /// Touches the file, so that other batches see that this batch is alive.
    func touch() { futimens(file, nil) }

    /// Removes the file when the batch ends.
    func end() { unlink(path) }

    /// Whether the batch that holds a claim is alive.
    enum Life: Equatable {
        case gone
        /// The name of the machine and the process, for people.
        case lives(String)
        /// The claim was removed during the check.
        case unknown
    }

    /// [slot] Whether the owner of a claim lives.
    func life(ofClaim claim: String) -> Life {
        let other = open(claim, O_RDONLY | O_CLOEXEC)
        guard other >= 0 else {
            var status = stat()
            // A dangling symbolic link belongs to no batch.
            return errno == ENOENT && lstat(claim, &status) == 0 ? .gone : .unknown
        }
        defer { close(other) }
        var status = stat()
        guard fstat(other, &status) == 0 else { return .unknown }
        let identity = FileIdentity(status)
        guard identity != self.identity else { return .lives("this batch") }
        var buffer = [UInt8](repeating: 0, count: 4096)
        let count = max(0, pread(other, &buffer, buffer.count, 0))
        let words = try? JSONReader.read(Array(buffer[..<count]), file: claim)
        if words?["boot"]?.asString == Self.bootID {
            // Others may check at the same moment, so this lock is a shared one. Only the owner's lock refuses it.
            if flock(other, LOCK_SH | LOCK_NB) == 0 { return .gone }
        }
        let modified = WorkRecord.nanoseconds(status.st_mtim)
        let now = MonotonicTime.seconds()
        let since = seen.withLock { seen in
            if let known = seen[identity], known.modified == modified { return known.since }
            seen[identity] = (modified, now)
            return now
        }
        if now - since > lease { return .gone }
        return .lives("\(words?["host"]?.asString ?? "?"), process \(words?["pid"]?.asInt ?? 0)")
    }

    /// A text that changes with each start of the machine.
    private static let bootID: String = {
        let file = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { return "" }
        defer { close(file) }
        var buffer = [UInt8](repeating: 0, count: 64)
        let count = max(0, read(file, &buffer, buffer.count))
        return String(decoding: buffer[..<count].prefix { $0 != UInt8(ascii: "\n") }, as: UTF8.self)
    }()
}
