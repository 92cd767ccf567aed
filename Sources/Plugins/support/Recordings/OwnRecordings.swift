// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Glibc

/// The recordings of one recorder in the folders of its pattern: those whose mark names this recorder and this machine,
/// and the file under its present name.
///
/// Used on the stage thread, and on the set-up thread before that.
package final class OwnRecordings {
    /// Files with names of the pattern that are not the recorder's own.
    package struct Strangers: Equatable {
        package var count = 0
        package var bytes: Int64 = 0
        /// One of them.
        package var example = ""
        /// The time of the one that was written first, nanoseconds since 1970.
        package var oldest = Int64.max
    }

    /// What was found in the folders.
    package struct Found {
        package var own: [RetentionPolicy.File] = []
        package var strangers = Strangers()
    }

    /// What is known of a file since it was last seen.
    private struct Known {
        var marks: [RecordingMark]
        var bytes: Int64
        var time: Int64
        /// Since when it is as it is (``RecordingMoment/up``).
        var since: Int64
        var round: UInt64
    }

    private let pattern: FileNamePattern
    private let holder: String
    /// The kinds of files that are made beside a file, counted and removed with it.
    private let companions: [any RecordingCompanion]
    private let recorder: String
    private let run: UInt64
    private let boot: UInt64
    private let machine: UInt64
    private var known: [FileIdentity: Known] = [:]
    /// How far the wall clock was ahead at least when it was synchronised; nil before that.
    private var offset: Int64?
    /// When this recorder completed its files (``RecordingMoment/up``), by the numbers of their marks.
    private var ends: [Int64: Int64] = [:]
    private var round: UInt64 = 0
    /// The highest number of the marks of own files.
    package private(set) var highestNumber: Int64 = 0

    /// - Parameters:
    ///   - holder: Under which name files are held while they are removed: a stage's kind.
    ///   - companions: The kinds of files that are made beside them.
    ///   - recorder: The recorder's id.
    ///   - run: The run's number (``RunFiles/id``).
    ///   - boot: The machine's start.
    ///   - machine: The machine.
    package init(
        _ pattern: FileNamePattern, holder: String, companions: [any RecordingCompanion] = [], recorder: String,
        run: UInt64, boot: UInt64 = RecordingMark.currentBoot(),
        machine: UInt64 = RecordingMark.thisMachine
    ) {
        self.pattern = pattern
        self.holder = holder
        self.companions = companions
        self.recorder = recorder
        self.run = run
        self.boot = boot
        self.machine = machine
    }

    /// Notes that a file is complete.
    package func complete(_ mark: RecordingMark, at now: RecordingMoment) { ends[mark.number] = now.up }

    private func companions(of mark: RecordingMark) -> [any RecordingCompanion] {
        companions.filter { mark.sidecars.contains($0.ending) }
    }

    /// The mark by which a file of this name is this recorder's own.
    private func ownMark(_ marks: [RecordingMark], _ name: String, in folder: UInt64) -> RecordingMark? {
        marks.first { $0.names(name, in: folder, recorder: recorder, machine: machine) }
    }

    /// Looks at all regular files whose folders and names the pattern can have made, each once even if it has several
    /// names: an own one under the name that its mark states. Never follows a link below the pattern's fixed folder. A
    /// file that is as it was is not opened again.
    ///
    /// - Parameter current: The file being written, which is left out under any name.
    package func look(except current: FileIdentity? = nil, now: RecordingMoment) -> Found {
        round &+= 1
        if now.isSynchronised { offset = min(offset ?? .max, now.offset) }
        var found = Found()
        var own: [(file: RetentionPolicy.File, mark: RecordingMark, known: Known)] = []
        var ownIdentities = Set<FileIdentity>()
        var others: [FileIdentity: (path: String, known: Known)] = [:]
        if let current { ownIdentities.insert(current) }
        PatternFolder.visit(pattern) { folder in
            let fingerprint = RecordingMark.fingerprint(ofFolder: folder)
            for name in FolderListing.names(in: folder) where pattern.number(ofName: name) != nil {
                let path = "\(folder)/\(name)"
                var status = stat()
                guard lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { continue }
                let identity = FileIdentity(status)
                guard !ownIdentities.contains(identity) else { continue }
                let known = update(path, identity, status, now.up)
                guard let mark = ownMark(known.marks, name, in: fingerprint) else {
                    // Its own name may still come.
                    others[identity] = others[identity] ?? (path, known)
                    continue
                }
                ownIdentities.insert(identity)
                var bytes = known.bytes
                // The files beside it are removed with it, and so count with it.
                for companion in companions(of: mark) { bytes += companion.size(beside: path) ?? 0 }
                let order = RecordingOrder(
                    number: mark.number, unixMilliseconds: mark.unixMilliseconds, path: path)
                let file = RetentionPolicy.File(path: path, bytes: bytes, age: 0, order: order, identity: identity)
                own.append((file, mark, known))
            }
        }
        for (identity, other) in others where !ownIdentities.contains(identity) {
            found.strangers.add(other.path, other.known.bytes, other.known.time)
        }
        known = known.filter { $0.value.round == round }
        let present = Set(own.lazy.filter { $0.mark.run == self.run }.map(\.mark.number))
        ends = ends.filter { present.contains($0.key) }
        for entry in own { count(entry.mark) }
        let ages = RecordingAges(now: now, boot: boot, offset: offset).ages(
            of: own.map { entry in
                RecordingAges.File(
                    mark: entry.mark, written: entry.known.time,
                    end: entry.mark.run == run ? ends[entry.mark.number] : nil, seen: entry.known.since)
            })
        found.own = zip(own, ages).map { entry, age in
            var file = entry.file
            file.age = age
            return file
        }
        return found
    }

    /// The highest number of the marks of the own files that were written last, 256 at most: enough to count on, where no
    /// file is to be removed. However many files of others lie between them, they do not count.
    package func highestNumberOfNewest() -> Int64 {
        var files: [(path: String, folder: UInt64, time: Int64)] = []
        PatternFolder.visit(pattern) { folder in
            let fingerprint = RecordingMark.fingerprint(ofFolder: folder)
            for name in FolderListing.names(in: folder) where pattern.number(ofName: name) != nil {
                var status = stat()
                guard lstat("\(folder)/\(name)", &status) == 0, status.st_mode & S_IFMT == S_IFREG else { continue }
                files.append(("\(folder)/\(name)", fingerprint, status.boundedTime))
            }
        }
        files.sort { $0.time > $1.time }
        var left = 256
        for file in files where left > 0 {
            guard
                let mark = ownMark(
                    MarkedFile.marks(of: file.path), FileNames.name(of: file.path), in: file.folder)
            else { continue }
            count(mark)
            left -= 1
        }
        return highestNumber
    }

    /// Numbers that no recorder reaches are not counted on.
    private func count(_ mark: RecordingMark) {
        if mark.number <= RecordingMark.mostNumber / 2 { highestNumber = max(highestNumber, mark.number) }
    }

    private func update(_ path: String, _ identity: FileIdentity, _ status: stat, _ up: Int64) -> Known {
        let bytes = min(max(Int64(status.st_size), 0), 1 << 53)
        let time = status.boundedTime
        if var entry = known[identity], entry.bytes == bytes, entry.time == time {
            entry.round = round
            known[identity] = entry
            return entry
        }
        let entry = Known(
            marks: MarkedFile.marks(of: path, meant: identity), bytes: bytes, time: time, since: up, round: round)
        known[identity] = entry
        return entry
    }

    /// What ``removeExcess(_:writing:except:now:_:)`` did.
    package struct Removal {
        /// The files that went.
        package var removed: [RetentionPolicy.File] = []
        /// Those that should have gone.
        package var kept = KeptRecordings()
        /// What is not this recorder's own, where that keeps it from its limits.
        package var strangers: Strangers?
    }

    /// Looks at the files, and removes those that are too old or too much.
    ///
    /// A file that is in use or protected stays, and counts as removed, so that no newer file is removed in its place.
    ///
    /// - Parameters:
    ///   - writing: Bytes of the file being written, which count too.
    ///   - current: The file being written.
    package func removeExcess(
        _ policy: RetentionPolicy, writing: Int64 = 0, except current: FileIdentity? = nil, now: RecordingMoment,
        _ files: RunFiles
    ) -> Removal {
        let found = look(except: current, now: now)
        var removal = Removal()
        let bytes = found.own.reduce(writing) { RetentionPolicy.sum($0, $1.bytes) }
        if found.strangers.reach(policy, own: bytes, now: now.wall) { removal.strangers = found.strangers }
        for file in policy.excess(found.own, writing: writing) {
            if let refusal = remove(file, files) {
                removal.kept.add(file, refusal)
            } else {
                removal.removed.append(file)
            }
        }
        return removal
    }

    /// Whether the file is still this recorder's own. Its mark is read again.
    package func owns(_ file: RetentionPolicy.File) -> RecordingMark? {
        let folder = RecordingMark.fingerprint(ofFolder: FileNames.folder(of: file.path))
        return ownMark(
            MarkedFile.marks(of: file.path, meant: file.identity), FileNames.name(of: file.path), in: folder)
    }

    /// Removes an own file that nothing uses, the files that were made beside it, and the folders above it that are then
    /// empty.
    ///
    /// - Returns: Why it is still there; nil when it has gone.
    package func remove(_ file: RetentionPolicy.File, _ files: RunFiles) -> FileRefusal? {
        guard let mark = owns(file) else { return .changed }
        if let refusal = files.remove(file.path, meant: file.identity, as: holder) { return refusal }
        for companion in companions(of: mark) { companion.remove(beside: file.path, files) }
        var folder = FileNames.folder(of: file.path)
        for _ in 1..<pattern.components.count {
            guard rmdir(folder) == 0 else { break }
            folder = FileNames.folder(of: folder)
        }
        return nil
    }
}

