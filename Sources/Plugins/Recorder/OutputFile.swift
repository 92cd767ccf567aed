import CAVFormat
import FrameCore
import Glibc

/// A file being written, over a descriptor of our own: exact reasons when a write fails, and a say in when it reaches the disk.
///
/// The descriptor has a lock (flock(2)) while the file is written: another recorder, of this process or any other, neither replaces nor
/// removes it. Used by one thread at a time.
final class OutputFile {
    let path: String
    /// errno of the first call that failed; 0 while none has.
    private(set) var failure: Int32 = 0
    /// Bytes from the file's begin to the furthest one written.
    private(set) var size: Int64 = 0
    private var file: Int32
    private var offset: Int64 = 0
    private let isRegular: Bool

    private init(path: String, file: Int32, isRegular: Bool) {
        self.path = path
        self.file = file
        self.isRegular = isRegular
    }

    deinit { close() }

    /// Makes the empty file. A file that is replaced is unlinked, not emptied: whoever reads it (this chain's source, perhaps) keeps it.
    ///
    /// - Returns: nil when there is such a file and it is not to be replaced.
    /// - Throws: ``FrameHostError`` naming the path.
    static func create(_ path: String, overwrite: Bool) throws -> OutputFile? {
        var status = stat()
        if overwrite, lstat(path, &status) == 0 {
            // A device or pipe is written to as it is; a link's file is emptied.
            guard status.st_mode & S_IFMT == S_IFREG else { return try openExisting(path) }
            guard !isLocked(path) else {
                throw FrameHostError(
                    .invalidConfiguration, what: "'\(path)' is being written by another recorder", remedy: "Give each its own 'path'.")
            }
            guard unlink(path) == 0 else { throw RecordingFault.unwritable(path, errno) }
        }
        let file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0o666)
        guard file >= 0 else {
            if errno == EEXIST { return nil }
            throw RecordingFault.unwritable(path, errno)
        }
        // Refused by some network file systems; then nobody else can lock it either.
        _ = flock(file, LOCK_EX | LOCK_NB)
        return OutputFile(path: path, file: file, isRegular: true)
    }

    private static func openExisting(_ path: String) throws -> OutputFile {
        let file = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC)
        guard file >= 0 else { throw RecordingFault.unwritable(path, errno) }
        var status = stat()
        fstat(file, &status)
        return OutputFile(path: path, file: file, isRegular: status.st_mode & S_IFMT == S_IFREG)
    }

    /// [any thread, may wait for 0.1 s] A finished file, locked: to be replaced, or to be brought to the disk; nil when it is not there any more.
    ///
    /// - Throws: ``FrameHostError`` when somebody else is writing it.
    static func lockExisting(_ path: String) throws -> OutputFile? {
        let file = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC)
        guard file >= 0 else {
            if errno == ENOENT { return nil }
            throw FrameHostError(.unavailable, what: "'\(path)' cannot be opened: \(String(cString: strerror(errno)))")
        }
        let found = OutputFile(path: path, file: file, isRegular: true)
        // Somebody who only looks whether it is locked has it for a moment.
        var tries = 0
        while flock(file, LOCK_EX | LOCK_NB) != 0, errno == EWOULDBLOCK {
            tries += 1
            guard tries < 50 else { throw FrameHostError(.unavailable, what: "'\(path)' is being written by another recorder") }
            usleep(2000)
        }
        var status = stat()
        fstat(file, &status)
        found.size = Int64(status.st_size)
        return found
    }

    /// Whether somebody is writing this file.
    static func isLocked(_ path: String) -> Bool {
        let file = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
        guard file >= 0 else { return false }
        defer {
            _ = flock(file, LOCK_UN)
            Glibc.close(file)
        }
        return flock(file, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK
    }

    // MARK: Writing

    func write(_ bytes: UnsafeRawBufferPointer) -> Int32 {
        var done = 0
        while done < bytes.count {
            let count = Glibc.write(file, bytes.baseAddress! + done, bytes.count - done)
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return fail(count == 0 ? EIO : errno) }
            done += count
            offset += Int64(count)
            size = max(size, offset)
        }
        return Int32(done)
    }

    /// As `AVIOContext.seek`: the new offset, the size for `AVSEEK_SIZE`, or an error.
    func seek(_ target: Int64, _ whence: Int32) -> Int64 {
        if whence & AVSEEK_SIZE != 0 { return size }
        let result = lseek(file, Int(target), whence & ~AVSEEK_FORCE)
        guard result >= 0 else { return Int64(fail(errno)) }
        offset = Int64(result)
        return offset
    }

    private func fail(_ code: Int32) -> Int32 {
        if failure == 0 { failure = code }
        return -code
    }

    /// Waits until what was written is on the disk (fdatasync(2)).
    ///
    /// - Throws: ``RecordingErrno``; the file is as good as lost from then on.
    func sync() throws(RecordingErrno) {
        guard isRegular else { return }
        guard fdatasync(file) == 0 else { throw RecordingErrno(code: -fail(errno)) }
    }

    /// Gives it the rights of another file, and its time, by which old files are told.
    func takeOver(from original: OutputFile) throws(RecordingErrno) {
        var status = stat()
        guard fstat(original.file, &status) == 0, fchmod(file, status.st_mode & 0o7777) == 0 else { throw RecordingErrno(code: errno) }
        let times = [status.st_atim, status.st_mtim]
        guard futimens(file, times) == 0 else { throw RecordingErrno(code: errno) }
    }

    /// Brings the names in a file's folder to the disk (fsync(2)); without it a power cut can undo a creation or renaming.
    static func syncFolder(of path: String) {
        let folder = open(RecordingFault.folder(of: path), O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard folder >= 0 else { return }
        fsync(folder)
        Glibc.close(folder)
    }

    /// False when somebody has removed the file, so that nobody will ever see what is written to it.
    var isStillThere: Bool {
        var status = stat()
        return !isRegular || fstat(file, &status) != 0 || status.st_nlink > 0
    }

    /// Shortens the file to what plays, or removes it when that is nothing.
    func cut(to length: Int64) {
        guard isRegular else { return }
        if length == 0 { unlink(path) } else { ftruncate(file, Int(length)) }
    }

    /// - Throws: ``RecordingErrno``: some network file systems say only here that they had no room.
    func finish() throws(RecordingErrno) {
        guard file >= 0 else { return }
        unlock()
        let result = Glibc.close(file)
        file = -1
        guard result == 0 else { throw RecordingErrno(code: -fail(errno)) }
    }

    private func close() {
        guard file >= 0 else { return }
        unlock()
        Glibc.close(file)
        file = -1
    }

    /// Closing alone leaves the lock to a child process that was forked a moment ago and has not begun its own program yet.
    private func unlock() { _ = flock(file, LOCK_UN) }

    // MARK: As libavformat wants it

    static let bufferBytes: Int32 = 256 << 10

    /// An I/O context that writes here; the caller keeps this object alive and frees the context with `freeIO`.
    func makeIO() -> UnsafeMutablePointer<AVIOContext>? {
        guard let buffer = av_malloc(Int(Self.bufferBytes)) else { return nil }
        let write: @convention(c) (UnsafeMutableRawPointer?, UnsafeMutablePointer<UInt8>?, Int32) -> Int32 = { file, bytes, count in
            Unmanaged<OutputFile>.fromOpaque(file!).takeUnretainedValue().write(UnsafeRawBufferPointer(start: bytes, count: Int(count)))
        }
        let seek: @convention(c) (UnsafeMutableRawPointer?, Int64, Int32) -> Int64 = { file, target, whence in
            Unmanaged<OutputFile>.fromOpaque(file!).takeUnretainedValue().seek(target, whence)
        }
        return avio_alloc_context(
            buffer.assumingMemoryBound(to: UInt8.self), Self.bufferBytes, 1, Unmanaged.passUnretained(self).toOpaque(), nil, write,
            isRegular ? seek : nil)
    }

    static func freeIO(_ io: inout UnsafeMutablePointer<AVIOContext>?) {
        guard let context = io else { return }
        av_freep(&context.pointee.buffer)
        avio_context_free(&io)
    }
}

/// An errno on its way to a sentence.
struct RecordingErrno: Error { var code: Int32 }
