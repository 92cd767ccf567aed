// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Synchronization

/// The images of plugins that are mapped. None is ever unloaded, since Swift's runtime keeps pointers into each it has
/// seen; so they are counted. [any thread]
final class PluginImages: Sendable {
    /// Those of this process.
    static let here = PluginImages()

    struct Image {
        /// Bytes of address space.
        var bytes: Int
        /// Of the file it was loaded from; nil where that was not a copy.
        var sum: UInt64?
    }

    private struct File {
        var images: [Image] = []
        /// Index of the one that stages are made of.
        var present = 0
    }

    private let files = Mutex<[String: File]>([:])

    /// An image was mapped; whether the chain takes it is not known yet.
    func add(_ image: Image, of path: String) { files.withLock { $0[path, default: File()].images.append(image) } }

    /// The newest image of `path` is the one that stages are made of.
    func commitNewest(of path: String) {
        files.withLock { files in
            guard let count = files[path]?.images.count, count > 0 else { return }
            files[path]?.present = count - 1
        }
    }

    /// Whether the image that stages of `path` are made of, or the last one that was refused, has these bytes.
    func knows(_ sum: UInt64, of path: String) -> Bool {
        files.withLock { files in
            guard let file = files[path], let last = file.images.last else { return false }
            return last.sum == sum || file.images[file.present].sum == sum
        }
    }

    var paths: [String] { files.withLock { $0.keys.sorted() } }

    func count(of path: String) -> Int { files.withLock { $0[path]?.images.count ?? 0 } }

    /// For `figures` and `--stats`: how many images of each plugin are mapped, and what the old ones take.
    var json: JSONNode {
        .array(
            files.withLock { $0 }.sorted { $0.key < $1.key }.map { path, file in
                let old = file.images.indices.filter { $0 != file.present }
                return .object([
                    ("path", .string(path)), ("images", .number(file.images.count)),
                    ("bytes", .number(file.images.reduce(0) { $0 + $1.bytes })), ("oldImages", .number(old.count)),
                    ("oldBytes", .number(old.reduce(0) { $0 + file.images[$1].bytes })),
                ])
            })
    }
}

extension Chain {
    /// [any thread] All figures of the run, of its rules, and of the program's plugins.
    var figuresWithPlugins: JSONNode {
        .object(
            (figures.asObject ?? []).map { ($0.key, $0.value) }
                + (ruleFigures.withLock { $0 }.map { [("rules", $0)] } ?? [])
                + [("plugins", PluginImages.here.json)])
    }
}
