// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Glibc
import Recordings

/// Makes the files of one recorder, each under a name of its own.
///
/// Used on the stage thread.
final class RecordingFiles {
    /// The pattern of names from the second file on, which retention uses too.
    let pattern: FileNamePattern
    /// The name of the first file, where `path` is a fixed name and a single file is expected.
    let single: String?
    private let overwrite: Bool
    private let files: RunFiles
    /// The sidecars that are made with each file.
    let sidecars: [Sidecar]
    /// Whether the file of the single name was made, by this recorder or by one that it replaced.
    private var hasSingle = false
    private var names: PatternNames
    /// The recorder's id, for the marks.
    private let recorder: String
    /// Whether the recorder removes files.
    private let isRing: Bool
    /// The number of the last mark (``RecordingMark/number``).
    var lastMark: Int64 = 0
    private let boot: UInt64
    private let machine: UInt64
    /// Called when a file is complete.
    var completed: (RecordingMark) -> Void = { _ in }

    /// - Parameters:
    ///   - path: The option `path` with its patterns, already checked.
    ///   - folder: The folder to which a relative path is relative.
    ///   - sidecars: The sidecars that are made with each file.
    ///   - recorder: The recorder's id, which stands in each file's mark.
    ///   - isRing: Whether the recorder removes files, and so must know them.
    ///   - boot: The machine's start, which stands there too.
    ///   - machine: The machine, likewise.
    init(
        path: String, folder: String, overwrite: Bool, makesMoreFiles: Bool, sidecars: [Sidecar] = [],
        recorder: String = "", isRing: Bool = false, boot: UInt64 = RecordingMark.currentBoot(),
        machine: UInt64 = RecordingMark.thisMachine, files: RunFiles
    ) throws(OptionFault) {
        self.recorder = recorder
        self.isRing = isRing
        self.boot = boot
        self.machine = machine
        self.files = files
        self.sidecars = sidecars
        let given = try FileNamePattern(path).placed(in: folder)
        single = given.isFixed && !makesMoreFiles ? given.path(at: 0, number: 0) : nil
        pattern = given.isFixed ? given.numbered() : given
        self.overwrite = overwrite
        // The single file counts as the first.
        names = PatternNames(
            pattern, overwrite: overwrite, holder: OutputFile.holder, least: single == nil ? 0 : 1)
    }

    /// The files whose names are known before they are made.
    var named: [String] {
        single.map { name in [name] + sidecars.map { $0.path(beside: name) } } ?? []
    }

    /// [control thread] What is wrong with the place of the files; nil when they can be made there. Creates nothing.
    var fault: FrameHostError? {
        if let name = freeSingle {
            return RecordingFault.ofPath(name, overwrite: overwrite)
                ?? files.refusalOfReplacing(ofAnotherRun: name).map { RecordingFault.refused(name, $0) }
                ?? sidecars.lazy.compactMap { [self] in
                    RecordingFault.ofLength(path(of: $0, beside: name))
                        ?? sidecarFault(of: $0, beside: name)
                }.first
        }
        return RecordingFault.ofFolder(pattern.folder) ?? RecordingFault.ofLength(pattern.path(at: 0, number: 1))
    }

    /// What is wrong with the room for a new file; nil where there is enough, and where nobody can say.
    ///
    /// - Parameter bytes: What is to be written at once.
    func lackOfRoom(for bytes: Int, at unixTime: Int64) -> FrameHostError? {
        var about = statvfs()
        guard statvfs(pattern.folder, &about) == 0, about.f_blocks > 0 else { return nil }
        // Some of the room may be for the administrator alone.
        let blocks = geteuid() == 0 ? about.f_bfree : about.f_bavail
        let (room, isMore) = UInt64(blocks).multipliedReportingOverflow(by: UInt64(about.f_frsize))
        guard !isMore, room < UInt64(bytes) + Self.leastRoom else { return nil }
        return RecordingFault.unwritable(nextName(at: unixTime), ENOSPC)
    }

    /// Room for marks, headers and the first fragment.
    private static let leastRoom: UInt64 = 64 << 10

    /// The probable next name, for events and messages before a file has its name.
    func nextName(at unixTime: Int64) -> String {
        freeSingle ?? pattern.path(at: unixTime, number: (names.number ?? 0) + 1)
    }

    /// The single name, where no file of this run has it yet. A recorder that replaces another goes on as after a stop
    /// and a start, since a run never overwrites its own files.
    private var freeSingle: String? {
        guard let single, !hasSingle else { return nil }
        hasSingle = files.hasMade(single)
        return hasSingle ? nil : single
    }

    /// Makes the next file, and the folders its pattern asks for.
    ///
    /// With `overwrite` only a finished recording of an earlier run is replaced. A name of the pattern is skipped where
    /// it belongs to a file that carries no mark of this recorder, to a file of this run, to a file that a program reads
    /// or writes, to a link, a device or a write-protected file, or to something that cannot be examined.
    ///
    /// - Parameters:
    ///   - unixTime: When its first picture was taken, nanoseconds since 1970.
    ///   - clock: The same moment by the chain's clock.
    ///   - made: The present moment.
    /// - Throws: ``FrameHostError`` naming the path.
    func make(at unixTime: Int64, clock: Int64 = 0, made: RecordingMoment = .now()) throws -> OutputFile {
        let moment = Moment(unixTime: unixTime, clock: clock, made: made)
        if let name = freeSingle {
            do throws(FileRefusal) {
                let file = try create(name, isNamed: true, moment)
                hasSingle = true
                return file
            } catch {
                // A file beside it can be the reason.
                let sidecar = sidecars.first { refusal(of: $0, beside: name) == error }
                throw sidecar.map { fault(of: $0, beside: name, error) } ?? RecordingFault.refused(name, error)
            }
        }
        return try names.make(at: unixTime) { path throws(FileRefusal) in
            try create(path, isNamed: false, moment)
        }
    }

