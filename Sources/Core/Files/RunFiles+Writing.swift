// SPDX-License-Identifier: Apache-2.0

import Glibc

/// Writing to a name that a person gave: a file as a whole, or a device or pipe as it is.
extension RunFiles {
    /// Opens a name for writing from its start: a new file, an old file emptied, a device or pipe as it is. Links are
    /// followed.
    ///
    /// - Parameters:
    ///   - path: The name.
    ///   - name: Who writes it, for messages: a stage's id or kind.
    ///   - patience: Nanoseconds to wait for a pipe's reader.
    ///   - isEnded: Asked during the wait; true ends the wait as if the time were over.
    /// - Throws: ``FileRefusal``.
    public func rewrite(
        _ path: String, as name: String, patience: Int64 = 0, unless isEnded: () -> Bool = { false }
    ) throws(FileRefusal) -> HeldFile {
        let path = try Self.opened(path)
        let place = Place(path)
        if case .append(let own) = place.way { return try Self.again(own, path) }
        if case .unknown(let code) = place.facts.kind { throw .failed(code) }
        if place.facts.kind == .absent {
            return try create(place.target, as: name)
        }
        if let refusal = FileRule.refusal(of: .rewrite, place.facts) { throw refusal }
        let file = try Self.openForWriting(path, isPipe: place.isPipe, patience: patience, isEnded)
        var status = stat()
        guard fstat(file, &status) == 0, FileIdentity(status) == place.identity else {
            Glibc.close(file)
            throw .changed
        }
        let identity = FileIdentity(status)
        guard place.facts.kind == .regular else {
            // Writing may wait; only the opening must not.
            _ = fcntl(file, F_SETFL, fcntl(file, F_GETFL) & ~O_NONBLOCK)
            let hold = HeldFiles.shared.add(identity, name: name, isWriter: true)
            return HeldFile(
                path: path, descriptor: file, identity: identity, isRegular: false, hold: hold, isLocked: false)
        }
        var facts = place.facts
        let claim = HeldFiles.shared.claim(identity, name: name, except: nil)
        facts.use = claim.use
        facts.isOwn = MadeFiles.shared.run(of: identity) != nil
        if claim.hold != nil { facts.lock = Self.lock(file, LOCK_EX, tries: 10) }
        var refusal = FileRule.refusal(of: .rewrite, facts)
        // The content may go only now that no other program has the file.
        if refusal == nil, SystemCall.retrying({ ftruncate(file, 0) }) != 0 { refusal = .failed(errno) }
        let held = claim.hold.map {
            HeldFile(
                path: path, descriptor: file, identity: identity, isRegular: true, hold: $0,
                isLocked: facts.lock == .free)
        }
        if held == nil { Glibc.close(file) }
        if let refusal { throw refusal }
        guard let held else { throw .changed }
        return held
    }

    /// The path by which `path` is opened: descriptor 1 leads to standard error, so `/dev/stdout` would (``StandardOutput``).
    ///
    /// - Throws: ``FileRefusal`` where standard output is closed: what stands in its place is open only for reading, but
    ///   by its path it could be opened for writing.
    private static func opened(_ path: String) throws(FileRefusal) -> String {
        let descriptor = StandardOutput.descriptor
        guard descriptor != STDOUT_FILENO, StandardStream.output.paths.contains(path) else { return path }
        guard fcntl(descriptor, F_GETFL) & O_ACCMODE != O_RDONLY else { throw .failed(EBADF) }
        return "/proc/self/fd/\(descriptor)"
    }

