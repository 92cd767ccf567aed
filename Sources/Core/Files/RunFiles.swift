// SPDX-License-Identifier: Apache-2.0

import Glibc

/// Creates, replaces, removes and empties files for all stages of a run. ``FileRule`` decides; this looks, locks and
/// acts.
///
/// A file is held and locked from the look to the end of the act, so that no other stage or program comes between.
/// Links are followed only where a person gave the name of one file. Every thread may use it. It waits for disks, and
/// at most a tenth of a second for a lock that another program has for a moment.
public final class RunFiles: Sendable {
    /// A random number that names the run.
    public let id = UInt64.random(in: 1 ... .max)
    private let reproducible = Locked(false)

    /// Whether what the run writes may depend on its inputs and its chain only, as in a batch, whose outputs are the same
    /// bytes whenever they are made. Recordings then have no mark, but those of a recorder with retention.
    public var isReproducible: Bool {
        get { reproducible.withLock { $0 } }
        set { reproducible.withLock { $0 = newValue } }
    }

    /// Begins without a file.
    public init() {}

    deinit { MadeFiles.shared.forget(run: id) }

    /// Whether this run has made the file.
    func hasMade(_ identity: FileIdentity) -> Bool { MadeFiles.shared.run(of: identity) == id }

    /// Why a file of another run of this process cannot be replaced; nil where no such run has made it, or where it may
    /// be replaced.
    public func refusalOfReplacing(ofAnotherRun path: String) -> FileRefusal? {
        guard let identity = FileIdentity(path: path), let run = MadeFiles.shared.run(of: identity), run != id else {
            return nil
        }
        return FileRule.refusal(of: .replace, examine(FileNames.followed(path), as: "").facts)
    }

    /// Whether any stage of this run made the file of that name; links are followed.
    public func hasMade(_ path: String) -> Bool { FileIdentity(path: path).map { hasMade($0) } ?? false }

    // MARK: Reading

