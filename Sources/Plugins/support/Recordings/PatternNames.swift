// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Glibc

/// Gives each file of a pattern a name of its own, and makes the folders that the pattern asks for.
package struct PatternNames {
    package let pattern: FileNamePattern
    private let overwrite: Bool
    private let holder: String
    /// Numbers begin behind it.
    private let least: Int
    /// The last number that was used; nil before the first.
    package private(set) var number: Int?
    /// The last name of a pattern without number, and how often it was used.
    private var repeated = (name: "", count: 0)

    /// - Parameters:
    ///   - overwrite: Whether a file may take the name of one that is there, so that numbers do not go on behind those.
    ///   - holder: Under which name stages of this kind hold their files.
    ///   - least: Numbers begin behind it.
    package init(_ pattern: FileNamePattern, overwrite: Bool, holder: String, least: Int = 0) {
        self.pattern = pattern
        self.overwrite = overwrite
        self.holder = holder
        self.least = least
    }

    /// Makes the next file. A name is skipped where `create` refuses it because of what is there.
    ///
    /// - Parameters:
    ///   - unixTime: For the times in the name, nanoseconds since 1970.
    ///   - create: Makes the file of a name.
    /// - Throws: ``FrameHostError`` naming the path.
    package mutating func make<File>(
        at unixTime: Int64, _ create: (String) throws(FileRefusal) -> File
    ) throws -> File {
        var next = (number ?? highestNumber(at: unixTime)) + 1
        let plain = pattern.path(at: unixTime, number: next)
        // This recorder has made the files of the earlier names.
        var again = !pattern.hasNumber && plain == repeated.name ? repeated.count + 1 : 1
        let first = pattern.path(at: unixTime, number: next, again: again)
        var missing = 0
        var taken: Set<String>?
        // Taken names are skipped. Another recorder may be making files of the same names at the same time.
        for attempt in 0..<Self.mostTries {
            var path = pattern.path(at: unixTime, number: next, again: again)
            // The names that the folder has are left out at once, however many they are. With `overwrite` some of them may
            // be replaced, so a few are tried first.
            if attempt >= (overwrite ? Self.mostReplacements : 1) {
                let names = taken ?? Set(FolderListing.names(in: FileNames.folder(of: path)))
                if taken == nil, !pattern.hasNumber {
                    again = max(again, (pattern.highestRepetition(of: plain, among: names) ?? 0) + 1)
                    path = pattern.path(at: unixTime, number: next, again: again)
                }
                taken = names
                while names.contains(FileNames.name(of: path)) {
                    if pattern.hasNumber { next += 1 } else { again += 1 }
                    path = pattern.path(at: unixTime, number: next, again: again)
                }
            }
            try makeFolders(of: path)
            do throws(FileRefusal) {
                let file = try create(path)
                number = next
                if !pattern.hasNumber { repeated = (plain, again) }
                return file
            } catch {
                switch error {
                // The retention of another recorder has removed the folder, because it was empty.
                case .failed(ENOENT) where missing < 3 && pattern.components.count > 1:
                    missing += 1
                    continue
                case .failed, .unknown(EMFILE), .unknown(ENFILE):
                    throw RecordingFault.refused(path, error, holder: holder)
                default: break
                }
            }
            if pattern.hasNumber { next += 1 } else { again += 1 }
        }
        throw RecordingFault.noName(from: first, count: Self.mostTries)
    }

    /// The most names that are tried for one file. Names that the folder has do not count.
    private static let mostTries = 10_000
    /// The most of them that are tried, with `overwrite`, before those that the folder has are left out.
    private static let mostReplacements = 1000

    /// The highest number in the folder of the next file. Numbers go on from there, unless files are overwritten.
    private func highestNumber(at unixTime: Int64) -> Int {
        guard pattern.hasNumber else { return 0 }
        guard !overwrite else { return least }
        let folder = FileNames.folder(of: pattern.path(at: unixTime, number: 0))
        let numbers = FolderListing.names(in: folder).compactMap { pattern.number(ofName: $0) }
        return numbers.filter { $0 <= FileNamePattern.highestCount }.max().map { max($0, least) } ?? least
    }

    /// Makes the folders that contain a pattern. Those before them must exist, so that a typing error does not make a
    /// tree of folders.
    private func makeFolders(of path: String) throws {
        guard pattern.components.count > 1 else { return }
        guard RecordingFault.ofFolder(pattern.folder) == nil else { throw RecordingFault.ofFolder(pattern.folder)! }
        var folder = pattern.folder
        let below = FileNames.folder(of: path).split(separator: "/").suffix(pattern.components.count - 1)
        for name in below {
            folder += "/" + name
            guard mkdir(folder, 0o777) == 0 || errno == EEXIST else {
                throw RecordingFault.unwritable(folder, errno, "the folder '\(folder)' cannot be made")
            }
        }
    }
}
