// SPDX-License-Identifier: Apache-2.0

import FrameCore
import FrameSupport
import Glibc

/// The attempts at one unit with one key, on disk: looks, claims, commits, publishes. docs/design/026-batch.md says why
/// the order of the steps is safe, between whichever two steps a process ends.
///
/// A value without state of its own: all state is in the folder. [slot]
struct BatchUnitFolder {
    /// DIR.
    let out: String
    /// The output's name in DIR: `2024/clip.mp4`.
    let name: String
    let key: String
    /// `DIR/.framehost/2024/clip.mp4`.
    private let unit: String
    private let folder: String
    private let records: BatchUnitRecords

    static let hidden = ".framehost"

    init(out: String, name: String, key: String) {
        self.out = out
        self.name = name
        self.key = key
        unit = "\(out)/\(Self.hidden)/\(BatchFiles.safe(name))"
        folder = "\(unit)/\(key)"
        records = BatchUnitRecords(
            out: out, name: name, key: key, unit: unit, folder: folder,
            workName: BatchFiles.safe(BatchFiles.last(name)))
    }

    // MARK: Parts

    /// The folder of a divided input's parts. It is laid out like DIR, with the parts as its units.
    var partsFolder: String { "\(folder)/parts" }

    /// The attempts at one part.
    func part(_ index: Int) -> BatchUnitFolder {
        BatchUnitFolder(out: partsFolder, name: PartRequest.name(index), key: key)
    }

    /// Writes down how many parts there are. Every process that divides the unit writes the same number.
    ///
    /// - Throws: ``FrameHostError`` if the folder cannot be written.
    func setPartCount(_ count: Int) throws {
        try BatchFiles.makeFolders(partsFolder)
        try BatchFiles.replace("\(partsFolder)/count", by: "\(count)\n")
    }

