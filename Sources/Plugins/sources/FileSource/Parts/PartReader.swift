// SPDX-License-Identifier: Apache-2.0

import FrameCore
import FrameSupport
import Glibc

/// Reads the file of a part, unit by unit. Nothing in it is trusted. One thread at a time.
final class PartReader {
    let path: String
    let format: EncodedFormat
    /// The stage that hid something of the pictures; nil where none did.
    let guardian: String?
    /// How many units there are, and the size of the largest in bytes.
    let count: Int
    let largest: Int
    private let file: HeldFile
    private let head = UnsafeMutableRawBufferPointer.allocate(byteCount: PartFile.Head.byteCount, alignment: 8)
    private var offset: Int
    /// Where the head of the end is.
    private let end: Int

    private static let mostLineBytes = 1 << 20

    /// - Throws: ``FrameHostError`` where the file is not there or not whole.
    init(_ path: String, as stage: String) throws {
        self.path = path
        guard let file = RunFiles.read(path, as: stage) else { throw Self.unreadable(path, errno) }
        self.file = file
        var line = [UInt8](repeating: 0, count: Self.mostLineBytes)
        let read = max(0, pread(file.descriptor, &line, line.count, 0))
        guard let length = line[..<read].firstIndex(of: 10),
            let (format, guardian) = PartFile.format(Array(line[..<length]), file: path)
        else { throw Self.notWhole(path) }
        self.format = format
        self.guardian = guardian
        offset = length + 1
        var status = stat()
        guard fstat(file.descriptor, &status) == 0 else { throw Self.notWhole(path) }
        end = Int(status.st_size) - PartFile.Head.byteCount
        guard end >= offset, pread(file.descriptor, head.baseAddress, head.count, end) == head.count else {
            throw Self.notWhole(path)
        }
        let last = PartFile.Head(UnsafeRawBufferPointer(head))
        guard last.isEnd, last.pts >= 0, last.pts <= Int64(end), last.dts >= 0, last.dts <= Int64(end) else {
            throw Self.notWhole(path)
        }
        (count, largest) = (Int(last.pts), Int(last.dts))
    }

    deinit { head.deallocate() }

    /// The next unit's head; nil after the last. ``read(into:)`` then gives its bytes.
    func next() throws -> PartFile.Head? {
        guard offset < end else { return nil }
        guard end - offset >= head.count, pread(file.descriptor, head.baseAddress, head.count, offset) == head.count
        else { throw Self.notWhole(path) }
        let next = PartFile.Head(UnsafeRawBufferPointer(head))
        offset += head.count
        guard !next.isEnd, next.isPossible, Int(next.size) <= min(largest, end - offset) else {
            throw Self.notWhole(path)
        }
        return next
    }

    /// The bytes of the unit whose head came last.
    func read(into bytes: UnsafeMutableRawBufferPointer) throws {
        guard Transfer.read(into: bytes, from: file.descriptor, at: Int64(offset)).count == bytes.count else {
            throw Self.notWhole(path)
        }
        offset += bytes.count
    }

    /// - Parameter code: Why the file could not be opened; meaningless where it is there, but no regular file.
    private static func unreadable(_ path: String, _ code: Int32) -> FrameHostError {
        var status = stat()
        let isOther = stat(path, &status) == 0 && status.st_mode & S_IFMT != S_IFREG
        return FrameHostError(
            .unavailable, place: FaultPlace(path),
            what: isOther ? "must be a regular file" : "cannot be read: \(String(cString: strerror(code)))",
            remedy: !isOther && (code == EMFILE || code == ENFILE)
                ? "Raise the limit of open files (ulimit -n)."
                : "Remove it if it is there, and start the batch again with --retry.")
    }

    static func notWhole(_ path: String) -> FrameHostError {
        FrameHostError(
            .invalidMedia, place: FaultPlace(path), what: "must be a complete part, made by this version of framehost",
            remedy: "Remove it and start the batch again with --retry.")
    }
}
