// SPDX-License-Identifier: Apache-2.0

import CAVFormat
import FrameCore
import FrameSupport
import Glibc

/// A file being written, through a descriptor of our own. So the exact reason of a failed write is known, and the
/// recorder decides when data reaches the disk.
///
/// ``RunFiles`` makes and holds it: no other recorder, in this process or another, replaces or removes it meanwhile.
/// Used by one thread at a time.
final class OutputFile {
    let held: HeldFile
    /// The errno of the first call that failed; 0 before that.
    private(set) var failure: Int32 = 0
    /// Bytes from the file's start to the furthest one written.
    private(set) var size: Int64 = 0
    /// The files beside it that were asked for. They are made and removed with it.
    var sidecars: [Sidecar: HeldFile] = [:]
    /// Why a file beside it that was asked for could not be made.
    var refusals: [Sidecar: FileRefusal] = [:]
    private let files: RunFiles
    private var offset: Int64 = 0
    /// The mark at the file's start, where a recorder has made the file.
    var mark: RecordingMark?
    /// Bytes of the mark at the file's start; libavformat's come behind it.
    private(set) var head: Int64 = 0
    /// Set until libavformat has written its first bytes.
    private var form: RecordingForm?

    init(_ held: HeldFile, _ files: RunFiles, size: Int64 = 0) {
        self.held = held
        self.files = files
        self.size = size
    }

    var path: String { held.path }
    private var file: Int32 { held.descriptor }
    private var isRegular: Bool { held.isRegular }

    /// The files of recorders are held under this name.
    static let holder = "recorder"

    /// Makes the empty file. A file that it replaces loses its name but not its contents, so programs that read it can
    /// go on.
    ///
    /// - Parameters:
    ///   - overwrite: Whether to replace a regular file that has the name.
    ///   - meant: The file to replace; nil for whichever has the name.
    ///   - isNamed: True where the user wrote this name, false where a pattern made it. The user's name may be a
    ///     link, which is followed, or a device.
    /// - Throws: ``FileRefusal``.
    static func create(
        _ path: String, overwrite: Bool, meant: FileIdentity? = nil, isNamed: Bool, _ files: RunFiles
    ) throws(FileRefusal) -> OutputFile {
        guard overwrite else { return OutputFile(try files.create(path, as: holder), files) }
        guard isNamed else { return OutputFile(try files.replace(path, meant: meant, as: holder), files) }
        var status = stat()
        if stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFCHR {
            return OutputFile(try files.rewrite(path, as: holder), files)
        }
        return OutputFile(try files.replace(FileNames.followed(path), as: holder), files)
    }

    /// [job thread, may wait for two seconds] Holds a finished file, in order to replace it; nil when it has gone, or
    /// when the name now belongs to another file.
    ///
    /// - Parameter goOn: Throws in order to end the wait.
    /// - Throws: ``FileRefusal`` when another program uses it.
    static func hold(_ path: String, meant: FileIdentity?, _ files: RunFiles, _ goOn: () throws -> Void = {}) throws
        -> OutputFile?
    {
        var tries = 0
        do {
            let held = try files.hold(path, meant: meant, as: holder) {
                try goOn()
                tries += 1
                return tries >= 1000
            }
            guard let held else { return nil }
            var status = stat()
            fstat(held.descriptor, &status)
            return OutputFile(held, files, size: Int64(status.st_size))
        } catch FileRefusal.changed { return nil }
    }

    // MARK: Writing

    /// Writes who made the file, before anything else. A failure is found by the next write, and reported as that one's.
    func begin(with mark: RecordingMark, _ form: RecordingForm) {
        guard isRegular, size == 0 else { return }
        let bytes = form.head(mark)
        guard !bytes.isEmpty, bytes.withUnsafeBytes({ write($0) }) == bytes.count else { return }
        (head, self.form) = (size, form)
    }

    /// Whether libavformat has written anything.
    var hasContent: Bool { size > head }

    func write(_ bytes: UnsafeRawBufferPointer) -> Int32 {
        if let form, offset == head, bytes.count >= 16 {
            self.form = nil
            var first = Array(bytes[..<16])
            for (place, bytes) in form.corrections(for: first, head: Int(head)) {
                do throws(RecordingErrno) { try overwrite(bytes, at: Int64(place)) } catch { return fail(error.code) }
            }
            form.hideStart(&first)
            let result = first.withUnsafeBytes { write($0) }
            guard result >= 0 else { return result }
            let rest = write(UnsafeRawBufferPointer(rebasing: bytes[16...]))
            return rest < 0 ? rest : result + rest
        }
        // After this write the hole could no longer be detected.
        guard !wasShortened else { return fail(ESTALE) }
        let begin = offset
        let code = Transfer.write(bytes, to: file) {
            offset = begin + Int64($0)
            size = max(size, offset)
        }
        return code == 0 ? Int32(bytes.count) : fail(code)
    }

    /// As `AVIOContext.seek`: the new offset, the size for `AVSEEK_SIZE`, or an error.
    func seek(_ target: Int64, _ whence: Int32) -> Int64 {
        if whence & AVSEEK_SIZE != 0 { return size }
        let result = lseek(file, Int(target), whence & ~AVSEEK_FORCE)
        guard result >= 0 else { return Int64(fail(errno)) }
        offset = Int64(result)
        return offset
    }

