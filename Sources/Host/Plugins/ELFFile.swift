import Glibc

/// Finds one section of a 64-bit little-endian ELF file without mapping or running it. ELF-64 Object File Format,
/// version 1.5.
struct ELFFile {
    enum Fault: Error, Equatable {
        /// With its errno.
        case unreadable(Int32)
        /// A folder, a device, a pipe.
        case noRegularFile
        /// Too short, or without the magic 7F 45 4C 46.
        case notELF
        /// 32 bit, big-endian, or no shared object.
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

    /// Reads the bytes of section `name`, at most 64 KiB.
    static func section(named name: String, of path: String) throws(Fault) -> [UInt8] {
        let file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard file >= 0 else { throw .unreadable(errno) }
        defer { close(file) }
        var status = stat()
        guard fstat(file, &status) == 0 else { throw .unreadable(errno) }
        guard status.st_mode & S_IFMT == S_IFREG else { throw .noRegularFile }
        let size = Int(status.st_size)

        func read(_ offset: Int, _ count: Int) throws(Fault) -> [UInt8] {
            guard offset >= 0, count >= 0, offset <= size, count <= size - offset else { throw .truncated }
            var bytes = [UInt8](repeating: 0, count: count)
            guard pread(file, &bytes, count, off_t(offset)) == count else { throw .truncated }
            return bytes
        }
        func number(_ bytes: [UInt8], _ at: Int, _ count: Int) -> Int {
            Int(
                truncatingIfNeeded: (0..<count).reduce(UInt64(0)) { $0 | UInt64(bytes[at + $1]) << UInt64(8 * $1) }
                    & 0x7fff_ffff_ffff_ffff)
        }

        guard size >= 4, try read(0, 4) == [0x7f, 0x45, 0x4c, 0x46] else { throw .notELF }
        guard size >= 64 else { throw .truncated }
        let header = try read(0, 64)
        guard header[4] == 2, header[5] == 1, number(header, 16, 2) == 3 else { throw .otherKind }
        guard number(header, 18, 2) == machine else { throw .otherMachine }
        let tableOffset = number(header, 40, 8)
        let entrySize = number(header, 58, 2)
        let entryCount = number(header, 60, 2)
        let namesIndex = number(header, 62, 2)
        guard entrySize >= 64, entryCount > 0, namesIndex < entryCount else { throw .truncated }
        let table = try read(tableOffset, entrySize * entryCount)
        let namesEntry = namesIndex * entrySize
        let namesSize = number(table, namesEntry + 32, 8)
        guard namesSize <= 1 << 20 else { throw .truncated }
        let names = try read(number(table, namesEntry + 24, 8), namesSize)
        for index in 0..<entryCount {
            let entry = index * entrySize
            let start = number(table, entry, 4)
            guard start < names.count, String(decoding: names[start...].prefix { $0 != 0 }, as: UTF8.self) == name
            else { continue }
            return try read(number(table, entry + 24, 8), min(number(table, entry + 32, 8), 1 << 16))
        }
        throw .noSection
    }
}
