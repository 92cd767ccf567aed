// SPDX-License-Identifier: Apache-2.0

import Glibc

/// What was found under a name before something is done to it. A regular file stays open, claimed and locked as long as
/// this value exists.
final class Examination {
    let path: String
    private(set) var facts = FileFacts()
    /// Nil where there is no regular file.
    private(set) var status: stat?
    private var file: Int32 = -1
    private var hold: UInt64?

    var identity: FileIdentity? { status.map(FileIdentity.init) }

    /// - Parameters:
    ///   - meant: The file the caller knows; nil where any will do.
    ///   - own: The same file, held and locked by the caller.
    init(_ path: String, meant: FileIdentity?, own: HeldFile?, as name: String, isMade: (FileIdentity) -> Bool) {
        self.path = path
        var found = stat()
        guard lstat(path, &found) == 0 else {
            facts.kind = errno == ENOENT || errno == ENOTDIR ? .absent : .unknown(errno)
            facts.isMeant = meant == nil
            return
        }
        facts.kind = FileFacts.Kind(found)
        guard facts.kind == .regular else { return }
        // The caller's own file is open already, so it can be looked at even when no descriptor is left.
        let isOwn = own.map { $0.descriptor >= 0 && $0.identity == FileIdentity(found) } ?? false
        if !isOwn { open() }
        let looked = isOwn ? own!.descriptor : file
        // All other facts are those of the file that was opened.
        if looked >= 0, fstat(looked, &found) != 0 { facts.lock = .unknown(errno) }
        status = found
        let identity = FileIdentity(found)
        facts.isMeant = (meant ?? identity) == identity
        facts.isProtected = found.st_mode & 0o222 == 0
        facts.isOwn = isMade(identity)
        (facts.use, hold) = HeldFiles.shared.claim(
            identity, name: name, except: own?.identity == identity ? own?.hold : nil)
        let isOwnLock = own?.identity == identity && own?.isLocked == true
        if looked >= 0, hold != nil, !isOwnLock { facts.lock = RunFiles.lock(looked, LOCK_EX, tries: 1) }
        if !isStillThere { facts.isMeant = false }
    }

    deinit { close() }

    /// Opens the file for writing where that is allowed: some network file systems demand it for an exclusive lock.
    private func open() {
        let flags = O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC
        file = Glibc.open(path, O_RDWR | flags)
        if file < 0, errno == EACCES || errno == EPERM || errno == EROFS || errno == ETXTBSY {
            file = Glibc.open(path, O_RDONLY | flags)
        }
        if file < 0 { facts.lock = .unknown(errno) }
    }

    /// Whether the name still leads to what was looked at.
    var isStillThere: Bool {
        var now = stat()
        guard lstat(path, &now) == 0 else { return identity == nil && (errno == ENOENT || errno == ENOTDIR) }
        return FileIdentity(now) == identity
    }

    /// Hands the file and its lock over to the caller.
    func take() -> HeldFile? {
        guard let identity, let hold, file >= 0 else { return nil }
        let taken = HeldFile(
            path: path, descriptor: file, identity: identity, isRegular: true, hold: hold, isLocked: facts.lock == .free
        )
        file = -1
        self.hold = nil
        return taken
    }

    func close() {
        if file >= 0, facts.lock == .free { _ = flock(file, LOCK_UN) }
        // As in HeldFile.close: the list contains only open files.
        if let identity, let hold { HeldFiles.shared.remove(identity, hold) }
        hold = nil
        if file >= 0 { Glibc.close(file) }
        file = -1
    }
}

extension RunFiles {
    func examine(_ path: String, meant: FileIdentity? = nil, own: HeldFile? = nil, as name: String) -> Examination {
        Examination(path, meant: meant, own: own, as: name) { MadeFiles.shared.run(of: $0) != nil }
    }

    /// Asks for a lock up to `tries` times, 2 ms apart: a program that only looks holds it for a moment.
    static func lock(_ file: Int32, _ kind: Int32, tries: Int) -> FileFacts.Lock {
        for attempt in 1...tries {
            if SystemCall.retrying({ flock(file, kind | LOCK_NB) }) == 0 { return .free }
            switch errno {
            case EWOULDBLOCK: break
            case ENOLCK, ENOSYS, EOPNOTSUPP, EINVAL: return .missing
            default: return .unknown(errno)
            }
            if attempt < tries { usleep(2000) }
        }
        guard kind == LOCK_EX, SystemCall.retrying({ flock(file, LOCK_SH | LOCK_NB) }) == 0 else { return .written }
        _ = flock(file, LOCK_UN)
        return .read
    }
}

extension FileFacts.Kind {
    init(_ status: stat) {
        switch status.st_mode & S_IFMT {
        case S_IFREG: self = .regular
        case S_IFLNK: self = .link
        case S_IFDIR: self = .folder
        case S_IFIFO, S_IFCHR: self = .stream
        default: self = .other
        }
    }
}

/// The name of a file to write, as a person gave it, and what it leads to.
struct Place {
    /// Without use and lock, which are not looked at.
    private(set) var facts = FileFacts()
    private(set) var way = WriteWay.exchange
    /// The name of the file itself, links followed.
    private(set) var target: String
    private(set) var status: stat?
    var identity: FileIdentity? { status.map(FileIdentity.init) }
    var isPipe: Bool { status.map { $0.st_mode & S_IFMT == S_IFIFO } ?? false }

    init(_ path: String) {
        var found = stat()
        guard stat(path, &found) == 0 else {
            target = FileNames.followed(path)
            facts.kind = errno == ENOENT ? .absent : .unknown(errno)
            return
        }
        status = found
        target = path
        facts.kind = FileFacts.Kind(found)
        facts.isProtected = facts.kind == .regular && found.st_mode & 0o222 == 0
        var isNamed = false
        if facts.kind == .regular, let real = Self.realPath(path) {
            target = real
            var again = stat()
            // /proc/self/fd/N leads to files whose name has gone.
            isNamed = lstat(real, &again) == 0 && FileIdentity(again) == FileIdentity(found)
        }
        let user = geteuid()
        way = WriteWay(
            facts.kind, names: isNamed ? Int(found.st_nlink) : 0,
            keepsOwner: user == 0 || (found.st_uid == user && found.st_gid == getegid()),
            descriptor: Self.ownDescriptor(FileIdentity(found)))
    }

    private static func realPath(_ path: String) -> String? {
        guard let resolved = realpath(path, nil) else { return nil }
        defer { free(resolved) }
        return String(cString: resolved)
    }

    private static func ownDescriptor(_ identity: FileIdentity) -> Int32? {
        [StandardOutput.descriptor, STDOUT_FILENO, STDERR_FILENO].first { file in
            var status = stat()
            return fstat(file, &status) == 0 && status.st_mode & S_IFMT == S_IFREG && FileIdentity(status) == identity
        }
    }
}
