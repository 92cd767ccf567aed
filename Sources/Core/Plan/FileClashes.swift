import Glibc

/// Stages that would be in each other's way at one file: one writes what another reads or writes. Names are followed to the file itself.
struct FileClashes {
    struct Clash: Equatable {
        /// The one that writes.
        var writer: Int
        var other: Int
        var path: String
        var isRead: Bool
    }

    private(set) var clashes: [Clash] = []

    init(_ demands: [StageDemand]) {
        var writers: [String: Int] = [:]
        for (stage, demand) in demands.enumerated() {
            for path in demand.writesFiles {
                if let other = writers.updateValue(stage, forKey: Self.file(path)) {
                    clashes.append(Clash(writer: stage, other: other, path: path, isRead: false))
                }
            }
        }
        for (stage, demand) in demands.enumerated() {
            for path in demand.readsFiles {
                guard let writer = writers[Self.file(path)] else { continue }
                clashes.append(Clash(writer: writer, other: stage, path: path, isRead: true))
            }
        }
    }

    /// The file behind a name, links followed (realpath(3)); of one that does not exist yet, its name in the folder behind it.
    private static func file(_ path: String) -> String {
        if let real = real(path) { return real }
        let parts = path.split(separator: "/", omittingEmptySubsequences: false)
        let folder = parts.dropLast().joined(separator: "/")
        return "\(real(folder.isEmpty ? (path.hasPrefix("/") ? "/" : ".") : folder) ?? folder)/\(parts.last ?? "")"
    }

    private static func real(_ path: String) -> String? {
        guard let resolved = realpath(path, nil) else { return nil }
        defer { free(resolved) }
        return String(cString: resolved)
    }
}