    private static func openForWriting(
        _ path: String, isPipe: Bool, patience: Int64, _ isEnded: () -> Bool
    ) throws(FileRefusal) -> Int32 {
        var waited: Int64 = 0
        while true {
            let file = open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)
            if file >= 0 { return file }
            let code = errno
            guard code == ENXIO, isPipe else { throw .failed(code) }
            guard waited < patience, !isEnded() else { throw .noReader }
            usleep(20_000)
            waited += 20_000_000
        }
    }

    private static func again(_ own: Int32, _ path: String) throws(FileRefusal) -> HeldFile {
        let file = fcntl(own, F_DUPFD_CLOEXEC, 3)
        guard file >= 0 else { throw .failed(errno) }
        var status = stat()
        fstat(file, &status)
        let identity = FileIdentity(status)
        let hold = HeldFiles.shared.add(identity, name: StandardStream.output.rawValue, isWriter: true)
        return HeldFile(path: path, descriptor: file, identity: identity, isRegular: false, hold: hold, isLocked: false)
    }

    /// Writes a whole file. Where possible, no reader sees half of it: a new file takes the name when it is
    /// complete.
    ///
    /// Owner, rights and further names stay. A link is followed. A device or pipe is written into.
    ///
    /// - Returns: What went wrong; nil when all of it is written.
    public func write(_ path: String, _ text: String, as name: String) -> FileRefusal? {
        var text = text
        return text.withUTF8 { bytes in
            do throws(FileRefusal) {
                try write(path, UnsafeRawBufferPointer(bytes), as: name)
                return nil
            } catch { return error }
        }
    }

    /// Writes a whole file from bytes. Where possible, no reader sees half of it.
    ///
    /// - Parameters:
    ///   - path: The file's name.
    ///   - bytes: All of its content.
    ///   - name: Who writes it, for messages: a stage's id or kind.
    ///   - isReplacing: Whether a regular file of that name is replaced; if not, it is refused as `.exists`.
    /// - Returns: What went wrong; nil when all of it is written.
    public func write(_ path: String, _ bytes: [UInt8], as name: String, isReplacing: Bool) -> FileRefusal? {
        bytes.withUnsafeBytes { bytes in
            do throws(FileRefusal) {
                if !isReplacing, Place(try Self.opened(path)).facts.kind == .regular { return .exists }
                try write(path, bytes, as: name)
                return nil
            } catch { return error }
        }
    }

    /// Says what would keep `write` from writing there, as far as this can be seen without writing; nil when
    /// nothing would.
    public func refusalOfWriting(_ path: String) -> FileRefusal? {
        do throws(FileRefusal) { return refusalOfWriting(opened: try Self.opened(path)) } catch { return error }
    }

    private func refusalOfWriting(opened path: String) -> FileRefusal? {
        let place = Place(path)
        if case .append = place.way { return nil }
        if case .unknown(let code) = place.facts.kind { return .failed(code) }
        if place.facts.kind == .absent {
            let folder = FileNames.folder(of: place.target)
            var status = stat()
            guard stat(folder, &status) == 0 else { return .failed(errno) }
            guard status.st_mode & S_IFMT == S_IFDIR else { return .failed(ENOTDIR) }
            return access(folder, W_OK | X_OK) == 0 ? nil : .failed(errno)
        }
        if place.facts.kind == .regular {
            let found = examine(place.target, as: "")
            if let refusal = FileRule.refusal(of: .exchange, found.facts) { return refusal }
        } else if let refusal = FileRule.refusal(of: .rewrite, place.facts) {
            return refusal
        }
        return access(path, W_OK) == 0 ? nil : .failed(errno)
    }

    private func write(_ path: String, _ bytes: UnsafeRawBufferPointer, as name: String) throws(FileRefusal) {
        let path = try Self.opened(path)
        let place = Place(path)
        // The file is a recording of this run, or of a chain beside it, or one of their stages has written it.
        if let identity = place.identity, MadeFiles.shared.run(of: identity) != nil { throw .isOwn }
        guard place.way == .exchange else { return try writeInPlace(path, bytes, as: name) }
        let new: HeldFile
        do throws(FileRefusal) {
            new = try createTemporary(for: place.target, as: name)
        } catch {
            // The file may be writable although its folder is not.
            guard place.facts.kind == .regular, error != .failed(ENOSPC) else { throw error }
            return try writeInPlace(path, bytes, as: name)
        }
        if let status = place.status { Self.takeOver(status, new.descriptor) }
        let code = new.write(bytes)
        var refusal: FileRefusal? = code == 0 ? nil : .failed(code)
        refusal = refusal ?? exchange(new, over: place.target, meant: place.identity, own: nil)
        guard let refusal else {
            // Such a file does not count as made by this run, so that the next figures may take its place.
            MadeFiles.shared.remove(new.identity)
            let closed = new.close()
            if closed != 0 { throw .failed(closed) }
            return
        }
        discard(new)
        throw refusal
    }

    private func writeInPlace(_ path: String, _ bytes: UnsafeRawBufferPointer, as name: String) throws(FileRefusal) {
        let file = try rewrite(path, as: name)
        if !file.isRegular { _ = fcntl(file.descriptor, F_SETFL, fcntl(file.descriptor, F_GETFL) | O_NONBLOCK) }
        let code = file.write(bytes, patience: 10_000_000_000)
        let closed = file.close()
        if code != 0 || closed != 0 { throw .failed(code != 0 ? code : closed) }
    }
}
