// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Glibc

/// The inputs of a batch, and the name in DIR of each input's output.
///
/// 16 bytes for each unit beside the text of its path, so that a million units fit into memory. Immutable once made.
struct BatchUnits: Sendable {
    private struct Entry {
        var start: Int
        var length: UInt32
        /// Where the part of the path starts that names the output.
        var relative: UInt32
    }

    private var text: [UInt8] = []
    private var entries: [Entry] = []
    /// The ending of each output: `.mp4`.
    let ending: String
    /// Files in folders that are not clips, and links to folders.
    private(set) var passedOver = 0
    /// Inputs that were named more than once.
    private(set) var repeated = 0
    private var known: [UInt64: UInt32] = [:]
    private(set) var faults: [FrameHostError] = []

    /// Most bytes of all paths together.
    private static let mostBytes = 1 << 30
    private static let mostFaults = 10

    /// The endings of files that are taken for clips if they lie in a folder. A file that is named itself is taken
    /// whatever its ending.
    static let clipEndings: Set<String> = [
        "3g2", "3gp", "asf", "avi", "f4v", "flv", "h264", "264", "m2ts", "m2v", "m4v", "mkv", "mov", "mp4", "mpeg",
        "mpg", "mts",
        "mxf", "ogv", "qt", "ts", "vob", "webm", "wmv", "y4m",
    ]

    /// `--base` as an absolute path with a slash at its end. Outputs keep the folders that their inputs have below
    /// this path.
    private let base: [UInt8]?
    /// The folder at which relative names start, with a slash at its end.
    private let current: [UInt8]

    /// - Parameters:
    ///   - base: `--base`; nil if the kind of each input decides which folders its output keeps.
    ///   - current: The folder at which relative names start.
    init(ending: String, base: String?, current: String) {
        self.ending = ending
        let here = Array((current.hasSuffix("/") ? current : current + "/").utf8)
        self.current = here
        self.base = base.map { name in
            let whole = Self.normal(name.hasPrefix("/") ? Array(name.utf8)[...] : (here + Array(name.utf8))[...])
            return whole.last == UInt8(ascii: "/") ? whole : whole + [UInt8(ascii: "/")]
        }
    }

    /// An absolute path without empty parts, `.` and `..`.
    private static func normal(_ path: ArraySlice<UInt8>) -> [UInt8] {
        var parts: [ArraySlice<UInt8>] = []
        for part in path.split(separator: UInt8(ascii: "/")) where !part.elementsEqual(".".utf8) {
            if part.elementsEqual("..".utf8) { _ = parts.popLast() } else { parts.append(part) }
        }
        return parts.isEmpty ? [UInt8(ascii: "/")] : parts.flatMap { [UInt8(ascii: "/")] + $0 }
    }

    var count: Int { entries.count }

    /// The path of an input as it was named; nil if the bytes of the path are not UTF-8, as chain files must be.
    func input(_ index: Int) -> String? {
        let entry = entries[index]
        return String(validating: text[entry.start..<entry.start + Int(entry.length)], as: UTF8.self)
    }

    /// An input for people.
    func shownInput(_ index: Int) -> String {
        let entry = entries[index]
        return String(decoding: text[entry.start..<entry.start + Int(entry.length)], as: UTF8.self)
    }

    /// The name of an output in DIR: `2024/clip.mp4`.
    func output(_ index: Int) -> String { String(decoding: stem(entries[index]), as: UTF8.self) + ending }

    /// The part of the path after which the output is named, without its ending.
    private func stem(_ entry: Entry) -> ArraySlice<UInt8> {
        let name = text[(entry.start + Int(entry.relative))..<(entry.start + Int(entry.length))]
        let last = name.lastIndex(of: UInt8(ascii: "/")).map { $0 + 1 } ?? name.startIndex
        // A name that begins with its only dot has no ending.
        guard let dot = name[last...].lastIndex(of: UInt8(ascii: ".")), dot > last else { return name }
        return name[..<dot]
    }

    // MARK: Making

