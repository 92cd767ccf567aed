// SPDX-License-Identifier: Apache-2.0

import FrameCore
import FrameSupport
import Glibc

/// The attempts at one unit with one key, on disk: looks, claims, commits, publishes. docs/design/026-batch.md says why
/// the order of the steps is safe, between whichever two steps a process ends.
///
/// A value without state of its own: all state is in the folder. [slot]
struct UnitFolder {
    /// DIR.
    let out: String
    /// The output's name in DIR: `2024/clip.mp4`.
    let name: String
    let key: String
    /// `DIR/.framehost/2024/clip.mp4`.
    private let unit: String
    private let folder: String
    /// The name of the output's file while it is being written. It has no characters that recorders read as a pattern.
    private let workName: String

    static let hidden = ".framehost"

    init(out: String, name: String, key: String) {
        self.out = out
        self.name = name
        self.key = key
        unit = "\(out)/\(Self.hidden)/\(Self.safe(name))"
        folder = "\(unit)/\(key)"
        workName = Self.safe(Self.last(name))
    }

    // MARK: Parts

    /// The folder of a divided input's parts. It is laid out like DIR, with the parts as its units.
    var partsFolder: String { "\(folder)/parts" }

    /// The attempts at one part.
    func part(_ index: Int) -> UnitFolder { UnitFolder(out: partsFolder, name: PartRequest.name(index), key: key) }

    /// Writes down how many parts there are. Every process that divides the unit writes the same number.
    ///
    /// - Throws: ``FrameHostError`` if the folder cannot be written.
    func setPartCount(_ count: Int) throws {
        try Self.makeFolders(partsFolder)
        try Self.put("\(count)\n", at: "\(partsFolder)/count")
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
    var record: WorkRecord? { Self.record("\(folder)/done") }

    /// Whether the output is in its place.
    var hasOutput: Bool { access("\(out)/\(name)", F_OK) == 0 }

    // MARK: Given up by hand

    /// What ``giveUp(_:_:)`` notes. The note counts for every key.
    struct GivenUp {
        /// The identity that the input had then; nil if the input could not be examined.
        var input: InputIdentity?
        var time: String
    }

    private var givenUpPath: String { "\(unit)/given-up" }

    /// Notes that somebody gives the input up.
    ///
    /// - Throws: ``FrameHostError`` if the folder cannot be written.
    func giveUp(_ path: String?, _ input: InputIdentity?) throws {
        // A symbolic link here would lead to another folder.
        guard Self.isFolderOrMissing(unit) else { throw Self.fault(unit, "written to", ENOTDIR) }
        try Self.makeFolders(unit)
        let words: JSONNode = .object(
            [
                ("time", .string(WallTime.text(WorkRecord.now()))), ("host", .string(WorkRecord.hostName)),
            ] + (input.map { [("input", $0.json(path: path ?? ""))] } ?? []))
        try Self.put(words.text(pretty: true) + "\n", at: givenUpPath)
    }

    /// Writes a file under a name that nobody else uses. It gets its own name once it is whole.
    private static func put(_ text: String, at path: String) throws {
        var random = SystemRandomNumberGenerator()
        let new = "\(path)-\(String(random.next() as UInt32, radix: 16))"
        let file = open(new, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o666)
        guard file >= 0 else { throw fault(new, "created", errno) }
        var code = Transfer.write(Array(text.utf8), to: file)
        close(file)
        if code == 0, rename(new, path) != 0 { code = errno }
        guard code == 0 else {
            unlink(new)
            throw fault(path, "written", code)
        }
    }

    /// Nil if nobody has given the input up.
    var givenUp: GivenUp? {
        guard access(givenUpPath, F_OK) == 0,
            let json = try? JSONReader.read(path: givenUpPath, takesPipes: false)
        else { return nil }
        return GivenUp(
            input: json["input"].map { InputIdentity(json: $0) }, time: json["time"]?.asString ?? "an unknown time")
    }

    /// Where the note is, for people.
    var givenUpFile: String { givenUpPath }

    func forgetGivenUp() { unlink(givenUpPath) }

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
        for path in [unit, folder] where !Self.isFolderOrMissing(path) {
            return .setAside(
                "\(path) must be a folder, but is a file or a symbolic link. Remove it, so that the batch can create the folder.",
                attempts: 0)
        }
        let done = "\(folder)/done"
        let seen = FileIdentity(path: done)
        if let record = Self.record(done) {
            if let other = Self.otherInput(record, than: path, input) {
                return .setAside(otherInputText(other, path), attempts: 0)
            }
            switch try publish(record) {
            case .published: return .done(record)
            case .taken(let name): return .setAside(takenText(name), attempts: record.attempt)
            case .changed(let name):
                // The output may be that of another chain. A batch may have published that output, and may have been
                // ended before it could remove this record.
                guard oldRecords().contains(where: { Self.fits($0, 0, in: out) == .same }) else {
                    return .setAside(
                        "\(out)/\(name) has been changed since it was made. Remove the file to have it made again.",
                        attempts: record.attempt)
                }
            case .missing: break
            }
            // Somebody removed an output, so that the batch makes that output again. The former record says that the
            // other outputs are ours.
            if FileIdentity(path: done) == seen {
                unlink("\(folder)/\(Self.formerRecord)")
                rename(done, "\(folder)/\(Self.formerRecord)")
            }
        } else if seen != nil {
            let file = open(done, O_RDONLY | O_CLOEXEC | O_NOFOLLOW)
            guard file >= 0 else {
                return .setAside("\(Self.fault(done, "read", errno))", attempts: 0)
            }
            close(file)
            // The record is damaged, so its contents are unknown.
            if FileIdentity(path: done) == seen { unlink(done) }
        }
        var marks = Self.marks(in: folder)
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
        for other in Self.list(unit) ?? []
        where other != key && Self.isKey(other) && access("\(unit)/\(other)/done", F_OK) != 0 {
            let claims = Self.marks(in: "\(unit)/\(other)").claims
            if let newest = claims.last,
                case .lives(let who) = owner.life(ofClaim: "\(unit)/\(other)/\(newest).claim")
            {
                return .busy(who)
            }
        }
        switch changes(to: input, of: path, chain) {
        case .notOurs: return .setAside(takenText(name), attempts: 0)
        case .ofAnother(let other): return .setAside(otherInputText(other, path), attempts: 0)
        case .changed(let replaced):
            return .free(
                attempt: max(marks.claims.last ?? 0, marks.failures.last ?? 0) + 1, failures: marks.failures.count,
                replaced: replaced)
        }
    }