    /// Holds a file that is read, so that nobody removes or empties it.
    ///
    /// The lock is shared with other readers. A file that is being written is held without a lock, since its writer has
    /// it.
    ///
    /// - Parameters:
    ///   - path: The file.
    ///   - name: Who reads it, for messages: a stage's id or kind.
    /// - Returns: The file; nil when it is not a regular file or cannot be opened, which the caller reports.
    public static func read(_ path: String, as name: String) -> HeldFile? {
        for _ in 0..<3 {
            let file = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)
            guard file >= 0 else { return nil }
            var status = stat()
            guard fstat(file, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
                Glibc.close(file)
                return nil
            }
            let identity = FileIdentity(status)
            let hold = HeldFiles.shared.add(identity, name: name, isWriter: false)
            let lock = lock(file, LOCK_SH, tries: 10)
            let held = HeldFile(
                path: path, descriptor: file, identity: identity, isRegular: true, hold: hold, isLocked: lock == .free)
            // Another program may have removed the name in the meantime, and put another file there.
            if FileIdentity(path: path) == identity { return held }
        }
        return nil
    }

    // MARK: Creating

    /// Makes an empty file under a name that is free, held and locked.
    ///
    /// - Throws: ``FileRefusal``: `.exists`, `.failed`.
    public func create(_ path: String, as name: String, mode: mode_t = 0o666) throws(FileRefusal) -> HeldFile {
        let file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode)
        guard file >= 0 else { throw errno == EEXIST ? .exists : .failed(errno) }
        return try take(file, path, as: name)
    }

    /// Makes a file under a name that is free, held and locked, which has its first bytes before it has the name: wherever
    /// the program is killed, the file says what it is. On a file system that cannot do that they are written just behind.
    ///
    /// - Parameters:
    ///   - path: The file's name.
    ///   - name: Who makes it, for messages: a stage's id or kind.
    ///   - begin: Writes the first bytes.
    /// - Throws: ``FileRefusal``: `.exists`, `.failed`.
    public func create(
        _ path: String, as name: String, beginning begin: (HeldFile) -> Void
    ) throws(FileRefusal) -> HeldFile {
        // O_TMPFILE, which Swift does not import (open(2)). Where a kernel does not know it, this opens the folder, which
        // fails.
        let file = open(FileNames.folder(of: path), 0o20_000_000 | O_DIRECTORY | O_RDWR | O_CLOEXEC, 0o666)
        if file >= 0 {
            let held = try take(file, path, as: name)
            begin(held)
            if linkat(AT_FDCWD, "/proc/self/fd/\(file)", AT_FDCWD, path, AT_SYMLINK_FOLLOW) == 0 { return held }
            let code = errno
            MadeFiles.shared.remove(held.identity)
            held.close()
            if code == EEXIST { throw .exists }
        }
        let held = try create(path, as: name)
        begin(held)
        return held
    }

    /// Holds and locks a file that was just made.
    private func take(_ file: Int32, _ path: String, as name: String) throws(FileRefusal) -> HeldFile {
        var status = stat()
        guard fstat(file, &status) == 0 else {
            let code = errno
            Glibc.close(file)
            throw .failed(code)
        }
        let identity = FileIdentity(status)
        MadeFiles.shared.add(identity, run: id)
        let hold = HeldFiles.shared.add(identity, name: name, isWriter: true)
        let lock = Self.lock(file, LOCK_EX, tries: 50)
        let held = HeldFile(
            path: path, descriptor: file, identity: identity, isRegular: true, hold: hold, isLocked: lock == .free)
        // A program that saw the file before it was locked keeps a lock on it. Without a lock of our own no program
        // would know that the file is being written.
        if lock == .read || lock == .written {
            discard(held)
            throw lock == .read ? .readElsewhere : .writtenElsewhere
        }
        return held
    }

    /// Makes an empty file in place of a regular one, with the old file's rights and, where possible, its owner. A
    /// program that reads the old file keeps it.
    ///
    /// - Parameters:
    ///   - path: The file's name.
    ///   - meant: The file to replace; nil for whichever has the name.
    ///   - name: Who replaces it, for messages: a stage's id or kind.
    /// - Throws: ``FileRefusal``; the old file is then untouched.
    public func replace(
        _ path: String, meant: FileIdentity? = nil, as name: String
    ) throws(FileRefusal) -> HeldFile {
        let old = examine(path, meant: meant, as: name)
        if let refusal = FileRule.refusal(of: .replace, old.facts) { throw refusal }
        guard let status = old.status else { return try create(path, as: name) }
        let new = try createTemporary(for: path, as: name)
        Self.takeOver(status, new.descriptor)
        if let refusal = rename(new, over: path, old) {
            discard(new)
            throw refusal
        }
        return new
    }

    /// Makes the empty file that is to take the name `path`, beside it.
    func createTemporary(for path: String, as name: String) throws(FileRefusal) -> HeldFile {
        for again in 1..<100 {
            do throws(FileRefusal) {
                return try create(FileNames.temporary(for: path, again: again), as: name)
            } catch { if error != .exists { throw error } }
        }
        return try create(FileNames.temporary(for: path, again: 100), as: name)
    }

    /// Takes over the rights, without set-user-ID and set-group-ID, and the owner where that is allowed.
    static func takeOver(_ status: stat, _ file: Int32) {
        var own = stat()
        if fstat(file, &own) == 0, own.st_uid != status.st_uid || own.st_gid != status.st_gid {
            _ = fchown(file, status.st_uid, status.st_gid)
        }
        _ = fchmod(file, status.st_mode & 0o777)
    }

    // MARK: Removing

    /// Removes a regular file that nobody uses.
    ///
    /// - Parameters:
    ///   - path: The file's name.
    ///   - meant: The file to remove; nil for whichever has the name.
    ///   - name: Who removes it, for messages: a stage's id or kind.
    /// - Returns: Why it is still there; nil when it has gone.
    public func remove(_ path: String, meant: FileIdentity? = nil, as name: String) -> FileRefusal? {
        let found = examine(path, meant: meant, as: name)
        if let refusal = FileRule.refusal(of: .remove, found.facts) { return refusal }
        return unlink(found)
    }

    /// Closes a file that was being written and removes it, if its name still leads to it and nobody else uses it.
    public func discard(_ file: HeldFile) {
        defer { file.close() }
        guard file.isRegular, file.descriptor >= 0 else { return }
        let found = examine(file.path, meant: file.identity, own: file, as: "")
        if FileRule.refusal(of: .remove, found.facts) == nil { _ = unlink(found) }
    }

    private func unlink(_ found: Examination) -> FileRefusal? {
        guard Glibc.unlink(found.path) == 0 else { return .failed(errno) }
        // A file with other names still exists, and still counts as made by this run.
        if let identity = found.identity, found.status?.st_nlink == 1 { MadeFiles.shared.remove(identity) }
        return nil
    }

    // MARK: Exchanging

    /// Holds and locks a finished file that is to be exchanged, and waits while another program has it for a moment.
    ///
    /// - Parameters:
    ///   - path: The file's name.
    ///   - meant: The file that must have the name; nil for whichever has it.
    ///   - name: Who exchanges it, for messages: a stage's id or kind.
    ///   - isOver: Asked between tries, every 2 ms; true gives up.
    /// - Returns: The file; nil when it is not there any more.
    public func hold(
        _ path: String, meant: FileIdentity? = nil, as name: String, until isOver: () throws -> Bool
    ) throws -> HeldFile? {
        while true {
            let found = examine(path, meant: meant, as: name)
            let refusal = FileRule.refusal(of: .exchange, found.facts)
            switch refusal {
            case nil: return found.take()
            case .absent: return nil
            case .readHere, .writtenHere, .readElsewhere, .writtenElsewhere: if try isOver() { throw refusal! }
            default: throw refusal!
            }
            found.close()
            usleep(2000)
        }
    }

    /// Renames `file`, just written, to `path`.
    ///
    /// - Parameters:
    ///   - file: The new file.
    ///   - path: The name that it gets.
    ///   - meant: The file that has the name; nil when none has it.
    ///   - own: That file, where it is held already.
    public func exchange(_ file: HeldFile, over path: String, meant: FileIdentity?, own: HeldFile?) -> FileRefusal? {
        let old = examine(path, meant: meant, own: own, as: "")
        if meant == nil, old.identity != nil { return .exists }
        if let refusal = FileRule.refusal(of: .exchange, old.facts) { return refusal }
        return rename(file, over: path, old)
    }

    private func rename(_ file: HeldFile, over path: String, _ old: Examination) -> FileRefusal? {
        guard file.hasItsName, old.isStillThere else { return .changed }
        // link(2) never replaces a file. Where a file system has no hard links, the check just above must do.
        var result = old.identity == nil ? link(file.path, path) : -1
        if result == 0 {
            _ = Glibc.unlink(file.path)
        } else if old.identity != nil || [EPERM, EOPNOTSUPP, ENOSYS, EMLINK].contains(errno) {
            result = Glibc.rename(file.path, path)
        }
        guard result == 0 else { return errno == EEXIST ? .changed : .failed(errno) }
        file.path = path
        if let identity = old.identity, old.status?.st_nlink == 1 { MadeFiles.shared.remove(identity) }
        return nil
    }

    /// Makes a file with all of its content under a name, which never leads to half of it: the file is written beside the
    /// name, and takes it when it is complete. Links are not followed.
    ///
    /// - Parameters:
    ///   - path: The name.
    ///   - bytes: All of the content.
    ///   - meant: The file whose place it takes; nil where the name must be free.
    ///   - name: Who makes it, for messages: a stage's id or kind.
    ///   - syncs: Whether the content is on the disk before the file gets the name (fdatasync(2)): then a power cut
    ///     leaves no empty file.
    ///   - isRenewed: Whether the run puts further files in its place: it then does not count as made by this run, whose
    ///     files are never replaced.
    /// - Throws: ``FileRefusal``; what had the name is then untouched. With `meant` nil, `.exists` for a name that is taken.
    public func put(
        _ path: String, _ bytes: [UInt8], replacing meant: FileIdentity?, as name: String, syncs: Bool = false,
        isRenewed: Bool = false
    ) throws(FileRefusal) {
        // Before anything is written: a taken name is common.
        if meant == nil, access(path, F_OK) == 0 { throw .exists }
        let old = meant.map { examine(path, meant: $0, as: name) }
        // Where the file that is meant has gone, the name is free.
        let replaced = old?.facts.kind == .absent ? nil : meant
        if replaced != nil, let old, let refusal = FileRule.refusal(of: .exchange, old.facts) { throw refusal }
        old?.close()
        let new = try createTemporary(for: path, as: name)
        var code = bytes.withUnsafeBytes { new.write($0) }
        if code == 0, syncs, SystemCall.retrying({ fdatasync(new.descriptor) }) != 0 { code = errno }
        if code == 0, replaced != nil, let status = old?.status { Self.takeOver(status, new.descriptor) }
        var refusal: FileRefusal? = code == 0 ? nil : .failed(code)
        refusal = refusal ?? exchange(new, over: path, meant: replaced, own: nil)
        if let refusal {
            discard(new)
            // Another program has put a file there meanwhile.
            throw replaced == nil && refusal == .changed ? .exists : refusal
        }
        if isRenewed { MadeFiles.shared.remove(new.identity) }
        code = new.close()
        if code != 0 { throw .failed(code) }
    }
}