    /// What a person named on the command line: a file, a folder, a pattern of names.
    ///
    /// - Parameter skipped: The folder of the outputs, which is not searched.
    mutating func add(argument: String, skipping skipped: FileIdentity?) {
        var status = stat()
        if stat(argument, &status) == 0 {
            if status.st_mode & S_IFMT == S_IFDIR {
                return walk(argument, depth: 0, named: argument, skipped)
            }
            if argument.hasSuffix(".json") {
                return fault(
                    argument, "is a JSON file, but inputs must be media files: a batch runs one chain",
                    "Name the media files after the chain file.")
            }
            return add(Array(argument.utf8), keepsPath: false)
        }
        let missing = errno
        guard argument.contains(where: { "*?[".contains($0) }) else {
            return fault(
                argument, "cannot be opened: \(String(cString: strerror(missing)))",
                "Name a file, a folder or a pattern such as 'clips/*.mov'.")
        }
        var found = glob_t()
        defer { globfree(&found) }
        guard glob(argument, 0, nil, &found) == 0, found.gl_pathc > 0 else {
            return fault(argument, "no file matches this pattern", "Name a file, a folder or another pattern.")
        }
        for index in 0..<Int(found.gl_pathc) {
            guard let path = found.gl_pathv[index] else { continue }
            if stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFDIR {
                walk(String(cString: path), depth: 0, named: String(cString: path), skipped)
            } else {
                add(
                    Array(UnsafeBufferPointer(start: path, count: strlen(path)).map { UInt8(bitPattern: $0) }),
                    keepsPath: false)
            }
        }
    }

    /// Adds the names in a file: one on each line, or each with a zero byte behind it. Does not yet check that the
    /// inputs are there.
    ///
    /// - Parameter path: `-` is standard input.
    mutating func add(list path: String) {
        let file = path == "-" ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else {
            return fault(
                "--list \(path)", "cannot be opened: \(String(cString: strerror(errno)))",
                Self.listRemedy)
        }
        defer { if file != STDIN_FILENO { close(file) } }
        let first = text.count
        var buffer = [UInt8](repeating: 0, count: 1 << 20)
        while true {
            let count = SystemCall.retrying { read(file, &buffer, buffer.count) }
            if count < 0, errno == EAGAIN {
                // Another program that shares standard input has made it non-blocking.
                var input = pollfd(fd: file, events: Int16(POLLIN), revents: 0)
                _ = poll(&input, 1, -1)
                continue
            }
            guard count >= 0 else {
                return fault(
                    "--list \(path)", "cannot be read: \(String(cString: strerror(errno)))",
                    Self.listRemedy)
            }
            guard count > 0 else { break }
            guard text.count + count <= Self.mostBytes else {
                return fault(
                    "--list \(path)",
                    "with this list, the inputs' names have more than \(Terminal.bytes(Self.mostBytes)) in total",
                    "Divide the list, and run a batch for each part.")
            }
            text += buffer[..<count]
        }
        let last = text.count
        let separator: UInt8 = text[first...].contains(0) ? 0 : UInt8(ascii: "\n")
        var start = first
        while start < last {
            let end = text[start..<last].firstIndex(of: separator) ?? last
            var stop = end
            // Lists of other systems end their lines with CR LF.
            if separator != 0, stop > start, text[stop - 1] == UInt8(ascii: "\r") { stop -= 1 }
            if stop > start { enter(start, stop - start, below: nil, keepsPath: true) }
            start = end + 1
        }
    }

    private static let listRemedy = "Name a readable file with the name of an input on each line."

    private mutating func walk(_ folder: String, depth: Int, named: String, _ skipped: FileIdentity?) {
        guard depth < 64 else {
            return fault(
                folder, "lies more than 63 folders below '\(named)', which is deeper than inputs are looked for",
                "Name a folder further down.")
        }
        if let skipped, FileIdentity(path: folder) == skipped { return }
        guard let handle = opendir(folder) else {
            return fault(
                folder, "cannot be read: \(String(cString: strerror(errno)))", "Make it readable, or name other inputs."
            )
        }
        var names: [(bytes: [UInt8], kind: UInt8)] = []
        while let entry = readdir(handle) {
            let bytes = withUnsafePointer(to: &entry.pointee.d_name) {
                $0.withMemoryRebound(to: UInt8.self, capacity: 256) {
                    Array(UnsafeBufferPointer(start: $0, count: strlen($0)))
                }
            }
            if bytes.first != UInt8(ascii: ".") { names.append((bytes, entry.pointee.d_type)) }
        }
        closedir(handle)
        names.sort { $0.bytes.lexicographicallyPrecedes($1.bytes) }
        let prefix = Array((folder.hasSuffix("/") ? folder : folder + "/").utf8)
        for (name, kind) in names {
            let path = prefix + name
            var kind = kind
            if kind != UInt8(DT_DIR), kind != UInt8(DT_REG) {
                var status = stat()
                let isThere = (path + [0]).withUnsafeBytes {
                    stat($0.bindMemory(to: CChar.self).baseAddress!, &status) == 0
                }
                if isThere, status.st_mode & S_IFMT == S_IFREG {
                    kind = UInt8(DT_REG)
                } else if isThere, kind == UInt8(DT_UNKNOWN), status.st_mode & S_IFMT == S_IFDIR {
                    kind = UInt8(DT_DIR)
                }
            }
            if kind == UInt8(DT_DIR) {
                walk(String(decoding: path, as: UTF8.self), depth: depth + 1, named: named, skipped)
            } else if kind == UInt8(DT_REG), Self.isClip(name) {
                add(path, below: named)
            } else {
                passedOver += 1
            }
        }
    }

