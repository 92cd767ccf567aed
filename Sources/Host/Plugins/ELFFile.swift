// SPDX-License-Identifier: Apache-2.0

import Glibc

/// A 64-bit little-endian ELF file, read without mapping or running it. ELF-64 Object File Format, version 1.5.
final class ELFFile {
    enum Fault: Error, Equatable {
        /// The file cannot be read; the errno.
        case unreadable(Int32)
        /// A folder, a device, a pipe.
        case noRegularFile
        /// Too short, or without the magic 7F 45 4C 46.
        case notELF
        /// 32 bit, big-endian, or not a shared object.
        case otherKind
        /// For another processor.
        case otherMachine
        case truncated
        case noSection
    }

    /// `e_machine` of this processor.
    private static var machine: Int {
        #if arch(x86_64)
            62
        #elseif arch(arm64)
            183
        #endif
    }

    /// The most entries of a dynamic section that are read.
    private static let mostEntries = 4096

    private let file: Int32
    private var size = 0
    private var header: [UInt8] = []
    private var table: [UInt8] = []
    private var names: [UInt8] = []

    /// Reads headers and section table.
    init(_ path: String) throws(Fault) {
        var status = stat()
        // Before the opening, which a device or the writer of a pipe would notice.
        guard stat(path, &status) != 0 || status.st_mode & S_IFMT == S_IFREG else { throw .noRegularFile }
        file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard file >= 0 else { throw .unreadable(errno) }
        guard fstat(file, &status) == 0 else { throw .unreadable(errno) }
        guard status.st_mode & S_IFMT == S_IFREG else { throw .noRegularFile }
        size = Int(status.st_size)
        guard size >= 4, try read(0, 4) == [0x7f, 0x45, 0x4c, 0x46] else { throw .notELF }
        guard size >= 64 else { throw .truncated }
        header = try read(0, 64)
        guard header[4] == 2, header[5] == 1, Self.number(header, 16, 2) == 3 else { throw .otherKind }
        guard Self.number(header, 18, 2) == Self.machine else { throw .otherMachine }
        let entryCount = Self.number(header, 60, 2)
        let namesIndex = Self.number(header, 62, 2)
        guard entrySize >= 64, entryCount > 0, namesIndex < entryCount else { throw .truncated }
        table = try read(Self.number(header, 40, 8), entrySize * entryCount)
        let entry = namesIndex * entrySize
        let namesSize = Self.number(table, entry + 32, 8)
        guard namesSize <= 1 << 20 else { throw .truncated }
        names = try read(Self.number(table, entry + 24, 8), namesSize)
    }

    deinit { if file >= 0 { close(file) } }

    /// Bytes of an entry of the section table.
    private var entrySize: Int { Self.number(header, 58, 2) }

    private func read(_ offset: Int, _ count: Int) throws(Fault) -> [UInt8] {
        guard offset >= 0, count >= 0, offset <= size, count <= size - offset else { throw .truncated }
        var bytes = [UInt8](repeating: 0, count: count)
        guard pread(file, &bytes, count, off_t(offset)) == count else { throw .truncated }
        return bytes
    }

    private static func number(_ bytes: [UInt8], _ at: Int, _ count: Int) -> Int {
        Int(
            truncatingIfNeeded: (0..<count).reduce(UInt64(0)) { $0 | UInt64(bytes[at + $1]) << UInt64(8 * $1) }
                & 0x7fff_ffff_ffff_ffff)
    }

    /// Offset and length in the file.
    private func place(ofSection name: String) throws(Fault) -> (offset: Int, count: Int) {
        for entry in stride(from: 0, to: table.count, by: entrySize) {
            let start = Self.number(table, entry, 4)
            guard start < names.count, String(decoding: names[start...].prefix { $0 != 0 }, as: UTF8.self) == name
            else { continue }
            return (Self.number(table, entry + 24, 8), Self.number(table, entry + 32, 8))
        }
        throw .noSection
    }

    /// The bytes of section `name`, at most 64 KiB.
    func section(named name: String) throws(Fault) -> [UInt8] {
        let (offset, count) = try place(ofSection: name)
        return try read(offset, min(count, 1 << 16))
    }

    /// The same for the file at `path`.
    static func section(named name: String, of path: String) throws(Fault) -> [UInt8] {
        try ELFFile(path).section(named: name)
    }

    /// Libraries that the file asks the dynamic linker for (`DT_NEEDED`).
    func neededLibraries() throws(Fault) -> [String] {
        let entries = try place(ofSection: ".dynamic")
        let strings = try place(ofSection: ".dynstr")
        let bytes = try read(entries.offset, min(entries.count, 16 * Self.mostEntries) / 16 * 16)
        var found: [String] = []
        for entry in stride(from: 0, to: bytes.count, by: 16) where Self.number(bytes, entry, 8) == 1 {
            let start = Self.number(bytes, entry + 8, 8)
            guard start < strings.count else { throw .truncated }
            let text = try read(strings.offset + start, min(strings.count - start, 4096))
            found.append(String(decoding: text.prefix { $0 != 0 }, as: UTF8.self))
        }
        return found
    }

    /// How many bytes of address space the file's segments take, in whole pages of 4 KiB.
    func mappedBytes() throws(Fault) -> Int {
        let entrySize = Self.number(header, 54, 2)
        let count = Self.number(header, 56, 2)
        guard entrySize >= 56 else { throw .truncated }
        let bytes = try read(Self.number(header, 32, 8), entrySize * count)
        return stride(from: 0, to: bytes.count, by: entrySize).reduce(0) { sum, entry in
            guard Self.number(bytes, entry, 4) == 1 else { return sum }
            let (start, length) = (Self.number(bytes, entry + 16, 8) & 4095, Self.number(bytes, entry + 40, 8))
            let (end, isTooLong) = start.addingReportingOverflow(length)
            let (rounded, isTooFar) = end.addingReportingOverflow(4095)
            let (next, isTooMuch) = sum.addingReportingOverflow(rounded & ~4095)
            return isTooLong || isTooFar || isTooMuch ? sum : next
        }
    }
}
