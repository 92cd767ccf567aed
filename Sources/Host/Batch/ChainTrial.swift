// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Glibc

/// Checks that the chain can run at all, before a batch begins. The check is a process of its own, because an input
/// may end that process.
struct ChainTrial {
    let root: JSONNode
    let settings: [String]
    /// Arguments of `framehost check`.
    let arguments: [String]
    let folder: BatchFolder

    /// Tries a few inputs until one passes. A fault of an input is not a fault of the chain.
    ///
    /// - Throws: ``FrameHostErrors`` with the faults that do not depend on the input.
    func check(_ units: BatchUnits) throws {
        var faults: [FrameHostError] = []
        for unit in Set([0, units.count / 2, units.count - 1]).sorted() {
            guard let input = units.input(unit) else { continue }
            let output = units.output(unit)
            guard case .faults(let found) = try trial(of: input, output) else { return }
            let ofChain = found.filter { !isOf("input", $0) }
            if ofChain.isEmpty { return }
            if faults.isEmpty { faults = try placingEnding(ofChain, input, output, units.ending) }
        }
        guard faults.isEmpty else { throw FrameHostErrors(faults) }
    }

    /// The ending that nearly every chain can write.
    private static let usualEnding = ".mp4"

    /// Gives the faults of the outputs' ending the place `--ending`. These are the faults at the option that names the
    /// output which are gone if the output has the usual ending.
    private func placingEnding(_ faults: [FrameHostError], _ input: String, _ output: String, _ ending: String) throws
        -> [FrameHostError]
    {
        guard ending != Self.usualEnding, faults.contains(where: { isOf("output", $0) }) else { return faults }
        var left: [FrameHostError] = []
        if case .faults(let found) = try trial(of: input, "\(output.dropLast(ending.count))\(Self.usualEnding)") {
            // The input or the memory ended that trial, so the trial says nothing about the ending of the file's name.
            if found.isEmpty { return faults }
            left = found
        }
        return faults.map { fault in
            guard isOf("output", fault), !left.contains(where: { $0.place == fault.place }) else { return fault }
            var fault = fault
            fault.place = FaultPlace(argument: "--ending \(ending)")
            fault.what = fault.what.replacing("\(folder.owners)/", with: "")
            return fault
        }
    }

    /// What a worker needs of its machine: the maximum over a few inputs; nil if none of these can be planned.
    func needs(_ units: BatchUnits) throws -> EngineNeeds? {
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

    /// Runs `framehost check --json` in a process of its own, because an input may end that process.
    ///
    /// - Returns: What the process printed; nil if that cannot be read. And why the process failed; nil if it did not.
    static func check(
        _ arguments: [String], variables: [(String, String)], in folder: BatchFolder
    ) throws -> (words: JSONNode?, fault: String?) {
        var template = Array("\(folder.owners)/check-XXXXXX".utf8CString)
        let file = mkstemp(&template)
        guard file >= 0 else {
            throw FrameHostError(
                .unavailable, place: folder.owners, what: "cannot be written: \(String(cString: strerror(errno)))",
                remedy: "Give this user permission to write there, or free some space.")
        }
        unlink(template)
        _ = fcntl(file, F_SETFD, FD_CLOEXEC)
        defer { close(file) }
        let outcome = try WorkerProcess(
            arguments: ["check", "--json"] + arguments, variables: variables, owner: -1, output: file
        ).finish(MemoryGate(), isStopping: { false }, hears: { _ in }, waits: { _ in })
        var bytes = [UInt8](repeating: 0, count: Int(min(max(lseek(file, 0, SEEK_END), 0), 64 << 20)))
        let count = max(0, pread(file, &bytes, bytes.count, 0))
        return (try? JSONReader.read(Array(bytes[..<count]), file: "check"), outcome.fault)
    }

    private func trial(of named: String, _ output: String) throws -> Answer {
        let input = named.hasPrefix("/") ? named : "\(BatchFolder.current)/\(named)"
        let name = BatchFiles.safe(BatchFiles.last(output))
        let (words, fault) = try Self.check(
            arguments,
            variables: [
                ("input", input), ("output", "\(folder.owners)/\(name)"),
                ("name", BatchFiles.withoutEnding(BatchFiles.last(output))),
            ], in: folder)
        guard fault != nil else { return .plan(words ?? .null) }
        guard let list = words?["faults"]?.asArray else {
            // The input ended the process. The worker that gets this input will report that.
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
                    cause: fault["cause"]?.asString ?? "",
                    reason: fault["reason"]?.asString.flatMap { FrameHostError.Reason(rawValue: $0) },
                    option: fault["option"]?.asString)
            })
    }

    /// Whether a fault is at an option that names the batch's variable: `input`, `output`.
    private func isOf(_ variable: String, _ fault: FrameHostError) -> Bool {
        if let argument = fault.place.argument { return argument.contains("${\(variable)") }
        guard let path = fault.place.path else { return false }
        var node: JSONNode? = root
        for part in path.split(whereSeparator: { $0 == "." || $0 == "[" }) {
            node =
                part.hasSuffix("]")
                ? Int(part.dropLast()).flatMap { index in node?.asArray.flatMap { index < $0.count ? $0[index] : nil } }
                : node?[String(part)]
        }
        return node?.asString?.contains("${\(variable)") ?? false
    }
}