    /// Reads up to `count` bytes that were written.
    ///
    /// - Throws: ``RecordingErrno``.
    func read(_ count: Int, at place: Int64) throws(RecordingErrno) -> [UInt8] {
        guard isRegular else { return [] }
        var bytes = [UInt8](repeating: 0, count: count)
        let got = SystemCall.retrying { pread(file, &bytes, count, Int(place)) }
        guard got >= 0 else { throw RecordingErrno(code: errno) }
        return Array(bytes[..<got])
    }

    /// Writes over bytes that are in the file. The position of the next write does not change.
    ///
    /// - Throws: ``RecordingErrno``.
    func overwrite(_ bytes: [UInt8], at place: Int64) throws(RecordingErrno) {
        guard isRegular else { return }
        let code = bytes.withUnsafeBytes { Transfer.write($0, to: file, at: place) }
        guard code == 0 else { throw RecordingErrno(code: code) }
    }

    private func fail(_ code: Int32) -> Int32 {
        if failure == 0 { failure = code }
        return -code
    }

    /// Waits until what was written is on the disk (fdatasync(2)).
    ///
    /// - Throws: ``RecordingErrno``; the file must then be taken as lost.
    func sync() throws(RecordingErrno) {
        guard isRegular else { return }
        guard SystemCall.retrying({ fdatasync(file) }) == 0 else { throw RecordingErrno(code: -fail(errno)) }
    }

    /// Gives the file the permissions of another one, and its time, by which retention judges its age.
    func takeOver(from original: OutputFile) throws(RecordingErrno) {
        var status = stat()
        guard fstat(original.file, &status) == 0,
            SystemCall.retrying({ fchmod(file, status.st_mode & 0o7777) }) == 0
        else {
            throw RecordingErrno(code: errno)
        }
        let times = [status.st_atim, status.st_mtim]
        guard futimens(file, times) == 0 else { throw RecordingErrno(code: errno) }
    }

    /// Syncs the names in a file's folder to the disk (fsync(2)). Without it a power cut can undo a creation or
    /// renaming.
    static func syncFolder(of path: String) {
        let folder = open(FileNames.folder(of: path), O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard folder >= 0 else { return }
        _ = SystemCall.retrying { fsync(folder) }
        Glibc.close(folder)
    }

    /// Whether the file still has a name. Once it is removed, nobody can see what is written to it.
    var isStillThere: Bool {
        var status = stat()
        return !isRegular || fstat(file, &status) != 0 || status.st_nlink > 0
    }

    /// Whether somebody else has made the file shorter than what was written.
    var wasShortened: Bool {
        var status = stat()
        return isRegular && file >= 0 && fstat(file, &status) == 0 && Int64(status.st_size) < size
    }

    /// Shortens the file to the part that plays. Removes it when nothing plays, but only where the name still leads
    /// to it.
    func cut(to length: Int64) {
        guard isRegular, file >= 0 else { return }
        guard length == 0 else {
            _ = SystemCall.retrying { ftruncate(file, Int(length)) }
            return
        }
        files.discard(held)
        for sidecar in sidecars.values { files.discard(sidecar) }
    }

    /// - Throws: ``RecordingErrno``: some network file systems only report here that they had no room.
    func finish() throws(RecordingErrno) {
        let code = held.close()
        guard code == 0 else { throw RecordingErrno(code: -fail(code)) }
    }

    // MARK: As libavformat wants it

    static let bufferBytes: Int32 = 256 << 10

    /// An I/O context that writes here; the caller keeps this object alive and frees the context with `freeIO`.
    func makeIO() -> UnsafeMutablePointer<AVIOContext>? {
        guard let buffer = av_malloc(Int(Self.bufferBytes)) else { return nil }
        let write: @convention(c) (UnsafeMutableRawPointer?, UnsafeMutablePointer<UInt8>?, Int32) -> Int32 = {
            file, bytes, count in
            Unmanaged<OutputFile>.fromOpaque(file!).takeUnretainedValue().write(
                UnsafeRawBufferPointer(start: bytes, count: Int(count)))
        }
        let seek: @convention(c) (UnsafeMutableRawPointer?, Int64, Int32) -> Int64 = { file, target, whence in
            Unmanaged<OutputFile>.fromOpaque(file!).takeUnretainedValue().seek(target, whence)
        }
        let io = avio_alloc_context(
            buffer.assumingMemoryBound(to: UInt8.self), Self.bufferBytes, 1, Unmanaged.passUnretained(self).toOpaque(),
            nil, write,
            isRegular ? seek : nil)
        // All places in the file are libavformat's own, so they are right in the file.
        if head > 0, let io { avio_seek(io, head, SEEK_SET) }
        return io
    }

    static func freeIO(_ io: inout UnsafeMutablePointer<AVIOContext>?) {
        guard let context = io else { return }
        av_freep(&context.pointee.buffer)
        avio_context_free(&io)
    }
}

/// An errno, before it becomes part of a message.
struct RecordingErrno: Error { var code: Int32 }