    /// The number that ``setPartCount(_:)`` has written; nil if the unit is not divided.
    var partCount: Int? {
        let file = open("\(partsFolder)/count", O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
        guard file >= 0 else { return nil }
        defer { close(file) }
        var text = [UInt8](repeating: 0, count: 16)
        let length = max(0, read(file, &text, text.count))
        guard let end = text[..<length].firstIndex(of: 10),
            let count = Int(String(decoding: text[..<end], as: UTF8.self)),
            (2...PartRequest.mostParts).contains(count)
        else { return nil }
        return count
    }

    /// Whether there is a record of the unit. The record may no longer be true.
    var hasRecord: Bool { access("\(folder)/done", F_OK) == 0 }

    /// The record; nil if there is none.
    var record: WorkRecord? { records.record }

    /// Whether the output is in its place.
    var hasOutput: Bool { access("\(out)/\(name)", F_OK) == 0 }

    /// The note that somebody has given the unit up. It counts for every key.
    var givenUp: GivenUpNote { GivenUpNote(unit: unit) }

    // MARK: Looking

    enum Look {
        case done(WorkRecord)
        /// Another batch works on the unit, or did so a moment ago.
        case busy(String)
        /// The unit is set aside, and why.
        case setAside(String, attempts: Int)
        /// - Parameters:
        ///   - failures: How many attempts have failed.
        ///   - replaced: What has changed since the present output was made; empty if there is no output.
        case free(attempt: Int, failures: Int, replaced: String)
    }

    /// Finds out what there is to do for the unit.
    ///
    /// - Parameters:
    ///   - attempts: A unit with this many failures is set aside.
    ///   - acceptsDamaged: Whether failures for a damaged input are forgotten.
    ///   - path: The input.
    ///   - chain: The chain on which the output would depend now, to say what has changed.
    /// - Throws: ``FrameHostError`` if the folder cannot be read or written.
    func look(
        attempts: Int, acceptsDamaged: Bool = false, owner: BatchOwner, path: String, input: InputIdentity,
        _ chain: ChainIdentity
    ) throws -> Look {
        if let own = FileIdentity(path: path), own == FileIdentity(path: "\(out)/\(name)") {
            return .setAside(
                "its output \(out)/\(name) would overwrite the input. Name another folder with --out.", attempts: 0)
        }
        // A symbolic link here would lead writes and removals to another folder.
        for path in [unit, folder] where !BatchFiles.isFolderOrMissing(path) {
            return .setAside(
                "\(path) must be a folder, but is a file or a symbolic link. Remove it, so that the batch can create the folder.",
                attempts: 0)
        }
        let done = "\(folder)/done"
        let seen = FileIdentity(path: done)
        if let record = records.record {
            if let other = BatchUnitRecords.otherInput(record, than: path, input) {
                return .setAside(records.otherInputText(other, path), attempts: 0)
            }
            switch try records.publish(record) {
            case .published: return .done(record)
            case .taken(let name): return .setAside(records.takenText(name), attempts: record.attempt)
            case .changed(let name):
                // The output may be that of another chain. A batch may have published that output, and may have been
                // ended before it could remove this record.
                guard records.oldRecords().contains(where: { BatchUnitRecords.fits($0, 0, in: out) == .same }) else {
                    return .setAside(
                        "\(out)/\(name) has been changed since it was made. Remove the file to have it made again.",
                        attempts: record.attempt)
                }
            case .missing: break
            }
            // Somebody removed an output, so that the batch makes that output again. The former record says that the
            // other outputs are ours.
            if FileIdentity(path: done) == seen {
                unlink("\(folder)/\(BatchUnitRecords.formerRecord)")
                rename(done, "\(folder)/\(BatchUnitRecords.formerRecord)")
            }
        } else if seen != nil {
            let file = open(done, O_RDONLY | O_CLOEXEC | O_NOFOLLOW)
            guard file >= 0 else {
                return .setAside("\(BatchFiles.fault(done, "read", errno))", attempts: 0)
            }
            close(file)
            // The record is damaged, so its contents are unknown.
            if FileIdentity(path: done) == seen { unlink(done) }
        }
        var marks = Self.marks(in: folder)
        if let found = obstacle(&marks, attempts: attempts, acceptsDamaged: acceptsDamaged, owner) { return found }
        switch records.changes(to: input, of: path, chain) {
        case .notOurs: return .setAside(records.takenText(name), attempts: 0)
        case .ofAnother(let other): return .setAside(records.otherInputText(other, path), attempts: 0)
        case .changed(let replaced):
            return .free(
                attempt: max(marks.claims.last ?? 0, marks.failures.last ?? 0) + 1, failures: marks.failures.count,
                replaced: replaced)
        }
    }

    /// Why there is nothing to do for a unit without a record now: it is set aside, or somebody works on it. Nil if
    /// nothing is in the way.
    ///
    /// - Parameter marks: Loses the failures that are forgotten here.
    private func obstacle(
        _ marks: inout (claims: [Int], failures: [Int]), attempts: Int, acceptsDamaged: Bool, _ owner: BatchOwner
    ) -> Look? {
        if acceptsDamaged, let last = marks.failures.last, note(last)?["damaged"]?.asBool == true {
            forgetFailures()
            marks.failures = []
        }
        if let last = marks.failures.last, marks.failures.count >= attempts || isFinal(last) {
            return .setAside(failure(last), attempts: marks.failures.count)
        }
        if let newest = marks.claims.last, newest > marks.failures.last ?? 0 {
            switch owner.life(ofClaim: "\(folder)/\(newest).claim") {
            case .lives(let who): return .busy(who)
            case .unknown: return .busy("another batch")
            case .gone: break
            }
            // Perhaps this input kills every process that reads it, or the machine.
            guard marks.claims.count < Self.mostAbandoned else {
                return .setAside(
                    "\(marks.claims.count) batches ended while they processed this file, and none recorded why. Add --retry to try the file again.",
                    attempts: marks.claims.count)
            }
        }
        // Another batch may have another chain, or may have seen the input before the input changed. The output of that
        // batch comes first.
        for other in BatchFiles.list(unit) ?? []
        where other != key && BatchUnitRecords.isKey(other) && access("\(unit)/\(other)/done", F_OK) != 0 {
            let claims = Self.marks(in: "\(unit)/\(other)").claims
            if let newest = claims.last,
                case .lives(let who) = owner.life(ofClaim: "\(unit)/\(other)/\(newest).claim")
            {
                return .busy(who)
            }
        }
        return nil
    }

    private static let mostAbandoned = 100

    /// The numbers of claims and failures, in rising order.
    private static func marks(in folder: String) -> (claims: [Int], failures: [Int]) {
        var (claims, failures): ([Int], [Int]) = ([], [])
        for name in BatchFiles.list(folder) ?? [] {
            guard let dot = name.firstIndex(of: "."), let number = Int(name[..<dot]), number > 0,
                number < Int(Int32.max)
            else {
                continue
            }
            switch name[name.index(after: dot)...] {
            case "claim": claims.append(number)
            case "failed": failures.append(number)
            default: break
            }
        }
        return (claims.sorted(), failures.sorted())
    }

    // MARK: An attempt

    /// An attempt that is ours.
    struct Attempt {
        var number: Int
        /// The name of the attempt's folder. No other attempt ever has this name, even if numbers start again.
        var folderName: String
        /// Where its worker writes: the value of `${output}`.
        var output: String
        fileprivate var folder: String
        /// The owner's file. The claim is a hard link of it.
        fileprivate var owner: FileIdentity?
    }

    /// Makes the attempt ours. Nil if another batch was quicker.
    ///
    /// - Throws: ``FrameHostError`` if the folder cannot be written.
    func claim(_ number: Int, owner: BatchOwner) throws -> Attempt? {
        try BatchFiles.makeFolders(folder)
        let claim = "\(folder)/\(number).claim"
        if link(owner.path, claim) != 0 {
            let code = errno
            guard code == EEXIST else { throw BatchFiles.fault(claim, "created", code) }
            // On network file systems the answer can be lost, and the call is then repeated. The name is ours in that
            // case.
            guard let ours = FileIdentity(path: claim), ours == FileIdentity(path: owner.path) else { return nil }
        }
        var random = SystemRandomNumberGenerator()
        let own = "\(number)-\(String(random.next() as UInt32, radix: 16))"
        let attempt = Attempt(
            number: number, folderName: own, output: "\(folder)/\(own)/\(records.workName)", folder: "\(folder)/\(own)",
            owner: FileIdentity(path: owner.path))
        guard mkdir(attempt.folder, 0o777) == 0 else { throw BatchFiles.fault(attempt.folder, "created", errno) }
        // Another batch may have finished between the look and the claim.
        if access("\(folder)/done", F_OK) == 0 {
            drop(attempt)
            return nil
        }
        return attempt
    }

    /// Removes what an attempt has made, and its claim, as if there had been no attempt.
    func drop(_ attempt: Attempt) {
        BatchFiles.removeAll(attempt.folder)
        giveBack(attempt)
    }

    /// Removes the claim. If numbers have started again meanwhile, the claim of this name belongs to another batch, and
    /// stays.
    private func giveBack(_ attempt: Attempt) {
        let claim = "\(folder)/\(attempt.number).claim"
        if let owner = attempt.owner, FileIdentity(path: claim) == owner { unlink(claim) }
    }

    /// Whether another attempt has made the unit, so that the result of this attempt no longer counts.
    func isLate(_ attempt: Attempt) -> Bool {
        access("\(folder)/done", F_OK) == 0 || access(attempt.folder, F_OK) != 0
    }

    /// Notes why an attempt failed, and removes what the attempt has made.
    ///
    /// - Parameters:
    ///   - isFinal: Whether another attempt would fail the same way.
    ///   - isDamaged: Whether `--accept-damaged` would have kept the output.
    func fail(_ attempt: Attempt, _ text: String, isFinal: Bool, isDamaged: Bool = false, host: String) {
        let words: JSONNode = .object([
            ("error", .string(text)), ("final", .bool(isFinal)), ("damaged", .bool(isDamaged)), ("host", .string(host)),
            ("time", .string(WallTime.text(WorkRecord.now()))),
        ])
        // Only this batch counts a failure that cannot be written.
        try? BatchFiles.replace("\(folder)/\(attempt.number).failed", by: words.text(pretty: true) + "\n")
        drop(attempt)
    }

    /// Forgets failures, so that a unit that was set aside is tried again.
    func forgetFailures() {
        let marks = Self.marks(in: folder)
        for number in marks.failures { unlink("\(folder)/\(number).failed") }
        for number in marks.claims.dropLast() { unlink("\(folder)/\(number).claim") }
    }

    /// What ``fail(_:_:isFinal:isDamaged:host:)`` has noted.
    private func note(_ number: Int) -> JSONNode? {
        try? JSONReader.read(path: "\(folder)/\(number).failed", takesPipes: false)
    }

    private func isFinal(_ number: Int) -> Bool { note(number)?["final"]?.asBool ?? false }

    private func failure(_ number: Int) -> String {
        note(number)?["error"]?.asString
            ?? "the last attempt failed, and its reason cannot be read. Add --retry to try the file again."
    }

    // MARK: Committing

    enum Commit {
        /// The record as it was published.
        case committed(WorkRecord)
        /// Another attempt was quicker. Nothing of this attempt is left.
        case late
        /// The worker wrote nothing to `${output}`.
        case empty
        /// The output's name in DIR belongs to a file that is not ours.
        case taken(String)
    }

    /// Makes what an attempt wrote the result of the unit.
    ///
    /// - Throws: ``FrameHostError`` if a file cannot be written to the disk. The attempt has then failed.
    func commit(_ attempt: Attempt, _ record: WorkRecord) throws -> Commit {
        guard let outputs = try outputs(of: attempt) else { return .late }
        guard !outputs.isEmpty else { return .empty }
        var record = record
        (record.folder, record.outputs) = (attempt.folderName, outputs)
        try write(record, attempt)
        let mine = "\(folder)/\(attempt.folderName).done"
        guard link(mine, "\(folder)/done") == 0 || FileIdentity(path: mine) == FileIdentity(path: "\(folder)/done")
        else {
            let code = errno
            unlink(mine)
            // The batch that committed first may have removed this attempt's record.
            guard code == EEXIST || code == ENOENT && isLate(attempt) else {
                throw BatchFiles.fault("\(folder)/done", "created", code)
            }
            drop(attempt)
            return .late
        }
        BatchFiles.syncFolder(folder)
        // The attempt is the unit's result from here on. What cannot be published now, a later look publishes.
        defer {
            unlink(mine)
            giveBack(attempt)
        }
        do {
            switch try records.publish(record) {
            case .published: return .committed(record)
            case .taken(let name), .changed(let name): return .taken(records.takenText(name))
            case .missing:
                return .taken("another program changed \(folder) while the batch wrote it. Run the same command again.")
            }
        } catch {
            return .taken("\(FrameHostError.wrap(error))")
        }
    }

    /// What an attempt wrote, on the disk, the unit's own output first; nil if another batch has removed it.
    private func outputs(of attempt: Attempt) throws -> [WorkRecord.Output]? {
        let work = BatchFiles.withoutEnding(records.workName)
        let stem = BatchFiles.withoutEnding(name)
        // Another batch removes this folder only after it has published the unit.
        guard let names = BatchFiles.list(attempt.folder) else { return nil }
        var outputs: [WorkRecord.Output] = []
        for name in names.sorted(by: { ($0 != records.workName ? 1 : 0, $0) < ($1 != records.workName ? 1 : 0, $1) }) {
            let path = "\(attempt.folder)/\(name)"
            let notRegular = FrameHostError(
                .broken, place: path, what: "a stage made this beside the output, but it is not a regular file",
                remedy:
                    "Let the stage write regular files, with names that begin with ${output}: no folders, links, pipes or sockets."
            )
            let file = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
            guard file >= 0 else {
                if errno == ENOENT { return nil }
                throw errno == ELOOP || errno == ENXIO ? notRegular : BatchFiles.fault(path, "opened", errno)
            }
            defer { close(file) }
            var status = stat()
            guard fstat(file, &status) == 0 else { throw BatchFiles.fault(path, "read", errno) }
            guard status.st_mode & S_IFMT == S_IFREG else { throw notRegular }
            guard fsync(file) == 0 else { throw BatchFiles.fault(path, "written to the disk", errno) }
            guard name.utf8.starts(with: work.utf8) else {
                throw FrameHostError(
                    .invalidConfiguration, place: path,
                    what:
                        "a stage wrote this file beside the output, but its name must begin with '\(work)', so that the batch can rename it with the output",
                    remedy: "Let the path of that stage begin with ${output}.")
            }
            outputs.append(
                WorkRecord.Output(
                    name: stem + String(Substring(name.utf8.dropFirst(work.utf8.count))), bytes: Int64(status.st_size),
                    modified: WorkRecord.nanoseconds(status.st_mtim)))
        }
        return outputs
    }

    /// Writes an attempt's own record to the disk.
    private func write(_ record: WorkRecord, _ attempt: Attempt) throws {
        let path = "\(folder)/\(attempt.folderName).done"
        let file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o666)
        guard file >= 0 else { throw BatchFiles.fault(path, "created", errno) }
        defer { close(file) }
        guard Transfer.write(Array((record.json.text(pretty: true) + "\n").utf8), to: file) == 0, fsync(file) == 0
        else {
            let code = errno
            unlink(path)
            throw BatchFiles.fault(path, "written", code)
        }
    }
}