    private static func isClip(_ name: [UInt8]) -> Bool {
        guard let dot = name.lastIndex(of: UInt8(ascii: ".")) else { return false }
        return clipEndings.contains(String(decoding: name[(dot + 1)...], as: UTF8.self).lowercased())
    }

    private mutating func add(_ path: [UInt8], below folder: String) {
        text += path
        let start = text.count - path.count
        enter(start, path.count, below: folder, keepsPath: false)
    }

    private mutating func add(_ path: [UInt8], keepsPath: Bool) {
        text += path
        enter(text.count - path.count, path.count, below: nil, keepsPath: keepsPath)
    }

    /// - Parameters:
    ///   - folder: The folder of the command line in which the input was found.
    ///   - keepsPath: Whether the output keeps the folders of a relative path. `--base` overrides it.
    private mutating func enter(_ start: Int, _ length: Int, below folder: String?, keepsPath: Bool) {
        if let base {
            let path = text[start..<start + length]
            if path.starts(with: base), !Self.climbs(path.dropFirst(base.count)) {
                return enter(
                    Entry(start: start, length: UInt32(clamping: length), relative: UInt32(base.count)))
            }
            let whole = Self.normal(path.first == UInt8(ascii: "/") ? path : (current + path)[...])
            guard whole.starts(with: base), whole.count > base.count else {
                return fault(
                    String(decoding: path.prefix(200), as: UTF8.self),
                    "must lie below --base \(String(decoding: base, as: UTF8.self))",
                    "Use --base to name a folder that contains all inputs, or leave --base out.")
            }
            text += whole
            return enter(
                Entry(
                    start: text.count - whole.count, length: UInt32(clamping: whole.count),
                    relative: UInt32(base.count)))
        }
        let relative = Self.relative(text[start..<start + length], folder, keepsPath)
        enter(Entry(start: start, length: UInt32(clamping: length), relative: UInt32(relative)))
    }

    private mutating func enter(_ entry: Entry) {
        let length = Int(entry.length)
        let path = text[entry.start..<entry.start + length]
        guard entries.count < Int(UInt32.max) else { return }
        let stem = stem(entry)
        let isName = !stem.isEmpty && stem.last != UInt8(ascii: "/")
        guard isName, length <= Int(PATH_MAX) else {
            return fault(
                String(decoding: path.prefix(100), as: UTF8.self),
                isName ? "the path that begins like this has more than \(PATH_MAX) bytes" : "names no file",
                "Leave it out.")
        }
        // FNV-1a, 64 bits. If hashes are equal, the names are compared.
        var hash: UInt64 = 0xcbf2_9ce4_8422_2325
        for byte in stem { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3 }
        while let other = known[hash] {
            let first = entries[Int(other)]
            if self.stem(first).elementsEqual(stem) {
                if text[first.start..<first.start + Int(first.length)].elementsEqual(path) {
                    repeated += 1
                } else {
                    fault(
                        shownInput(Int(other)),
                        "would become '\(output(Int(other)))', and so would \(String(decoding: path, as: UTF8.self))",
                        FileNames.folder(of: shownInput(Int(other)))
                            == FileNames.folder(of: String(decoding: path, as: UTF8.self))
                            ? "Use a different --out for each of them."
                            : "Name the folder above both with --base, so that outputs keep their folders, or use a different --out for each of them."
                    )
                }
                return
            }
            hash &+= 1
        }
        known[hash] = UInt32(entries.count)
        entries.append(entry)
    }

