import FrameCore
import Glibc

/// The pictures that a path means, in their order.
struct ImageList: Equatable {
    enum Kind: Equatable { case picture, folder, pattern }

    let kind: Kind
    /// Absolute, or from the process's folder.
    private(set) var paths: [String]

    /// More files than this are not listed.
    private static let most = 1_000_000

    /// How names of pictures end, in small letters; what else lies in a folder is passed over.
    static let endings: Set = [
        "png", "apng", "jpg", "jpeg", "jpe", "jfif", "webp", "avif", "bmp", "gif", "tif", "tiff", "jp2", "j2k", "jls",
        "pbm", "pgm", "ppm", "pnm", "pam", "pfm", "tga", "exr", "hdr", "qoi", "dpx", "pcx", "sgi", "xbm", "xpm", "ico",
    ]

    /// [control thread, stage thread] Looks at the names; opens no picture.
    ///
    /// - Parameter isRelative: `path` was written relative to the chain file's folder.
    /// - Throws: ``FrameHostError`` where there is nothing.
    init(_ path: String, order: ImageOrder, isRelative: Bool) throws {
        var status = stat()
        if stat(path, &status) == 0 {
            guard status.st_mode & S_IFMT == S_IFDIR else {
                (kind, paths) = (.picture, [path])
                return
            }
            kind = .folder
            paths = try Self.pictures(in: path)
            if paths.isEmpty { throw ImageFault.emptyFolder(path) }
        } else {
            let code = errno
            guard code == ENOENT || code == ENOTDIR, path.contains(where: { "*?[".contains($0) }) else {
                throw ImageFault.missing(path, code, isRelative: isRelative)
            }
            kind = .pattern
            paths = try Self.matches(of: path)
            if paths.isEmpty { throw ImageFault.noMatch(path) }
        }
        switch order {
        case .natural: paths.sort(by: NaturalOrder.precedes)
        case .name: paths.sort { Array($0.utf8).lexicographicallyPrecedes(Array($1.utf8)) }
        }
    }

    private static func pictures(in folder: String) throws -> [String] {
        guard let handle = opendir(folder) else { throw FileFault.unreadable(folder, errno) }
        defer { closedir(handle) }
        var paths: [String] = []
        while let entry = readdir(handle) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) {
                $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            guard !name.hasPrefix("."), let dot = name.lastIndex(of: "."),
                endings.contains(name[name.index(after: dot)...].lowercased())
            else { continue }
            try add(folder == "/" ? "/\(name)" : "\(folder)/\(name)", to: &paths, of: folder)
        }
        return paths
    }

    private static func matches(of pattern: String) throws -> [String] {
        var found = glob_t()
        defer { globfree(&found) }
        let result = glob(pattern, GLOB_NOSORT, nil, &found)
        if result == GLOB_NOMATCH { return [] }
        guard result == 0 else { throw ImageFault.unreadablePattern(pattern) }
        var paths: [String] = []
        for index in 0..<Int(found.gl_pathc) {
            if let path = found.gl_pathv[index] { try add(String(cString: path), to: &paths, of: pattern) }
        }
        return paths
    }

    /// Folders, devices and pipes are no pictures.
    private static func add(_ path: String, to paths: inout [String], of list: String) throws {
        var status = stat()
        guard stat(path, &status) != 0 || status.st_mode & S_IFMT == S_IFREG else { return }
        guard paths.count < most else { throw ImageFault.tooMany(list, most) }
        paths.append(path)
    }
}
