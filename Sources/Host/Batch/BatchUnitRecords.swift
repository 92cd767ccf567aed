// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Glibc

/// The record of a unit and what it says of DIR: which outputs are ours, which of them are not in their place yet, and
/// what former records left there.
///
/// A value without state of its own, as ``BatchUnitFolder`` is, whose `look` says what is
/// done already. [slot]
struct BatchUnitRecords {
    let out: String
    let name: String
    let key: String
    /// `DIR/.framehost/2024/clip.mp4`, and in it the folder of the key.
    let unit: String
    let folder: String
    /// The name of the output's file while it is being written. It has no characters that recorders read as a pattern.
    let workName: String

    /// The record; nil if there is none.
    var record: WorkRecord? { Self.record("\(folder)/done") }

    /// The input that the record was made of, if it is another file than `path`. If the old path is gone (a moved
    /// archive), equal content counts as the same input.
    static func otherInput(_ old: WorkRecord, than path: String, _ input: InputIdentity) -> String? {
        guard old.inputPath != path else { return nil }
        guard let other = FileIdentity(path: old.inputPath) else { return old.input == input ? nil : old.inputPath }
        return other == FileIdentity(path: path) ? nil : old.inputPath
    }

    func otherInputText(_ other: String, _ path: String) -> String {
        let base =
            FileNames.folder(of: other) == FileNames.folder(of: path)
            ? "Name" : "Name the folder above both inputs with --base, or"
        return "\(out)/\(name) was made from another input, \(other). \(base) another folder with --out."
    }

    func takenText(_ name: String) -> String {
        "\(out)/\(name) already exists, and no record says that a batch made it. Remove the file, or name another folder with --out."
    }

    enum Change {
        /// What differs from the record of the output in DIR; empty if there is no output.
        case changed(String)
        case notOurs
        /// The output was made of another input.
        case ofAnother(String)
    }

    func changes(to input: InputIdentity, of path: String, _ chain: ChainIdentity) -> Change {
        var status = stat()
        guard lstat("\(out)/\(name)", &status) == 0 else { return .changed("") }
        for old in oldRecords() where Self.fits(old, 0, in: out) == .same {
            if let other = Self.otherInput(old, than: path, input) { return .ofAnother(other) }
            return .changed(old.changes(to: input, chain))
        }
        return .notOurs
    }

    /// Former records: those of other keys, and the record of an output that somebody removed.
    func oldRecords() -> [WorkRecord] {
        (BatchFiles.list(unit) ?? []).filter { Self.isKey($0) }
            .compactMap { Self.record("\(unit)/\($0)/\($0 == key ? Self.formerRecord : "done")") }
    }

    static let formerRecord = "removed"

    static func record(_ path: String) -> WorkRecord? {
        guard access(path, F_OK) == 0, let json = try? JSONReader.read(path: path, takesPipes: false) else {
            return nil
        }
        return WorkRecord(json: json)
    }

    enum Fit { case same, other, missing }

    /// Whether an output in DIR is the one that a record names.
    static func fits(_ record: WorkRecord, _ index: Int, in out: String) -> Fit {
        let output = record.outputs[index]
        var status = stat()
        guard lstat("\(out)/\(output.name)", &status) == 0 else { return .missing }
        let isSame =
            status.st_mode & S_IFMT == S_IFREG && Int64(status.st_size) == output.bytes
            && WorkRecord.nanoseconds(status.st_mtim) == output.modified
        return isSame ? .same : .other
    }

    // MARK: Publishing

    enum Publication {
        case published
        /// An output's name in DIR belongs to a file that is not ours.
        case taken(String)
        /// An output is not as it was made.
        case changed(String)
        case missing
    }

