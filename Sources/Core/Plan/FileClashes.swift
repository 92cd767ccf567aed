// SPDX-License-Identifier: Apache-2.0

import Glibc

/// Finds stages that would disturb each other at one file: one writes what another reads or writes. At a pipe only a
/// writer and a reader disturb each other, since each would wait for the other.
///
/// Names are followed to the file itself: `x`, `./x`, links to it and its further names are one file. A file that does
/// not exist yet counts by its name in its folder.
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
        var writers: [Key: Int] = [:]
        for (stage, demand) in demands.enumerated() {
            for path in demand.writesFiles {
                guard let key = Key(path) else { continue }
                if let other = writers.updateValue(stage, forKey: key), !key.isPipe {
                    clashes.append(Clash(writer: stage, other: other, path: path, isRead: false))
                }
            }
        }
        for (stage, demand) in demands.enumerated() {
            for path in demand.readsFiles {
                guard let key = Key(path), let writer = writers[key], writer != stage else { continue }
                clashes.append(Clash(writer: writer, other: stage, path: path, isRead: true))
            }
        }
    }

    /// A reader of files that is not a stage: the program reads the chain file, and services read files of their
    /// own.
    struct Reader {
        /// The service's key; nil for the program.
        var service: String?
        var demand = StageDemand()

        /// What it does with the file: `'control' reads`.
        var does: String { service.map { "'\($0)' reads" } ?? "is the chain file" }
    }

    static func readers(beside request: ChainRequest) -> [Reader] {
        var chain = Reader()
        chain.demand.readsFiles = [request.file]
        return [chain]
            + request.services.map { service in
                var reader = Reader(service: service.key)
                // Faults of its options have been reported where they were read.
                reader.demand.readsFiles = (try? service.make())?.readsFiles(folder: request.folder) ?? []
                return reader
            }
    }

    /// What two names of one file have in common.
    private enum Key: Hashable {
        case file(FileIdentity)
        /// The name of a file that does not exist yet, with the identity of its folder.
        case name(FileIdentity, String)
        /// The path of a file whose folder does not exist either.
        case path(String)
        case pipe(FileIdentity)

        var isPipe: Bool { if case .pipe = self { true } else { false } }

        /// Nil for devices, which several stages may use.
        init?(_ path: String) {
            var status = stat()
            if stat(path, &status) == 0 {
                switch status.st_mode & S_IFMT {
                case S_IFREG: self = .file(FileIdentity(status))
                case S_IFIFO: self = .pipe(FileIdentity(status))
                default: return nil
                }
                return
            }
            let target = FileNames.followed(path)
            let name = target.split(separator: "/").last.map(String.init) ?? ""
            self = FileIdentity(path: FileNames.folder(of: target)).map { .name($0, name) } ?? .path(target)
        }
    }
}
