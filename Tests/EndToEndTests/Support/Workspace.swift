// SPDX-License-Identifier: Apache-2.0

import Foundation

/// A folder of a test's own, removed with it.
final class Workspace {
    let folder: URL

    init() throws {
        folder = FileManager.default.temporaryDirectory.resolvingSymlinksInPath()
            .appending(path: "framehost-test-\(UUID().uuidString.prefix(8))")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    }

    deinit { try? FileManager.default.removeItem(at: folder) }

    func path(_ name: String) -> String { folder.appending(path: name).path }

    /// Writes a file and gives its path.
    @discardableResult
    func write(_ name: String, _ text: String) throws -> String { try write(name, Data(text.utf8)) }

    @discardableResult
    func write(_ name: String, _ data: Data) throws -> String {
        let file = folder.appending(path: name)
        try FileManager.default.createDirectory(at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
        try data.write(to: file)
        return file.path
    }

    func data(_ name: String) throws -> Data { try Data(contentsOf: folder.appending(path: name)) }

    func exists(_ name: String) -> Bool { FileManager.default.fileExists(atPath: path(name)) }

    /// Names of all files and folders in it, sorted.
    var names: [String] { ((try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? []).sorted() }

    /// Paths of all files below a folder in it, sorted.
    func names(below name: String) -> [String] {
        let base = folder.appending(path: name)
        return ((try? FileManager.default.subpathsOfDirectory(atPath: base.path)) ?? []).filter { path in
            var isFolder: ObjCBool = false
            return FileManager.default.fileExists(atPath: base.appending(path: path).path, isDirectory: &isFolder)
                && !isFolder.boolValue
        }.sorted()
    }
}