    /// The time of a file's first picture, nanoseconds since 1970 and by the chain's clock, and that of its making.
    private struct Moment {
        var unixTime: Int64
        var clock: Int64
        var made: RecordingMoment
    }

    /// Writes into a new file who made it.
    private func mark(_ file: OutputFile, _ moment: Moment) {
        guard isRing || !files.isReproducible, let container = Container(path: pattern.ending) else { return }
        lastMark += 1
        let mark = RecordingMark(
            recorder: recorder, run: files.id, number: lastMark, file: FileNames.name(of: file.path),
            folder: RecordingMark.fingerprint(ofFolder: FileNames.folder(of: file.path)),
            unixMilliseconds: max(0, moment.unixTime / 1_000_000), clock: max(0, moment.clock), boot: boot,
            sidecars: sidecars.filter { file.sidecars[$0] != nil }.map(\.ending), machine: machine, made: moment.made)
        file.begin(with: mark, container.form)
        file.mark = mark
    }

    /// Makes a file and its sidecars: all, or none.
    ///
    /// It first checks whether the sidecars may be replaced, since a replaced recording does not come back. With
    /// `overwrite`, a recording goes on without a sidecar whose name another program takes in between.
    private func create(_ path: String, isNamed: Bool, _ moment: Moment) throws(FileRefusal) -> OutputFile {
        let old = isNamed ? nil : ownFile(path)
        // Nobody has named this file, so what has the name stays, unless this recorder has made it.
        if overwrite, !isNamed, old == nil, access(path, F_OK) == 0 { throw .exists }
        for sidecar in sidecars {
            if let refusal = refusal(of: sidecar, beside: path) { throw refusal }
            guard overwrite, !isNamed, access(self.path(of: sidecar, beside: path), F_OK) == 0 else { continue }
            guard old?.mark.ownSidecars.contains(sidecar) == true else { throw .exists }
        }
        let file =
            overwrite && !isNamed && old == nil
            // A file of somebody may have the name by now.
            ? try OutputFile.create(path, overwrite: false, isNamed: false, files)
            : try OutputFile.create(path, overwrite: overwrite, meant: old?.identity, isNamed: isNamed, files)
        guard file.held.isRegular else { return file }
        for sidecar in sidecars {
            let name = self.path(of: sidecar, beside: file.path)
            do throws(FileRefusal) {
                file.sidecars[sidecar] =
                    overwrite
                    ? try files.replace(name, as: OutputFile.holder) : try files.create(name, as: OutputFile.holder)
            } catch {
                guard !overwrite else {
                    file.refusals[sidecar] = error
                    continue
                }
                file.cut(to: 0)
                throw error
            }
        }
        mark(file, moment)
        return file
    }

    /// The recording of this name that this recorder has made, by its mark; nil where there is none.
    private func ownFile(_ path: String) -> (identity: FileIdentity, mark: RecordingMark)? {
        guard overwrite else { return nil }
        var status = stat()
        guard lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return nil }
        let identity = FileIdentity(status)
        let folder = RecordingMark.fingerprint(ofFolder: FileNames.folder(of: path))
        let mark = MarkedFile.marks(of: path, meant: identity).first {
            $0.names(FileNames.name(of: path), in: folder, recorder: recorder, machine: machine)
        }
        return mark.map { (identity, $0) }
    }

    private func path(of sidecar: Sidecar, beside path: String) -> String {
        sidecar.path(beside: overwrite && path == single ? FileNames.followed(path) : path)
    }

    private func sidecarFault(of sidecar: Sidecar, beside path: String) -> FrameHostError? {
        refusal(of: sidecar, beside: path).map { fault(of: sidecar, beside: path, $0) }
    }

    private func fault(of sidecar: Sidecar, beside path: String, _ refusal: FileRefusal) -> FrameHostError {
        let name = self.path(of: sidecar, beside: path)
        guard refusal == .exists else { return RecordingFault.refused(name, refusal) }
        return overwrite
            ? RecordingFault.foreign(name) : RecordingFault.exists(name, isReplaceable: isReplaceable(sidecar, name))
    }

    /// Whether a sidecar of this name is replaced with `overwrite`: one that a recorder has made, or an empty file.
    private func isReplaceable(_ sidecar: Sidecar, _ name: String) -> Bool {
        var status = stat()
        guard lstat(name, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return false }
        return status.st_size == 0 || sidecar.size(of: name) != nil
    }

    /// What prevents a sidecar from being made; nil when nothing does. A file that no recorder has made is never
    /// replaced.
    private func refusal(of sidecar: Sidecar, beside path: String) -> FileRefusal? {
        let name = self.path(of: sidecar, beside: path)
        var status = stat()
        guard lstat(name, &status) == 0 else { return nil }
        guard overwrite else { return .exists }
        guard status.st_mode & S_IFMT == S_IFREG else { return .notRegular }
        if files.hasMade(name) { return .isOwn }
        guard isReplaceable(sidecar, name) else { return .exists }
        return files.refusalOfWriting(name)
    }
}
