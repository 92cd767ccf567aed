// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Glibc

/// The pictures that a path names, in order.
struct ImageList: Equatable {
    enum Kind: Equatable { case picture, folder, pattern }

    let kind: Kind
    /// Absolute, or relative to the process's folder.
    private(set) var paths: [String]
    /// Names of pictures that are not UTF-8, so that no path in a chain file can name them. Written readably:
    /// `caf\\xE9.png`.
    private(set) var unreadableNames: [String] = []

    /// The most files that are listed.
    private static let most = 1_000_000

    /// The endings of pictures' names, in lower case. Other files in a folder are ignored.
    static let endings: Set = [
        "png", "apng", "jpg", "jpeg", "jpe", "jfif", "webp", "avif", "bmp", "gif", "tif", "tiff", "jp2", "j2k", "jls",
        "pbm", "pgm", "ppm", "pnm", "pam", "pfm", "tga", "exr", "hdr", "qoi", "dpx", "pcx", "sgi", "xbm", "xpm", "ico",
    ]

    /// [control thread, stage thread] Looks at the names; opens no picture.
    ///
    /// - Parameter isRelative: Whether `path` was written relative to the chain file's folder.
    /// - Throws: ``FrameHostError`` where no picture is found.
    init(_ path: String, order: ImageOrder, isRelative: Bool) throws {
        var status = stat()
        if stat(path, &status) == 0 {
            guard status.st_mode & S_IFMT == S_IFDIR else {
                (kind, paths) = (.picture, [path])
                return
            }
            kind = .folder
            (paths, unreadableNames) = try Self.pictures(in: path)
            guard !paths.isEmpty else {
                throw unreadableNames.isEmpty ? ImageFault.emptyFolder(path) : ImageFault.noUTF8(unreadableNames)
            }
        } else {
            let code = errno
            guard code == ENOENT || code == ENOTDIR, path.contains(where: { "*?[".contains($0) }) else {
                throw ImageFault.missing(path, code, isRelative: isRelative)
            }
            kind = .pattern
            (paths, unreadableNames) = try Self.matches(of: Self.pattern(path))
            guard !paths.isEmpty else {
                throw unreadableNames.isEmpty ? ImageFault.noMatch(path) : ImageFault.noUTF8(unreadableNames)
            }
        }
        switch order {
        case .natural: paths.sort(by: NaturalOrder.precedes)
        case .name: paths.sort { Array($0.utf8).lexicographicallyPrecedes(Array($1.utf8)) }
        }
    }

    private typealias Found = (paths: [String], unreadable: [String])

    private static func pictures(in folder: String) throws -> Found {
        guard let handle = opendir(folder) else { throw FileFault.unreadable(folder, errno) }
        defer { closedir(handle) }
        var found: Found = ([], [])
        while let entry = readdir(handle) {
            let bytes = withUnsafeBytes(of: &entry.pointee.d_name) { Array($0.prefix { $0 != 0 }) }
            guard bytes.first != UInt8(ascii: "."), let dot = bytes.lastIndex(of: UInt8(ascii: ".")),
                endings.contains(String(decoding: bytes[(dot + 1)...], as: UTF8.self).lowercased())
            else { continue }
            try add(Array((folder == "/" ? "/" : folder + "/").utf8) + bytes, to: &found, of: folder)
        }
        return found
    }

    /// The pattern with its folder taken as it is written, where there is a folder of that very name.
    private static func pattern(_ path: String) -> String {
        var status = stat()
        guard let slash = path.lastIndex(of: "/"), slash != path.startIndex,
            stat(String(path[..<slash]), &status) == 0, status.st_mode & S_IFMT == S_IFDIR
        else { return path }
        let folder = path[..<slash].map { "*?[\\".contains($0) ? "\\\($0)" : String($0) }.joined()
        return folder + path[slash...]
    }

    private static func matches(of pattern: String) throws -> Found {
        var matches = glob_t()
        defer { globfree(&matches) }
        let result = glob(pattern, GLOB_NOSORT, nil, &matches)
        if result == GLOB_NOMATCH { return ([], []) }
        guard result == 0 else { throw ImageFault.unreadablePattern(pattern) }
        var found: Found = ([], [])
        for index in 0..<Int(matches.gl_pathc) {
            guard let path = matches.gl_pathv[index] else { continue }
            try add(Array(UnsafeRawBufferPointer(start: path, count: strlen(path))), to: &found, of: pattern)
        }
        return found
    }

    /// Adds a file. Folders, devices and pipes are not pictures.
    private static func add(_ path: [UInt8], to found: inout Found, of list: String) throws {
        var status = stat()
        let isThere = (path + [0]).withUnsafeBufferPointer { bytes in
            bytes.withMemoryRebound(to: CChar.self) { stat($0.baseAddress!, &status) == 0 }
        }
        guard !isThere || status.st_mode & S_IFMT == S_IFREG else { return }
        guard found.paths.count + found.unreadable.count < most else { throw ImageFault.tooMany(list, most) }
        if let name = String(validating: path, as: UTF8.self) {
            found.paths.append(name)
        } else {
            found.unreadable.append(shown(path))
        }
    }

    /// The name, with each byte that is not UTF-8 written as in shells: `caf\\xE9.png`.
    private static func shown(_ path: [UInt8]) -> String {
        var text = ""
        var rest = path[...]
        while let byte = rest.first {
            let count = (1...min(4, rest.count)).first { String(validating: rest.prefix($0), as: UTF8.self) != nil }
            if let count {
                text += String(decoding: rest.prefix(count), as: UTF8.self)
            } else {
                text += "\\x" + (byte < 16 ? "0" : "") + String(byte, radix: 16, uppercase: true)
            }
            rest = rest.dropFirst(count ?? 1)
        }
        return text
    }
}
