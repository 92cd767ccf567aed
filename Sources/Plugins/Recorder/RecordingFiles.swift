import FrameCore
import Glibc

/// Makes the files of one recorder, each under a name of its own.
///
/// Used on the stage thread.
final class RecordingFiles {
    /// What names look like from the second file on, and what retention goes by.
    let pattern: FileNamePattern
    /// The one name of the first file, where `path` is one and a single file is expected.
    let single: String?
    private let overwrite: Bool
    private var made = 0
    /// The last number given; nil before the first.
    private var number: Int?
    private var last = ""

    /// - Parameters:
    ///   - path: With its patterns, as in the options, which have checked it.
    ///   - folder: From which a relative path is meant.
    init(path: String, folder: String, overwrite: Bool, makesMoreFiles: Bool) throws(OptionFault) {
        let given = try FileNamePattern(path).placed(in: folder)
        single = given.isFixed && !makesMoreFiles ? given.path(at: 0, number: 0) : nil
        pattern = given.isFixed ? given.numbered() : given
        self.overwrite = overwrite
    }

    /// [control thread] What is wrong with the place; nil when files can be made there. Creates nothing.
    var fault: FrameHostError? {
        if let single, made == 0 { return RecordingFault.ofPath(single, overwrite: overwrite) }
        return RecordingFault.ofFolder(pattern.folder)
    }

    /// For events and messages before a file has its name.
    func nextName(at unixTime: Int64) -> String {
        made == 0 && single != nil ? single! : pattern.path(at: unixTime, number: (number ?? 0) + 1)
    }

    /// Makes the next file, and the folders its pattern asks for.
    ///
    /// - Parameter unixTime: When its first picture was taken, nanoseconds since 1970.
    /// - Throws: ``FrameHostError`` naming the path.
    func make(at unixTime: Int64) throws -> OutputFile {
        if made == 0, let single {
            guard let file = try OutputFile.create(single, overwrite: overwrite) else { throw RecordingFault.exists(single) }
            return note(file)
        }
        var next = (number ?? highestNumber(at: unixTime)) + 1
        var again = 1
        // Names that are taken are passed over; somebody may be making files of the same names at the same time.
        for _ in 0..<10_000 {
            let path = pattern.path(at: unixTime, number: next, again: again)
            try makeFolders(of: path)
            // The file just written is never replaced, whatever the pattern makes of two moments.
            if let file = try OutputFile.create(path, overwrite: overwrite && path != last) {
                number = next
                return note(file)
            }
            if pattern.hasNumber { next += 1 } else { again += 1 }
        }
        throw RecordingFault.exists(pattern.path(at: unixTime, number: next))
    }

    private func note(_ file: OutputFile) -> OutputFile {
        made += 1
        last = file.path
        return file
    }

    /// The highest number in the folder of the next file; numbers go on from there, unless files are to be replaced.
    private func highestNumber(at unixTime: Int64) -> Int {
        guard pattern.hasNumber else { return 0 }
        // The single file counts as the first.
        let least = single == nil ? 0 : 1
        guard !overwrite else { return least }
        let folder = RecordingFault.folder(of: pattern.path(at: unixTime, number: 0))
        return FolderListing.names(in: folder).compactMap { pattern.number(ofName: $0) }.max().map { max($0, least) } ?? least
    }

    /// Folders from the pattern's first one on are made; those before must be there, lest a slip of the pen makes a tree.
    private func makeFolders(of path: String) throws {
        guard pattern.components.count > 1 else { return }
        guard RecordingFault.ofFolder(pattern.folder) == nil else { throw RecordingFault.ofFolder(pattern.folder)! }
        var folder = pattern.folder
        let below = RecordingFault.folder(of: path).split(separator: "/").suffix(pattern.components.count - 1)
        for name in below {
            folder += "/" + name
            guard mkdir(folder, 0o777) == 0 || errno == EEXIST else { throw RecordingFault.unwritable(folder, errno) }
        }
    }
}

/// What lies in a folder.
enum FolderListing {
    /// Names but `.` and `..`, in no order; none when the folder cannot be read.
    static func names(in folder: String) -> [String] {
        guard let stream = opendir(folder) else { return [] }
        defer { closedir(stream) }
        var names: [String] = []
        while let entry = readdir(stream) {
            let name = withUnsafeBytes(of: entry.pointee.d_name) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
            if name != ".", name != ".." { names.append(name) }
        }
        return names
    }
}