    /// The position at which the part starts that names the output. For an input that was found in a named folder, the
    /// part is what follows that folder. Else, if the path is kept, the part is what follows `/./`, or the whole
    /// relative path. Else the part is the last name.
    private static func relative(_ path: ArraySlice<UInt8>, _ named: String?, _ keepsPath: Bool) -> Int {
        let slash = UInt8(ascii: "/")
        if let named {
            let folder = Array((named.hasSuffix("/") ? named : named + "/").utf8)
            if path.starts(with: folder) {
                let rest = path.dropFirst(folder.count).drop { $0 == slash }
                if !climbs(rest) { return rest.startIndex - path.startIndex }
            }
        }
        if keepsPath, let mark = lastMark(path), !climbs(path[mark...]) { return mark - path.startIndex }
        if keepsPath, path.first != slash {
            var rest = path
            while rest.starts(with: [UInt8(ascii: "."), slash]) { rest = rest.dropFirst(2).drop { $0 == slash } }
            if !climbs(rest) { return rest.startIndex - path.startIndex }
        }
        return (path.lastIndex(of: slash).map { $0 + 1 } ?? path.startIndex) - path.startIndex
    }

    /// What follows the last `/./` of a path: the part that outputs keep, as in rsync.
    private static func lastMark(_ path: ArraySlice<UInt8>) -> Int? {
        let (slash, dot) = (UInt8(ascii: "/"), UInt8(ascii: "."))
        var index = path.endIndex - 3
        while index >= path.startIndex {
            if path[index] == slash, path[index + 1] == dot, path[index + 2] == slash { return index + 3 }
            index -= 1
        }
        return nil
    }

    /// Whether a part of the path is empty, `.`, `..` or the name of our hidden folder.
    private static func climbs(_ path: ArraySlice<UInt8>) -> Bool {
        path.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false).contains {
            $0.isEmpty || $0.elementsEqual([UInt8(ascii: "."), UInt8(ascii: ".")])
                || $0.elementsEqual([UInt8(ascii: ".")])
                || $0.elementsEqual(".framehost".utf8)
        }
    }

    private mutating func fault(_ place: String, _ what: String, _ remedy: String) {
        guard faults.count < Self.mostFaults else { return }
        faults.append(FrameHostError(.invalidConfiguration, place: place, what: what, remedy: remedy))
    }

    /// The absolute path of a unit's input; nil for a name that chain files cannot have.
    ///
    /// - Parameter current: The folder that relative names start at.
    func path(_ unit: Int, current: String) -> String? {
        input(unit).map { $0.hasPrefix("/") ? $0 : "\(current)/\($0)" }
    }

    /// Frees the memory that only the making of the list needs.
    mutating func finish() { known = [:] }

    /// The list as a file. Its names are absolute and sorted, so it gives the same units and outputs in any folder.
    ///
    /// - Parameter current: The folder that relative names start at.
    func frozen(current: String) -> [UInt8] {
        let slash = UInt8(ascii: "/")
        let folder = Array((current.hasSuffix("/") ? current : current + "/").utf8)
        let order = entries.indices.sorted { first, second in
            path(entries[first]).lexicographicallyPrecedes(path(entries[second]))
        }
        // Names may have line feeds; a list may end its names with zero bytes instead.
        let isOdd =
            folder.contains(UInt8(ascii: "\n"))
            || entries.contains { path($0).contains(UInt8(ascii: "\n")) || path($0).last == UInt8(ascii: "\r") }
        var bytes: [UInt8] = []
        for index in order {
            let entry = entries[index]
            let path = path(entry)
            if path.first != slash { bytes += folder }
            let kept = path.dropFirst(Int(entry.relative))
            bytes += path[..<kept.startIndex]
            // A slash stands before the part that is kept. If no part is kept, an earlier mark must not say otherwise.
            if kept.contains(slash) || Self.lastMark(path) != nil { bytes += "./".utf8 }
            bytes += kept
            bytes.append(isOdd ? 0 : UInt8(ascii: "\n"))
        }
        return bytes
    }

    private func path(_ entry: Entry) -> ArraySlice<UInt8> { text[entry.start..<entry.start + Int(entry.length)] }
}