    /// Brings the files that a record names to DIR, if they are not there yet. Any batch may do this, and
    /// several batches may do it at once.
    ///
    /// - Throws: ``FrameHostError`` if DIR cannot be written.
    func publish(_ record: WorkRecord) throws -> Publication {
        var isComplete = true
        var hasPublished = false
        // The unit's own output comes last: once that output is there, all outputs are.
        for (index, output) in record.outputs.enumerated().reversed() {
            var fit = Self.fits(record, index, in: out)
            if fit == .same { continue }
            hasPublished = true
            let made = "\(folder)/\(record.folder)/\(workName(of: output.name))"
            let target = "\(out)/\(output.name)"
            guard access(made, F_OK) == 0 else {
                // Another batch may have published the file since we looked.
                fit = Self.fits(record, index, in: out)
                if fit == .same { continue }
                if fit == .other { return .changed(output.name) }
                isComplete = false
                continue
            }
            if let slash = output.name.utf8.lastIndex(of: UInt8(ascii: "/")) {
                try BatchFiles.makeFolders("\(out)/\(output.name[..<slash])")
            }
            if link(made, target) == 0 {
                unlink(made)
                continue
            }
            let code = errno
            guard code == EEXIST else {
                // The file is gone meanwhile, because another batch has published it.
                if code == ENOENT, Self.fits(record, index, in: out) == .same { continue }
                throw BatchFiles.fault(target, "created", code)
            }
            // An earlier link(2) succeeded and its answer was lost. Or the target is an older output of this unit.
            if FileIdentity(path: made) == FileIdentity(path: target) {
                unlink(made)
                continue
            }
            if Self.fits(record, index, in: out) == .same { continue }
            guard isOurs(output.name, record) else { return .taken(output.name) }
            guard rename(made, target) == 0 || Self.fits(record, index, in: out) == .same else {
                throw BatchFiles.fault(target, "replaced", errno)
            }
        }
        guard isComplete else { return .missing }
        if hasPublished {
            removeFormerCompanions(record)
            sweep()
        } else {
            // The batch that published may have been ended before it could sweep.
            sweepAttempts()
        }
        return .published
    }

    /// Whether the file in DIR is what another record of the same input says it made.
    private func isOurs(_ name: String, _ record: WorkRecord) -> Bool {
        oldRecords().contains { old in
            Self.otherInput(old, than: record.inputPath, record.input) == nil
                && old.outputs.indices.contains { old.outputs[$0].name == name && Self.fits(old, $0, in: out) == .same }
        }
    }

    /// Removes files that lay beside an output which has just been replaced, if no such file lies beside the new
    /// output.
    private func removeFormerCompanions(_ record: WorkRecord) {
        let names = Set(record.outputs.map(\.name))
        for old in oldRecords() where Self.fits(old, 0, in: out) != .same {
            for index in old.outputs.indices
            where !names.contains(old.outputs[index].name) && Self.fits(old, index, in: out) == .same {
                unlink("\(out)/\(old.outputs[index].name)")
            }
        }
    }

    /// The name of an output while it was being written.
    private func workName(of output: String) -> String {
        BatchFiles.withoutEnding(workName)
            + String(Substring(output.utf8.dropFirst(BatchFiles.withoutEnding(name).utf8.count)))
    }

    /// Removes what is left of attempts, and of keys that are no longer true.
    private func sweep() {
        for old in BatchFiles.list(unit) ?? [] where old != key && Self.isKey(old) {
            // A key whose output another batch has published after us stays.
            if let record = Self.record("\(unit)/\(old)/done"), Self.fits(record, 0, in: out) == .same { continue }
            BatchFiles.removeAll("\(unit)/\(old)")
        }
        sweepAttempts()
    }

    /// Removes attempts at a unit that is made: abandoned attempts, and late attempts, which will notice. If the record
    /// is gone meanwhile, an attempt may be in progress, and stays.
    private func sweepAttempts() {
        guard let names = BatchFiles.list(folder), names.contains("done") else { return }
        for name in names where name != "done" { BatchFiles.removeAll("\(folder)/\(name)") }
    }

    static func isKey(_ name: String) -> Bool { name.utf8.count == 16 && name.allSatisfy(\.isHexDigit) }
}