    private static let mostAbandoned = 100

    private func takenText(_ name: String) -> String {
        "\(out)/\(name) already exists, and no record says that a batch made it. Remove the file, or name another folder with --out."
    }

    /// The input that the record was made of, if it is another file than `path`. If the old path is gone (a moved
    /// archive), equal content counts as the same input.
    private static func otherInput(_ old: WorkRecord, than path: String, _ input: InputIdentity) -> String? {
        guard old.inputPath != path else { return nil }
        guard let other = FileIdentity(path: old.inputPath) else { return old.input == input ? nil : old.inputPath }
        return other == FileIdentity(path: path) ? nil : old.inputPath
    }

    private func otherInputText(_ other: String, _ path: String) -> String {
        let base =
            FileNames.folder(of: other) == FileNames.folder(of: path)
            ? "Name" : "Name the folder above both inputs with --base, or"
        return "\(out)/\(name) was made from another input, \(other). \(base) another folder with --out."
    }

    private static func isFolderOrMissing(_ path: String) -> Bool {
        var status = stat()
        return lstat(path, &status) != 0 || status.st_mode & S_IFMT == S_IFDIR
    }

    /// The numbers of claims and failures, in rising order.
    private static func marks(in folder: String) -> (claims: [Int], failures: [Int]) {
        var (claims, failures): ([Int], [Int]) = ([], [])
        for name in list(folder) ?? [] {
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

    private enum Change {
        /// What differs from the record of the output in DIR; empty if there is no output.
        case changed(String)
        case notOurs
        /// The output was made of another input.
        case ofAnother(String)
    }

    private func changes(to input: InputIdentity, of path: String, _ chain: ChainIdentity) -> Change {
        var status = stat()
        guard lstat("\(out)/\(name)", &status) == 0 else { return .changed("") }
        for old in oldRecords() where Self.fits(old, 0, in: out) == .same {
            if let other = Self.otherInput(old, than: path, input) { return .ofAnother(other) }
            return .changed(old.changes(to: input, chain))
        }
        return .notOurs
    }

    /// Former records: those of other keys, and the record of an output that somebody removed.
    private func oldRecords() -> [WorkRecord] {
        (Self.list(unit) ?? []).filter { Self.isKey($0) }
            .compactMap { Self.record("\(unit)/\($0)/\($0 == key ? Self.formerRecord : "done")") }
    }

    private static let formerRecord = "removed"

    private static func record(_ path: String) -> WorkRecord? {
        guard access(path, F_OK) == 0, let json = try? JSONReader.read(path: path, takesPipes: false) else {
            return nil
        }
        return WorkRecord(json: json)
    }

    private enum Fit { case same, other, missing }

    /// Whether an output in DIR is the one that a record names.
    private static func fits(_ record: WorkRecord, _ index: Int, in out: String) -> Fit {
        let output = record.outputs[index]
        var status = stat()
        guard lstat("\(out)/\(output.name)", &status) == 0 else { return .missing }
        let isSame =
            status.st_mode & S_IFMT == S_IFREG && Int64(status.st_size) == output.bytes
            && WorkRecord.nanoseconds(status.st_mtim) == output.modified
        return isSame ? .same : .other
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
        try Self.makeFolders(folder)
        let claim = "\(folder)/\(number).claim"
        if link(owner.path, claim) != 0 {
            let code = errno
            guard code == EEXIST else { throw Self.fault(claim, "created", code) }
            // On network file systems the answer can be lost, and the call is then repeated. The name is ours in that
            // case.
            guard let ours = FileIdentity(path: claim), ours == FileIdentity(path: owner.path) else { return nil }
        }
        var random = SystemRandomNumberGenerator()
        let own = "\(number)-\(String(random.next() as UInt32, radix: 16))"
        let attempt = Attempt(
            number: number, folderName: own, output: "\(folder)/\(own)/\(workName)", folder: "\(folder)/\(own)",
            owner: FileIdentity(path: owner.path))
        guard mkdir(attempt.folder, 0o777) == 0 else { throw Self.fault(attempt.folder, "created", errno) }
        // Another batch may have finished between the look and the claim.
        if access("\(folder)/done", F_OK) == 0 {
            drop(attempt)
            return nil
        }
        return attempt
    }

    /// Removes what an attempt has made, and its claim, as if there had been no attempt.
    func drop(_ attempt: Attempt) {
        Self.removeAll(attempt.folder)
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
        let new = "\(folder)/\(attempt.folderName).failed"
        let file = open(new, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o666)
        if file >= 0 {
            let isWritten = Transfer.write(Array((words.text(pretty: true) + "\n").utf8), to: file) == 0
            close(file)
            // Only this batch counts a failure that cannot be written.
            if isWritten { rename(new, "\(folder)/\(attempt.number).failed") } else { unlink(new) }
        }
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
        var record = record
        let work = Self.withoutEnding(workName)
        let stem = Self.withoutEnding(name)
        record.folder = attempt.folderName
        // Another batch removes this folder only after it has published the unit.
        guard let names = Self.list(attempt.folder) else { return .late }
        for name in names.sorted(by: { ($0 != workName ? 1 : 0, $0) < ($1 != workName ? 1 : 0, $1) }) {
            let path = "\(attempt.folder)/\(name)"
            let notRegular = FrameHostError(
                .broken, place: path, what: "a stage made this beside the output, but it is not a regular file",
                remedy:
                    "Let the stage write regular files, with names that begin with ${output}: no folders, links, pipes or sockets."
            )
            let file = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
            guard file >= 0 else {
                if errno == ENOENT { return .late }
                throw errno == ELOOP || errno == ENXIO ? notRegular : Self.fault(path, "opened", errno)
            }
            defer { close(file) }
            var status = stat()
            guard fstat(file, &status) == 0 else { throw Self.fault(path, "read", errno) }
            guard status.st_mode & S_IFMT == S_IFREG else { throw notRegular }
            guard fsync(file) == 0 else { throw Self.fault(path, "written to the disk", errno) }
            guard name.utf8.starts(with: work.utf8) else {
                throw FrameHostError(
                    .invalidConfiguration, place: path,
                    what:
                        "a stage wrote this file beside the output, but its name must begin with '\(work)', so that the batch can rename it with the output",
                    remedy: "Let the path of that stage begin with ${output}.")
            }
            record.outputs.append(
                WorkRecord.Output(
                    name: stem + String(Substring(name.utf8.dropFirst(work.utf8.count))), bytes: Int64(status.st_size),
                    modified: WorkRecord.nanoseconds(status.st_mtim)))
        }
        guard !record.outputs.isEmpty else { return .empty }
        try write(record, attempt)
        let mine = "\(folder)/\(attempt.folderName).done"
        guard link(mine, "\(folder)/done") == 0 || FileIdentity(path: mine) == FileIdentity(path: "\(folder)/done")
        else {
            let code = errno
            unlink(mine)
            // The batch that committed first may have removed this attempt's record.
            guard code == EEXIST || code == ENOENT && isLate(attempt) else {
                throw Self.fault("\(folder)/done", "created", code)
            }
            drop(attempt)
            return .late
        }
        Self.syncFolder(folder)
        // The attempt is the unit's result from here on. What cannot be published now, a later look publishes.
        defer {
            unlink(mine)
            giveBack(attempt)
        }
        do {
            switch try publish(record) {
            case .published: return .committed(record)
            case .taken(let name), .changed(let name): return .taken(takenText(name))
            case .missing:
                return .taken("another program changed \(folder) while the batch wrote it. Run the same command again.")
            }
        } catch {
            return .taken("\(FrameHostError.wrap(error))")
        }
    }

    /// Writes an attempt's own record to the disk.
    private func write(_ record: WorkRecord, _ attempt: Attempt) throws {
        let path = "\(folder)/\(attempt.folderName).done"
        let file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o666)
        guard file >= 0 else { throw Self.fault(path, "created", errno) }
        defer { close(file) }
        var code = Transfer.write(Array((record.json.text(pretty: true) + "\n").utf8), to: file)
        if code == 0, fsync(file) != 0 { code = errno }
        guard code == 0 else {
            unlink(path)
            throw Self.fault(path, "written", code)
        }
    }

    private enum Publication {
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
    private func publish(_ record: WorkRecord) throws -> Publication {
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
                try Self.makeFolders("\(out)/\(output.name[..<slash])")
            }
            if link(made, target) == 0 {
                unlink(made)
                continue
            }
            let code = errno
            guard code == EEXIST else {
                // The file is gone meanwhile, because another batch has published it.
                if code == ENOENT, Self.fits(record, index, in: out) == .same { continue }
                throw Self.fault(target, "created", code)
            }
            // An earlier link(2) succeeded and its answer was lost. Or the target is an older output of this unit.
            if FileIdentity(path: made) == FileIdentity(path: target) {
                unlink(made)
                continue
            }
            if Self.fits(record, index, in: out) == .same { continue }
            guard isOurs(output.name, record) else { return .taken(output.name) }
            guard rename(made, target) == 0 || Self.fits(record, index, in: out) == .same else {
                throw Self.fault(target, "replaced", errno)
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
        Self.withoutEnding(workName)
            + String(Substring(output.utf8.dropFirst(Self.withoutEnding(name).utf8.count)))
    }

    /// Removes what is left of attempts, and of keys that are no longer true.
    private func sweep() {
        for old in Self.list(unit) ?? [] where old != key && Self.isKey(old) {
            // A key whose output another batch has published after us stays.
            if let record = Self.record("\(unit)/\(old)/done"), Self.fits(record, 0, in: out) == .same { continue }
            Self.removeAll("\(unit)/\(old)")
        }
        sweepAttempts()
    }

    /// Removes attempts at a unit that is made: abandoned attempts, and late attempts, which will notice. If the record
    /// is gone meanwhile, an attempt may be in progress, and stays.
    private func sweepAttempts() {
        guard let names = Self.list(folder), names.contains("done") else { return }
        for name in names where name != "done" { Self.removeAll("\(folder)/\(name)") }
    }

    // MARK: Names and files

    /// `name` without characters that recorders or terminals interpret. If that changes the name, a number keeps
    /// it distinct.
    static func safe(_ name: String) -> String {
        let isSafe: (UInt8) -> Bool = { $0 >= 0x20 && $0 != 0x7f && !"%{}$".utf8.contains($0) }
        guard !name.utf8.allSatisfy(isSafe) else { return name }
        var hash: UInt64 = 0xcbf2_9ce4_8422_2325
        for byte in name.utf8 { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3 }
        let text = String(decoding: name.utf8.map { isSafe($0) ? $0 : UInt8(ascii: "_") }, as: UTF8.self)
        let stem = withoutEnding(text)
        let ending = String(Substring(text.utf8.dropFirst(stem.utf8.count)))
        return "\(stem)~\(String(hash, radix: 16))\(ending)"
    }

    private static func isKey(_ name: String) -> Bool { name.utf8.count == 16 && name.allSatisfy(\.isHexDigit) }

    // By bytes, because a slash and a combining mark behind it are one character.
    static func last(_ path: String) -> String {
        path.utf8.split(separator: UInt8(ascii: "/")).last.map { String(Substring($0)) } ?? path
    }

    /// `2024/clip` of `2024/clip.mp4`.
    static func withoutEnding(_ path: String) -> String {
        let bytes = path.utf8
        let start = bytes.lastIndex(of: UInt8(ascii: "/")).map { bytes.index(after: $0) } ?? bytes.startIndex
        guard let dot = bytes[start...].lastIndex(of: UInt8(ascii: ".")), dot > start else { return path }
        return String(Substring(bytes[..<dot]))
    }

    static func fault(_ path: String, _ verb: String, _ code: Int32) -> FrameHostError {
        let remedy =
            switch code {
            case ENOSPC, EDQUOT: "Free some space"
            case EACCES, EPERM: "Give this user permission to do that"
            case EROFS: "Mount the disk for writing"
            case ENOTDIR: "Remove the file that is in the place of a folder"
            case EIO: "Check the disk"
            default: "Correct this"
            }
        return FrameHostError(
            .unavailable, place: path, what: "cannot be \(verb): \(String(cString: strerror(code)))",
            remedy: "\(remedy), then run the same command again.")
    }

    /// The names in a folder without `.` and `..`; nil if the folder cannot be read.
    static func list(_ folder: String) -> [String]? {
        guard let handle = opendir(folder) else { return nil }
        defer { closedir(handle) }
        var names: [String] = []
        while let entry = readdir(handle) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) {
                $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            if name != ".", name != ".." { names.append(name) }
        }
        return names
    }

    /// Makes a folder and the folders above it.
    static func makeFolders(_ path: String) throws {
        if mkdir(path, 0o777) == 0 { return }
        if errno == EEXIST {
            var status = stat()
            guard stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFDIR else {
                throw fault(path, "created", ENOTDIR)
            }
            return
        }
        guard errno == ENOENT, let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")), slash > path.startIndex else {
            throw fault(path, "created", errno)
        }
        try makeFolders(String(path[..<slash]))
        guard mkdir(path, 0o777) == 0 || errno == EEXIST else { throw fault(path, "created", errno) }
    }

    /// Removes a file or folder of attempts with everything that is in it. Links are not followed.
    static func removeAll(_ path: String) {
        if unlink(path) == 0 || errno == ENOENT { return }
        var status = stat()
        guard lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFDIR else { return }
        for name in list(path) ?? [] { removeAll("\(path)/\(name)") }
        rmdir(path)
    }

    private static func syncFolder(_ path: String) {
        let file = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard file >= 0 else { return }
        fsync(file)
        close(file)
    }
}
