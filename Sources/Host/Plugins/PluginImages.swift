// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Synchronization

/// The images of plugins that are mapped. None is ever unloaded, since Swift's runtime keeps pointers into each image
/// that it has seen. So they are counted. `PluginRegistry.reloading` decides
/// which one new stages are made from. [any thread]
final class PluginImages: Sendable {
    /// The images of this process.
    static let here = PluginImages()

    struct Image {
        /// Bytes of address space that the image takes.
        var bytes: Int
        /// The sum of the copy that it was loaded from; nil where it was not loaded from a copy.
        var sum: UInt64?
    }

    private struct File {
        var images: [Image] = []
        /// Index of the image from which stages are made.
        var present = 0
        /// Sums of images for which a chain had no time, and which it does not try again by itself.
        var givenUp: Set<UInt64> = []
    }

    private let files = Mutex<[String: File]>([:])

    /// Adds an image that was mapped. It is not known yet whether the chain will use it.
    func add(_ image: Image, of path: String) { files.withLock { $0[path, default: File()].images.append(image) } }

    /// Makes the newest image of `path` the one from which stages are made.
    func commitNewest(of path: String) {
        files.withLock { files in
            guard let count = files[path]?.images.count, count > 0 else { return }
            files[path]?.present = count - 1
        }
    }

    /// Notes that a chain had no time for the image with these bytes, and does not try it again by itself.
    func giveUp(_ sum: UInt64, of path: String) { _ = files.withLock { $0[path]?.givenUp.insert(sum) } }

    /// Whether these bytes are neither those of the present image of `path` nor those of the last one that was refused.
    /// Bytes that were given up are news once more. Nothing is news of a plugin of which no copy was loaded: that of a
    /// service is loaded as it is, once.
    func isNews(_ sum: UInt64, of path: String) -> Bool {
        files.withLock { files in
            guard let file = files[path], let last = file.images.last(where: { $0.sum != nil }) else { return false }
            if files[path]?.givenUp.remove(sum) != nil { return true }
            return last.sum != sum && file.images[file.present].sum != sum
        }
    }

    var paths: [String] { files.withLock { $0.keys.sorted() } }

    func count(of path: String) -> Int { files.withLock { $0[path]?.images.count ?? 0 } }

    /// For `figures` and `--stats`: how many images of each plugin are mapped, and how much memory the old ones take.
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
