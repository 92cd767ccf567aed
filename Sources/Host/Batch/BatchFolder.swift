// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Glibc

/// The output folder (`--out`, DIR), made and checked before any unit is looked at. Main thread.
struct BatchFolder {
    /// The absolute path of DIR.
    let out: String
    /// The folder of the batches' owner files (``BatchOwner``).
    let owners: String
    /// Folders that were made for this batch, the innermost last.
    private var made: [String] = []

    /// The folder that relative names start at.
    static var current: String {
        guard let path = getcwd(nil, 0) else { return "." }
        defer { free(path) }
        return String(cString: path)
    }

    /// Makes the folder where it is not there.
    ///
    /// - Throws: ``FrameHostError``.
    init(_ path: String) throws {
        let trimmed = path.count > 1 && path.hasSuffix("/") ? String(path.dropLast()) : path
        let whole = trimmed.hasPrefix("/") ? trimmed : "\(Self.current)/\(trimmed)"
        guard !whole.utf8.contains(where: { "%{}$".utf8.contains($0) }), !path.isEmpty else {
            throw FrameHostError(
                .invalidConfiguration, place: FaultPlace(argument: "--out \(path)"),
                what: path.isEmpty
                    ? "names no folder" : "\(whole) has a %, {, } or $, which recorders read as a pattern",
                remedy: "Name a folder without them.")
        }
        out = whole
        owners = "\(whole)/\(UnitFolder.hidden)/owners"
        var missing: [String] = []
        var folder = owners
        while access(folder, F_OK) != 0, let slash = folder.lastIndex(of: "/"), slash > folder.startIndex {
            missing.append(folder)
            folder = String(folder[..<slash])
        }
        for folder in missing.reversed() {
            guard mkdir(folder, 0o777) == 0 || errno == EEXIST else {
                let code = errno
                removeEmpty()
                throw FrameHostError(
                    .invalidConfiguration, place: FaultPlace(argument: "--out \(path)"),
                    what: "\(folder) cannot be made: \(String(cString: strerror(code)))",
                    remedy: "Name a folder that can be written.")
            }
            made.append(folder)
        }
        guard access(owners, W_OK) == 0 else {
            throw FrameHostError(
                .invalidConfiguration, place: FaultPlace(argument: "--out \(path)"),
                what: "cannot be written: \(String(cString: strerror(errno)))",
                remedy: "Name a folder that can be written.")
        }
    }

    /// Takes back what was made, where nothing is in it.
    func removeEmpty() { for folder in made.reversed() { rmdir(folder) } }

    /// Claims and commits are hard links.
    ///
    /// - Throws: ``FrameHostError`` where the file system has none.
    func checkLinks(_ owner: BatchOwner) throws {
        let name = owner.path + ".link"
        guard link(owner.path, name) == 0 else {
            let code = errno
            owner.end()
            throw FrameHostError(
                .invalidConfiguration, place: FaultPlace(argument: "--out \(out)"),
                what: "the file system makes no hard links: \(String(cString: strerror(code)))",
                remedy: "Name a folder on another file system (ext4, XFS, Btrfs, NFS).")
        }
        unlink(name)
    }

    /// Removes the files of batches that were killed on this machine.
    func sweepOwners(_ owner: BatchOwner) {
        for name in UnitFolder.list(owners) ?? [] where !name.hasPrefix(".") {
            let path = "\(owners)/\(name)"
            if owner.life(ofClaim: path) == .gone { unlink(path) }
        }
    }

    /// Whether a file of this name can be written, with `errno` where not.
    static func canWrite(_ path: String) -> Bool {
        if access(path, F_OK) == 0 { return access(path, W_OK) == 0 }
        return access(FileNames.folder(of: path), W_OK) == 0
    }
}

/// Looks whether the chain can run at all, before a batch begins: in a process of its own, since an input may end it.
struct ChainTrial {
    let root: JSONNode
    let settings: [String]
    /// Arguments of `framehost check`.
    let arguments: [String]
    let folder: BatchFolder

