// SPDX-License-Identifier: Apache-2.0

import Glibc

/// Reads the marks of recordings (``RecordingMark``), and adds them to recordings of earlier versions.
///
/// A look at a file reads at most 10 kB of it, whatever the file says of itself. Links are not followed, and only regular
/// files are opened.
public enum MarkedFile {
    /// The marks of a file: the one that its recorder wrote, and the one that was added last. Empty where there is none,
    /// or where the file cannot be read.
    ///
    /// - Parameters:
    ///   - path: The file's name.
    ///   - meant: The file that must have the name; nil for whichever has it.
    public static func marks(of path: String, meant: FileIdentity? = nil) -> [RecordingMark] {
        // Only a regular file is opened: an opening would wake a device.
        var status = stat()
        guard lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return [] }
        let file = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)
        guard file >= 0 else { return [] }
        defer { close(file) }
        guard fstat(file, &status) == 0, status.st_mode & S_IFMT == S_IFREG,
            (meant ?? FileIdentity(status))
                == FileIdentity(status)
        else { return [] }
        return marks(of: file, bytes: Int64(status.st_size))
    }

    static func marks(of file: Int32, bytes: Int64) -> [RecordingMark] {
        let first = read(file, 1024, at: 0)
        func mark(_ bytes: [UInt8]) -> RecordingMark? {
            RecordingForm.mark(atStartOf: bytes) ?? MarkedPicture.mark(atStartOf: bytes)
        }
        var start = mark(first)
        if start == nil, first.count == 1024, first.firstRange(of: RecordingMark.identifier) != nil {
            start = mark(read(file, RecordingForm.mostBytes, at: 0))
        }
        let most = Int64(RecordingForm.mostBytes)
        let end = RecordingForm.mark(atEndOf: read(file, RecordingForm.mostBytes, at: max(0, bytes - most)))
        return [start, end == start ? nil : end].compactMap(\.self)
    }

    private static func read(_ file: Int32, _ count: Int, at place: Int64) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: count)
        let got = SystemCall.retrying { pread(file, &bytes, count, Int(place)) }
        return got > 0 ? Array(bytes[..<got]) : []
    }

    // MARK: Adding a mark

    /// Why a file gets no mark.
    public enum Refusal: Error, Equatable, Sendable {
        /// It is none of the containers that a recorder writes.
        case otherKind
        /// Its last box or element does not end with the file: it was cut off, or is still being written.
        case isNotWhole
        /// It has several names (hard links).
        case hasOtherNames
        /// The file may not be touched.
        case refused(FileRefusal)
        /// A system call failed (errno).
        case failed(Int32)

        /// The reason as a sentence without its period.
        public func text(_ path: String) -> String {
            switch self {
            case .otherKind: "'\(path)' is no MP4, MOV or Matroska file"
            case .isNotWhole: "'\(path)' is cut off, or still being written"
            case .hasOtherNames: "'\(path)' has several names (hard links), so it may belong to somebody else too"
            case .refused(let refusal): refusal.fault(path).what
            case .failed(let code): "'\(path)' cannot be written: \(String(cString: strerror(code)))"
            }
        }
    }

    /// Whether a mark can be added at the end of a file, which stays as it is.
    ///
    /// - Throws: ``Refusal``.
    public static func form(ofWhole path: String) throws(Refusal) -> RecordingForm {
        var status = stat()
        guard lstat(path, &status) == 0 else { throw .failed(errno) }
        guard status.st_mode & S_IFMT == S_IFREG else { throw .otherKind }
        let file = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)
        guard file >= 0 else { throw .failed(errno) }
        defer { close(file) }
        guard fstat(file, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { throw .otherKind }
        guard status.st_nlink == 1 else { throw .hasOtherNames }
        return try form(ofWhole: file, bytes: Int64(status.st_size))
    }

    private static func form(ofWhole file: Int32, bytes: Int64) throws(Refusal) -> RecordingForm {
        let start = read(file, 64, at: 0)
        guard start.count >= 16 else { throw .otherKind }
        if start.starts(with: RecordingForm.ebmlID) {
            var offset: Int64 = 0
            // A few elements: header, marks, segment.
            for _ in 0..<64 where offset < bytes {
                guard let end = elementEnd(read(file, 16, at: offset), at: offset), end <= bytes else {
                    throw .isNotWhole
                }
                offset = end
            }
            guard offset == bytes else { throw .isNotWhole }
            return .matroska
        }
        guard start[4..<8].elementsEqual("ftyp".utf8) else { throw .otherKind }
        var offset: Int64 = 0
        // Two boxes a second: more than a week.
        for _ in 0..<2_000_000 where offset < bytes {
            guard let end = boxEnd(read(file, 16, at: offset), at: offset), end <= bytes else { throw .isNotWhole }
            offset = end
        }
        guard offset == bytes else { throw .isNotWhole }
        return start[8..<12].elementsEqual("qt  ".utf8) ? .mov : .mp4
    }

    /// Where a box ends (ISO/IEC 14496-12, 4.2); nil where it does not say so.
    private static func boxEnd(_ bytes: [UInt8], at offset: Int64) -> Int64? {
        guard bytes.count >= 8 else { return nil }
        let number = { (range: Range<Int>) in bytes[range].reduce(UInt64(0)) { $0 << 8 | UInt64($1) } }
        var size = number(0..<4)
        if size == 1 {
            guard bytes.count >= 16 else { return nil }
            size = number(8..<16)
        }
        guard size >= 8, size <= 1 << 60 else { return nil }
        return offset + Int64(size)
    }

    /// Where an element of EBML ends; nil where it does not say so.
    private static func elementEnd(_ bytes: [UInt8], at offset: Int64) -> Int64? {
        guard let (_, idLength) = RecordingForm.vint(bytes[...]), idLength <= 4,
            let (size, length) = RecordingForm.vint(bytes.dropFirst(idLength)),
            // All ones: unknown.
            size != 1 << UInt64(7 * length) - 1, size <= 1 << 60
        else { return nil }
        return offset + Int64(idLength + length) + Int64(size)
    }

    /// Adds a mark at the end of a whole file that nobody uses. The rest of the file and its times stay as they are.
    ///
    /// - Parameters:
    ///   - mark: What to add.
    ///   - path: The file's name.
    ///   - meant: The file that must have the name.
    ///   - files: Looks and locks.
    /// - Throws: ``Refusal``; the file is then as it was.
    public static func add(
        _ mark: RecordingMark, to path: String, meant: FileIdentity, _ files: RunFiles
    ) throws(Refusal) {
        let held: HeldFile?
        do {
            var tries = 0
            held = try files.hold(path, meant: meant, as: "recordings adopt") {
                tries += 1
                return tries > 50
            }
        } catch let refusal as FileRefusal { throw .refused(refusal) } catch { throw .failed(EIO) }
        guard let held else { throw .failed(ENOENT) }
        defer { held.close() }
        var status = stat()
        guard fstat(held.descriptor, &status) == 0 else { throw .failed(errno) }
        guard status.st_nlink == 1 else { throw .hasOtherNames }
        let form = try form(ofWhole: held.descriptor, bytes: Int64(status.st_size))
        let bytes = form.tail(mark)
        guard !bytes.isEmpty else { throw .failed(ENAMETOOLONG) }
        var code: Int32 = 0
        if lseek(held.descriptor, 0, SEEK_END) != status.st_size { code = ESTALE }
        if code == 0 {
            code = bytes.withUnsafeBytes { held.write($0) }
            if code == 0, SystemCall.retrying({ fdatasync(held.descriptor) }) != 0 { code = errno }
            if code != 0 { _ = SystemCall.retrying { ftruncate(held.descriptor, status.st_size) } }
        }
        let times = [status.st_atim, status.st_mtim]
        _ = futimens(held.descriptor, times)
        guard code == 0 else { throw .failed(code) }
    }
}
