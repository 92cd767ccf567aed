// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Glibc

/// The folder of a spool, which one run at a time may use.
package final class SpoolFolder: Sendable {
    package let path: String
    /// The open file whose lock keeps other runs away.
    private let held: Locked<Int32>

    /// Makes the folder where there is none, and takes it.
    ///
    /// - Throws: ``FrameHostError`` where it cannot be made, or another run has it.
    package init(_ path: String) throws {
        self.path = path
        try Self.make(path)
        let file = "\(path)/lock"
        let lock = Self.open(file)
        held = Locked(lock)
        guard lock >= 0 else {
            let reason = errno
            throw FrameHostError(
                .unavailable, place: "spool",
                what: "the file '\(file)' cannot be opened: \(String(cString: strerror(reason)))",
                remedy: reason == ELOOP || reason == EISDIR
                    ? "Remove '\(file)', which must be a regular file, or name another folder with 'spool'."
                    : Self.remedy(reason))
        }
        guard flock(lock, LOCK_EX | LOCK_NB) == 0 else {
            // `deinit` closes it: all members are set.
            let reason = errno
            guard reason == EWOULDBLOCK else { throw Self.fault(path, "cannot be locked", reason) }
            throw FrameHostError(
                .unavailable, place: "spool",
                what: "the folder '\(path)' is in use by another run, or by another service of this run",
                remedy: "End that run, or name another folder with 'spool'.")
        }
    }

    deinit {
        // A program that is being started may have a copy of the descriptor for a moment, and with it the lock.
        held.withLock { lock in
            flock(lock, LOCK_UN)
            close(lock)
        }
    }

    private static func open(_ file: String) -> Int32 {
        Glibc.open(file, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0o600)
    }

    /// Makes the folder and its lock again if somebody has removed them during the run.
    ///
    /// - Returns: Why the folder cannot be used, as a part of a sentence.
    func renew() -> String? {
        held.withLock { lock in
            var (own, named) = (stat(), stat())
            let file = "\(path)/lock"
            guard
                fstat(lock, &own) != 0 || lstat(file, &named) != 0 || own.st_dev != named.st_dev
                    || own.st_ino != named.st_ino
            else { return nil }
            do { try Self.make(path) } catch { return "its folder was removed, and cannot be created again" }
            let other = Self.open(file)
            guard other >= 0 else { return String(cString: strerror(errno)) }
            guard flock(other, LOCK_EX | LOCK_NB) == 0 else {
                let code = errno
                close(other)
                return code == EWOULDBLOCK ? "another run uses its folder" : String(cString: strerror(code))
            }
            flock(lock, LOCK_UN)
            close(lock)
            lock = other
            return nil
        }
    }

    /// Checks that the folder can be used or made, as far as possible without making it.
    ///
    /// - Throws: ``FrameHostError`` `.unavailable`.
    package static func check(_ path: String) throws {
        var above = path
        var status = stat()
        while stat(above, &status) != 0 {
            guard errno == ENOENT, let slash = above.lastIndex(of: "/"), slash != above.startIndex else {
                if errno == ENOENT { return }
                throw fault(path, "cannot be used", errno)
            }
            above = String(above[..<slash])
        }
        guard status.st_mode & S_IFMT == S_IFDIR else { throw fault(path, "cannot be used", ENOTDIR) }
        guard access(above, W_OK | X_OK) == 0 else {
            throw fault(path, above == path ? "cannot be used" : "cannot be created", errno)
        }
    }

    /// Makes the folder and those above it, for this user alone.
    private static func make(_ path: String) throws {
        var done = path.hasPrefix("/") ? "/" : ""
        for part in path.split(separator: "/") {
            done += part + "/"
            guard mkdir(done, 0o700) != 0, errno != EEXIST else { continue }
            let reason = errno
            var status = stat()
            // A folder above that exists, where mkdir(2) may not write.
            if stat(done, &status) == 0 { continue }
            throw fault(path, "cannot be created", reason)
        }
        var status = stat()
        guard stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFDIR else {
            throw fault(path, "cannot be used", ENOTDIR)
        }
    }

    private static func fault(_ path: String, _ what: String, _ reason: Int32) -> FrameHostError {
        FrameHostError(
            .unavailable, place: "spool", what: "the folder '\(path)' \(what): \(String(cString: strerror(reason)))",
            remedy: remedy(reason))
    }

    private static func remedy(_ reason: Int32) -> String {
        switch reason {
        case ENOSPC, EDQUOT: "Free space on its disk, or set 'spool' to a folder on another disk."
        case EROFS, ENOLCK, EOPNOTSUPP: "Set 'spool' to a folder on another disk."
        case EIO: "Check its disk, or set 'spool' to a folder on another disk."
        case ENOTDIR: "Set 'spool' to another path: every part of it that exists must be a folder."
        case ELOOP: "Set 'spool' to a path whose symbolic links lead to a folder."
        case EMFILE, ENFILE: "Raise the limit of open files (ulimit -n)."
        default: "Set 'spool' to a folder that this user may write to."
        }
    }

    /// Where events wait when the option `spool` names no folder: `events/CHAIN.KEY` in the folder for program
    /// states.
    ///
    /// - SeeAlso: systemd.exec(5), `StateDirectory=`; XDG Base Directory Specification, `XDG_STATE_HOME`.
    package static func usual(chain: String, key: String, environment: (String) -> String? = variable) -> String {
        let name = "events/\(EventName.word(chain)).\(key)"
        if let state = environment("STATE_DIRECTORY")?.split(separator: ":").first { return "\(state)/\(name)" }
        if let state = environment("XDG_STATE_HOME") { return "\(state)/framehost/\(name)" }
        if let home = environment("HOME") { return "\(home)/.local/state/framehost/\(name)" }
        return "/var/lib/framehost/\(name)"
    }

    package static func variable(_ name: String) -> String? {
        getenv(name).map { String(cString: $0) }.flatMap { $0.hasPrefix("/") ? $0 : nil }
    }
}