    /// Tries a few inputs until one passes. A fault of an input is not a fault of the chain.
    ///
    /// - Throws: ``FrameHostErrors`` with what is wrong whatever the input.
    func check(_ units: UnitList) throws {
        var faults: [FrameHostError] = []
        for unit in Set([0, units.count / 2, units.count - 1]).sorted() {
            guard let input = units.input(unit) else { continue }
            guard case .faults(let found) = try trial(of: input, units.output(unit)) else { return }
            let ofChain = found.filter { !isOfInput($0) }
            if ofChain.isEmpty { return }
            if faults.isEmpty { faults = ofChain }
        }
        guard faults.isEmpty else { throw FrameHostErrors(faults) }
    }

    /// What a worker needs: the maximum over a few inputs; nil where none can be planned.
    func needs(_ units: UnitList) throws -> EngineNeeds? {
        var needs: EngineNeeds?
        for unit in Set([0, units.count / 2, units.count - 1]) {
            guard let input = units.input(unit), case .plan(let plan) = try trial(of: input, units.output(unit))
            else { continue }
            let found = EngineNeeds(plan: plan)
            needs = needs?.joined(found) ?? found
        }
        return needs
    }

    private enum Answer {
        case plan(JSONNode)
        case faults([FrameHostError])
    }

    private func trial(of named: String, _ output: String) throws -> Answer {
        let input = named.hasPrefix("/") ? named : "\(BatchFolder.current)/\(named)"
        var template = Array("\(folder.owners)/check-XXXXXX".utf8CString)
        let file = mkstemp(&template)
        unlink(template)
        _ = fcntl(file, F_SETFD, FD_CLOEXEC)
        defer { if file >= 0 { close(file) } }
        let name = UnitFolder.safe(UnitFolder.last(output))
        let outcome = try WorkerProcess(
            arguments: ["check", "--json"] + arguments,
            variables: [
                ("input", input), ("output", "\(folder.owners)/\(name)"),
                ("name", UnitFolder.withoutEnding(UnitFolder.last(output))),
            ], owner: -1, output: file
        ).finish(MemoryGate(), isStopping: { false }, hears: { _ in }, waits: { _ in })
        var bytes = [UInt8](repeating: 0, count: 1 << 20)
        let count = max(0, pread(file, &bytes, bytes.count, 0))
        let words = try? JSONReader.read(Array(bytes[..<count]), file: "check")
        guard outcome.fault != nil else { return .plan(words ?? .null) }
        guard let list = words?["faults"]?.asArray else {
            // The input ended the process: the worker that gets it will say so.
            return .faults([])
        }
        return .faults(
            list.map { fault in
                let position = fault["line"]?.asInt.flatMap { line in
                    fault["column"]?.asInt.map { TextPlace(line: line, column: $0) }
                }
                var place = FaultPlace(file: fault["file"]?.asString, position: position, path: fault["path"]?.asString)
                if let argument = fault["argument"]?.asString { place = FaultPlace(argument: argument) }
                return FrameHostError(
                    .invalidConfiguration, place: place, what: fault["what"]?.asString ?? "",
                    remedy: fault["remedy"]?.asString ?? "",
                    cause: fault["cause"]?.asString ?? "")
            })
    }

    /// Whether a fault stands at an option that names the input.
    private func isOfInput(_ fault: FrameHostError) -> Bool {
        if let argument = fault.place.argument { return argument.contains("${input") }
        guard let path = fault.place.path else { return false }
        var node: JSONNode? = root
        for part in path.split(whereSeparator: { $0 == "." || $0 == "[" }) {
            node =
                part.hasSuffix("]")
                ? Int(part.dropLast()).flatMap { index in node?.asArray.flatMap { index < $0.count ? $0[index] : nil } }
                : node?[String(part)]
        }
        return node?.asString?.contains("${input") ?? false
    }
}
