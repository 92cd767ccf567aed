// SPDX-License-Identifier: Apache-2.0

import FrameCore
import FrameSupport
import Glibc

/// The files of a spool: segments of lines, and the number that the server has acknowledged.
/// docs/design/029-event-publishers.md has their form.
///
/// A value without state of its own: the disk may hold anything, and what is not the spool's own is recognised here.
struct SpoolSegments {
    /// More bytes of a segment are not the spool's own, and are not read.
    static let mostSegmentBytes = 8 << 20

    struct Segment {
        /// The first number that it may hold; its name on disk.
        var first: UInt64
        /// Up to the end of its last whole line.
        var bytes: Int
    }

    /// A line of a segment.
    struct Line {
        /// Where it begins in the file, and where the next one does.
        var offset: Int
        var end: Int
        /// Nil for one that is damaged, or not the spool's own.
        var record: SpoolRecord?
    }

    let folder: SpoolFolder

    /// First numbers of the segments, rising.
    func numbers() throws -> [UInt64] {
        guard let list = opendir(folder.path) else {
            throw FrameHostError(
                .unavailable, place: "spool", what: "the folder '\(folder.path)' cannot be read: \(reason())",
                remedy: "Make the folder readable for this user, or name another folder with 'spool'.")
        }
        defer { closedir(list) }
        var numbers: [UInt64] = []
        while let entry = readdir(list) {
            let name = withUnsafeBytes(of: entry.pointee.d_name) { bytes in
                String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
            }
            guard name.hasSuffix(".events"), name.utf8.count == 27, let number = UInt64(name.prefix(20)),
                number > 0, number < .max / 2
            else { continue }
            numbers.append(number)
        }
        return numbers.sorted()
    }

    /// The lines of a part of a segment that are not empty.
    ///
    /// - Parameters:
    ///   - begin: Where the part begins in the file.
    ///   - after: Numbers of the part are above this one; nil at the segment's beginning.
    ///   - end: Numbers of the segment are below this one.
    func lines(
        _ bytes: [UInt8], at begin: Int, of first: UInt64, after: UInt64? = nil, below end: UInt64
    ) -> [Line] {
        let least = max(after.map { $0 + 1 } ?? 0, first)
        var all: [Line] = []
        var rest = bytes[...]
        while let stop = rest.firstIndex(of: 10) {
            if stop > rest.startIndex {
                let record = SpoolRecord(line: rest[..<stop])
                let isNear =
                    record.map { $0.number >= least && $0.number < end && $0.number - first < SpoolOrder.mostSpan }
                    ?? false
                all.append(
                    Line(offset: begin + rest.startIndex, end: begin + stop + 1, record: isNear ? record : nil))
            }
            rest = rest[(stop + 1)...]
        }
        let known = all.indices.filter { all[$0].record != nil }
        for (index, isOwn) in zip(known, SpoolOrder.rising(known.map { all[$0].record!.number })) where !isOwn {
            all[index].record = nil
        }
        return all
    }

    /// Cuts what follows the last whole line of a segment.
    ///
    /// - Returns: Its length, and its last number; 0 for none.
    /// - Throws: ``FrameHostError`` where it cannot be read: nothing is cut then.
    func mend(_ segment: Segment) throws -> (bytes: Int, number: UInt64) {
        guard let bytes = read(segment.first, from: 0, count: segment.bytes) else {
            let code = errno
            // A folder in its place has no lines. Appending finds it, and keeps the events in memory.
            if code == EISDIR { return (0, 0) }
            let remedy =
                switch code {
                case ELOOP, ESPIPE, ENXIO:
                    "Remove it, because it must be a regular file, or name another folder with 'spool'."
                case EMFILE, ENFILE: "Raise the limit of open files (ulimit -n)."
                case EIO: "Check its disk, or set 'spool' to a folder on another disk."
                default: "Let this user read and write it, or name another folder with 'spool'."
                }
            throw FrameHostError(
                .unavailable, place: "spool",
                what: "'\(path(segment.first))' cannot be read: \(String(cString: strerror(code)))", remedy: remedy)
        }
        let end = bytes.lastIndex(of: 10).map { $0 + 1 } ?? 0
        if end < segment.bytes || segment.bytes == Self.mostSegmentBytes { truncate(path(segment.first), end) }
        let last = lines(bytes, at: 0, of: segment.first, below: .max / 2).last { $0.record != nil }
        return (end, last?.record?.number ?? 0)
    }

    func sent(_ file: Int32) -> UInt64 {
        var bytes = [UInt8](repeating: 0, count: SpoolRecord.sent(0).count)
        guard pread(file, &bytes, bytes.count, 0) == bytes.count,
            let number = UInt64(String(decoding: bytes.prefix(20), as: UTF8.self)), number < .max / 2,
            bytes == SpoolRecord.sent(number)
        else { return 0 }
        return number
    }

    /// The bytes of a segment that are there; none where the segment is gone. Nil with `errno` where they cannot be
    /// read.
    func read(_ segment: UInt64, from offset: Int, count: Int) -> [UInt8]? {
        let file = Glibc.open(path(segment), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
        guard file >= 0 else { return errno == ENOENT ? [] : nil }
        let bytes = read(file, from: offset, count: count)
        let code = errno
        close(file)
        errno = code
        return bytes
    }

    /// The same of an open file.
    func read(_ file: Int32, from offset: Int, count: Int) -> [UInt8]? {
        var fault: Int32 = 0
        let bytes = [UInt8](unsafeUninitializedCapacity: count) { buffer, done in
            (done, fault) = Transfer.read(into: UnsafeMutableRawBufferPointer(buffer), from: file, at: Int64(offset))
        }
        guard fault != 0, bytes.isEmpty else { return bytes }
        errno = fault
        return nil
    }

    /// Whether the file that is open for appending still has its name on the disk, and all that was written into it.
    ///
    /// - Parameter bytes: How long it must be; nil for as long as the last segment is.
    func isWhole(_ state: SpoolState, with bytes: Int? = nil) -> Bool {
        guard state.writer >= 0, let last = state.segments.last else { return true }
        var (own, named) = (stat(), stat())
        guard fstat(state.writer, &own) == 0 else { return true }
        // A name that cannot be looked at is not gone.
        guard lstat(path(last.first), &named) == 0 else { return ![ENOENT, ENOTDIR, ESTALE].contains(errno) }
        return own.st_dev == named.st_dev && own.st_ino == named.st_ino && Int(own.st_size) >= bytes ?? last.bytes
    }

    func path(_ first: UInt64) -> String {
        let digits = String(first)
        return "\(folder.path)/\(String(repeating: "0", count: 20 - digits.utf8.count))\(digits).events"
    }

    func reason() -> String { String(cString: strerror(errno)) }
}