extension OwnRecordings.Strangers {
    mutating func add(_ path: String, _ bytes: Int64, _ time: Int64) {
        count += 1
        self.bytes = RetentionPolicy.sum(self.bytes, bytes)
        if time < oldest || count == 1 { (oldest, example) = (time, path) }
    }

    /// Whether they are what keeps the recorder from its limits: with them there is more than `keepMegabytes`, or one of
    /// them is older than `keepSeconds`.
    package func reach(_ policy: RetentionPolicy, own: Int64, now: Int64) -> Bool {
        guard count > 0 else { return false }
        let isMuch = policy.byteLimit.map { RetentionPolicy.sum(own, bytes) > $0 } ?? false
        let isOld = policy.age.map { now - oldest > $0 } ?? false
        return isMuch || isOld
    }
}

extension stat {
    /// When the file was last written, nanoseconds since 1970, bounded to the years 1970 to 2223 so that no later
    /// arithmetic overflows.
    package var boundedTime: Int64 {
        let seconds = min(max(Int64(st_mtim.tv_sec), 0), 8_000_000_000)
        return seconds * 1_000_000_000 + min(max(Int64(st_mtim.tv_nsec), 0), 999_999_999)
    }
}

/// A kind of file that is made beside a recording, counted and removed with it.
package protocol RecordingCompanion {
    /// The ending of its name, with the dot.
    var ending: String { get }

    /// The size of our file beside a recording; nil where there is none, or where it is not ours.
    func size(beside recording: String) -> Int64?

    /// Removes our file beside a recording that was removed, if nobody uses it.
    func remove(beside recording: String, _ files: RunFiles)
}
