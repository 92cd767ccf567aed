// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Glibc

/// The chain files that a command line names: files, and folders with them.
struct ChainList {
    struct Chain: Sendable {
        /// What people call it: the file's name without folder and `.json`.
        var name: String
        /// The path as it was written. For a file in a folder: the folder as it was written, and the file's name.
        var path: String
    }

    /// Each chain has threads of its own. A folder with more files was probably named by mistake.
    static let most = 1000

    let chains: [Chain]
    /// Whether the chains are run as several. A folder always is, even with one file in it: a reader of the log
    /// need not know how many files there are today.
    let isSeveral: Bool

    /// - Throws: ``FrameHostErrors``: a folder without chain files, a file named twice, two chains of one name.
    init(_ arguments: [String]) throws {
        var paths: [String] = []
        var isSeveral = arguments.count > 1
        var faults: [FrameHostError] = []
        for argument in arguments {
            var status = stat()
            guard stat(argument, &status) == 0, status.st_mode & S_IFMT == S_IFDIR else {
                paths.append(argument)
                continue
            }
            isSeveral = true
            do { paths += try Self.files(in: argument) } catch { faults.append(.wrap(error)) }
        }
        if paths.count > Self.most {
            faults.append(
                FrameHostError(
                    .invalidConfiguration,
                    what: "the command line names \(paths.count) chain files, more than the limit of \(Self.most)",
                    remedy: "Name fewer chain files, or run several processes."))
        }
        self.isSeveral = isSeveral
        chains = paths.prefix(Self.most).map {
            Chain(name: ChainRequest(file: $0, folder: "", stages: []).name, path: $0)
        }
        faults += Self.doubles(chains)
        guard faults.isEmpty else { throw FrameHostErrors(faults) }
    }

    /// `*.json` in the order of their names. A name that starts with a dot is a temporary file. What a stage has written
    /// is no chain, such as the areas of a mask.
    private static func files(in folder: String) throws -> [String] {
        guard let handle = opendir(folder) else {
            throw fault(
                folder, "the folder cannot be read: \(String(cString: strerror(errno)))",
                "Name a folder that can be read.")
        }
        defer { closedir(handle) }
        var names: [String] = []
        while let entry = readdir(handle) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) {
                $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            if name.hasSuffix(".json"), !name.hasPrefix(".") { names.append(name) }
        }
        guard !names.isEmpty else {
            throw fault(
                folder, "is a folder without chain files (*.json)", "Name a chain file, or a folder that has some.")
        }
        var base = folder
        while base.count > 1, base.hasSuffix("/") { base.removeLast() }
        return names.sorted().map { base == "/" ? "/\($0)" : "\(base)/\($0)" }.filter { !isOfAStage($0) }
    }

    /// Whether a file says by `use` whose it is, as no chain does. What cannot be read is left to whoever reads it.
    private static func isOfAStage(_ path: String) -> Bool {
        guard let node = try? JSONReader.read(path: path, form: "chain file", remedy: "", takesPipes: false) else {
            return false
        }
        return node["use"]?.asString != nil && node["stages"] == nil
    }

    private static func doubles(_ chains: [Chain]) -> [FrameHostError] {
        var files: [FileIdentity: String] = [:]
        var names: [String: String] = [:]
        return chains.compactMap { chain in
            if let file = FileIdentity(path: chain.path) {
                if let other = files[file] {
                    return fault(
                        chain.path, other == chain.path ? "is named twice" : "is the same file as \(other)",
                        "Name it once.")
                }
                files[file] = chain.path
            }
            guard let other = names.updateValue(chain.path, forKey: chain.name) else { return nil }
            return fault(
                chain.path, "the chain has the name '\(chain.name)', and so has the chain of \(other)",
                "Give one of the files another name.")
        }
    }

    private static func fault(_ path: String, _ what: String, _ remedy: String) -> FrameHostError {
        FrameHostError(.invalidConfiguration, place: FaultPlace(file: path), what: what, remedy: remedy)
    }

    // MARK: Options that name a chain

    /// What an option gives to one chain, or to each.
    struct Share {
        /// By index of the chain.
        var own: [Int: [String]] = [:]
        /// Values without a chain's name.
        var common: [String] = []
    }

    /// Divides values of the form `chain:rest`.
    ///
    /// - Parameter ends: A colon behind the first of these characters belongs to the value and ends no chain's
    ///   name.
    /// - Throws: ``FrameHostErrors`` for the names of chains that are not there.
    func share(_ values: [String], of option: String, ends: Set<Character>) throws -> Share {
        var share = Share()
        var faults: [FrameHostError] = []
        for value in values {
            // A chain's name may have a dot.
            if let index = chains.indices.filter({ value.hasPrefix("\(chains[$0].name):") })
                .max(by: { chains[$0].name.count < chains[$1].name.count })
            {
                share.own[index, default: []].append(String(value.dropFirst(chains[index].name.count + 1)))
                continue
            }
            guard let colon = value.firstIndex(of: ":"), !value[..<colon].contains(where: ends.contains) else {
                share.common.append(value)
                continue
            }
            let (name, names) = (String(value[..<colon]), chains.map(\.name))
            faults.append(
                FrameHostError(
                    .invalidConfiguration, place: FaultPlace(argument: "\(option) \(value)"),
                    what: "no chain has the name '\(name)'",
                    remedy: Suggestion.nearest(to: name, in: names).map { "Did you mean '\($0)'?" }
                        ?? "Name \(ChainsCommands.listed(names, "or"))."))
        }
        guard faults.isEmpty else { throw FrameHostErrors(faults) }
        return share
    }

    /// `trace-cam1.json` for `trace.json`: each of several chains writes its own file.
    static func path(_ path: String, of chain: String) -> String {
        let name = path.lastIndex(of: "/").map { path[path.index(after: $0)...] } ?? path[...]
        guard let dot = name.lastIndex(of: "."), dot != name.startIndex else { return "\(path)-\(chain)" }
        return "\(path[..<dot])-\(chain)\(path[dot...])"
    }
}
