// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Glibc

/// Stages in other languages, which chain files name by their file: `python:blur.py`, `program:invert`.
///
/// A program is asked what it is when a chain names it first, and again when the chain takes its file anew, as a plugin is
/// loaded. [control thread; desk's thread once the chain runs]
struct ProgramStages {
    enum Kind: String, CaseIterable {
        /// A Python file with a class that is a `framehost.Filter`.
        case python
        /// An executable file that speaks the protocol of `stage_link.h`.
        case program
    }

    private struct Known {
        var use: String
        var type: StageType
        /// Of the file's bytes, before it was asked; nil where nobody watches it.
        var sum: UInt64?
    }

    /// By file.
    private var known: [String: Known] = [:]

    /// Whether `use` names a program and not a stage type.
    static func isProgram(_ use: String) -> Bool { split(use) != nil }

    /// What `use` is for a program, as a regular expression.
    static let pattern = "^(\(Kind.allCases.map(\.rawValue).joined(separator: "|"))):."

    /// The id that a stage has unless it is given one: the name of the file without its ending.
    static func id(of use: String) -> String? {
        guard let (_, path) = split(use), let file = path.split(separator: "/").last else { return nil }
        let name = file.split(separator: ".").first ?? file
        let plain = name.map { $0.isASCII && ($0.isLetter || $0.isNumber || $0 == "-" || $0 == "_") ? $0 : "_" }
        return plain.isEmpty ? nil : String(plain.prefix(64))
    }

    private static func split(_ use: String) -> (kind: Kind, path: String)? {
        for kind in Kind.allCases where use.hasPrefix("\(kind.rawValue):") {
            return (kind, String(use.dropFirst(kind.rawValue.count + 1)))
        }
        return nil
    }

    /// The file that `use` names.
    static func file(of use: String, folder: String) -> String? {
        split(use).map { $0.path.hasPrefix("/") ? $0.path : "\(folder)/\($0.path)" }
    }

    /// The stage type that `use` names; nil if it does not name a program.
    ///
    /// - Parameters:
    ///   - folder: Of the chain file, from which relative paths go.
    ///   - isWatched: Whether the file is asked again whenever it changes.
    /// - Throws: ``FrameHostError`` `.unusablePlugin`.
    mutating func stage(_ use: String, folder: String, isWatched: Bool) throws -> StageType? {
        guard let (kind, path) = Self.split(use), let file = Self.file(of: use, folder: folder) else { return nil }
        if let known = known[file] { return known.type }
        guard !path.isEmpty, access(file, R_OK) == 0 else {
            let ending = kind == .python ? ".py" : ""
            throw FrameHostError(
                .unusablePlugin, place: FaultPlace(use),
                what: path.isEmpty ? "names no file" : "'\(file)' cannot be read: \(String(cString: strerror(errno)))",
                remedy: "Write the path from the chain file's folder: \"\(kind.rawValue):filters/blur\(ending)\".")
        }
        let found = try Self.ask(kind, file, use, isWatched: isWatched)
        known[file] = found
        if isWatched { PluginImages.here.commitNewest(of: file) }
        return found.type
    }

    /// The file that a chain uses and that `name` names: by its path, or as the chain names it.
    func file(called name: String) -> String? {
        known.first { $0.key == name || $0.value.use == name }?.key
    }

    /// Asks the file again.
    ///
    /// - Returns: The sum of its bytes.
    /// - Throws: ``FrameHostError`` `.unusablePlugin`; nothing has changed then.
    mutating func reload(_ file: String) throws -> UInt64? {
        guard let before = known[file], let (kind, _) = Self.split(before.use) else { return nil }
        let found = try Self.ask(kind, file, before.use, isWatched: true)
        known[file] = found
        return found.sum
    }

    /// The sum of the bytes from which the stage type comes.
    func sum(of file: String) -> UInt64? { known[file]?.sum }

    private static func ask(_ kind: Kind, _ file: String, _ use: String, isWatched: Bool) throws -> Known {
        let sum = isWatched ? PluginCopy.sum(of: file) : nil
        // Also one that is refused is not tried again before it changes.
        if isWatched { PluginImages.here.add(PluginImages.Image(bytes: 0, sum: sum), of: file) }
        let type = try program(kind, file, use).describe()
        for option in type.options where ChainKeys.stage.names.contains(option.name) {
            throw FrameHostError(
                .unusablePlugin, place: FaultPlace(use),
                what: "the option '\(option.name)' is a reserved key of the chain file",
                remedy: "Give the option another name.")
        }
        return Known(use: use, type: type, sum: sum)
    }

    private static func program(_ kind: Kind, _ file: String, _ use: String) throws -> StageProgram {
        switch kind {
        case .program:
            guard access(file, X_OK) == 0 else {
                throw FrameHostError(
                    .unusablePlugin, place: FaultPlace(use),
                    what: "'\(file)' cannot be run: \(String(cString: strerror(errno)))",
                    remedy: "Build the program, and make it executable (chmod +x).")
            }
            return StageProgram(name: use, arguments: [file], files: [file])
        case .python:
            let set = getenv("PYTHONPATH").map { String(cString: $0) } ?? ""
            let folders = [PythonFolder.find(), set].compactMap { $0 }.filter { !$0.isEmpty }
            return StageProgram(
                name: use, arguments: ["python3", "-m", "framehost.stage", file],
                environment: [
                    "PYTHONPATH": folders.joined(separator: ":"), "PYTHONUNBUFFERED": "1",
                    "PYTHONDONTWRITEBYTECODE": "1",
                ],
                files: [file])
        }
    }
}

/// Finds the Python package `framehost` that belongs to this program.
enum PythonFolder {
    /// Relative to the folder of an installed program, and to a folder above one that was built in its tree.
    private static let (installed, ofTree) = ("../../share/framehost/python", "python")

    /// Nil where there is none; it may be installed with pip then.
    static func find(from program: String = PluginRegistry.executableFolder) -> String? {
        func isThere(_ folder: String) -> Bool { access("\(folder)/framehost/stage.py", R_OK) == 0 }
        if isThere("\(program)/\(installed)") { return PluginRegistry.realPath("\(program)/\(installed)") }
        var folder = program
        while !folder.isEmpty {
            if isThere("\(folder)/\(ofTree)") { return "\(folder)/\(ofTree)" }
            folder = folder.split(separator: "/", omittingEmptySubsequences: false).dropLast().joined(separator: "/")
        }
        return nil
    }

    /// The folder for `--python-path`.
    ///
    /// - Throws: ``FrameHostError``.
    static func path() throws -> String {
        if let path = find() { return path }
        throw FrameHostError(
            .invalidConfiguration, place: FaultPlace(PluginRegistry.executableFolder),
            what:
                "the Python package was not found: not in \(installed) from this folder, and not in \(ofTree) of any folder above it",
            remedy: "Install framehost again, or the package with pip.")
    }
}
