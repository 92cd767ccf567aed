// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Foundation
import Testing

@testable import Recorder
@testable import Recordings

/// Retention removes a recorder's own files alone, in the order in which they were recorded.
@Suite struct RecorderOwnershipTests {
    static let second: Int64 = 1_000_000_000

    // MARK: The folder of somebody else

    /// One in each run of the tests; FRAMEHOST_SEED names another one.
    static let seeds = [ProcessInfo.processInfo.environment["FRAMEHOST_SEED"].flatMap { UInt64($0) } ?? 1]

    /// 40 paths with every conversion that there is.
    static let patterns = [
        "%A.mp4", "%a.mp4", "%B.mp4", "%b.mp4", "%h.mp4", "%p.mp4", "%Z.mp4", "%A-%B.mp4", "%A %d %B.mp4",
        "%a%b%h%p%Z.mp4", "%B/%d.mp4", "%A/%H.mp4", "%Y/%B/%A.mp4", "%Z/%p/%A.mp4", "%b %Y/%a %d.mp4", "%B/%A-{n}.mp4",
        "%A-{nnnn}.mp4", "{n}.mp4", "{nnnn}.mp4", "cam-{nnnn}.mp4", "cam.mp4", "%Y.mp4", "%Y-%m-%d.mp4",
        "%Y%m%d-%H%M%S.mp4", "%F.mp4", "%F %T.mp4", "%s.mp4", "%s-%f.mp4", "%j.mp4", "%U-%w.mp4", "%I %p.mp4",
        "%Y-%m/%d-%H.mp4", "%G/%V/%u.mp4", "%y%m%d.mp4", "%H%M%z.mp4", "%d.mp4", "%m-%d~%H.mp4", "%p %A %Z-{nn}.mp4",
        "My %A.mp4", "%W/%M %S.mp4",
    ]

    private static let words = [
        "My wedding", "Wednesday", "master-cut", "Holidays", "Anna", "final", "FINAL (2)", "untitled", "Sunday",
        "March",
        "PM", "UTC", "clip", "2026", "2025-12-24", "07", "1", "0001", "cam-0001", "Monday", "Mon", "Apr", "April",
        "x~2",
        "Sunday~2", "Grandma's 90th", "Ærø", "日本", "a b c", "IMG_0001",
    ]

    /// A run of a recorder under clocks that the test sets: what ``Recorder`` does with its files, without pictures.
    private final class Run {
        let files: RecordingFiles
        let runFiles = RunFiles()
        let own: OwnRecordings
        let policy: RetentionPolicy

        init(
            _ pattern: String, _ folder: String, _ policy: RetentionPolicy, _ moment: RecordingMoment, boot: UInt64
        )
            throws
        {
            self.policy = policy
            files = try RecordingFiles(
                path: pattern, folder: folder, overwrite: false, makesMoreFiles: true, recorder: "rec", boot: boot,
                files: runFiles)
            own = OwnRecordings(
                files.pattern, holder: "recorder", companions: Sidecar.allCases, recorder: "rec", run: runFiles.id,
                boot: boot)
            _ = own.look(now: moment)
            files.lastMark = own.highestNumber
        }

        /// Removes what must go; returns it.
        func clean(_ current: OutputFile?, _ moment: RecordingMoment) -> [RetentionPolicy.File] {
            let found = own.look(except: current?.held.identity, now: moment)
            return policy.excess(found.own, writing: current?.size ?? 0).filter { own.remove($0, runFiles) == nil }
        }
    }

    private struct Neighbour: Equatable {
        var inode: UInt64
        var bytes: Data

        init?(_ path: String) {
            var status = stat()
            guard lstat(path, &status) == 0, let bytes = FileManager.default.contents(atPath: path) else { return nil }
            (inode, self.bytes) = (UInt64(status.st_ino), bytes)
        }
    }

    /// 200 files with other people's names, dates of the past and of the future, and recordings that were renamed or
    /// copied in; 40 patterns, each in three runs over which the clock is set and the machine starts anew.
    @Test(arguments: seeds) func removesOnlyItsOwnAndNothingTooEarly(seed: UInt64) throws {
        var random = SplitRandom(state: seed)
        let folder = try ScratchFolder()
        var neighbours: [String: Neighbour] = [:]
        // The true time; both clocks derive from it.
        var truth: Int64 = 1_790_000_000 * Self.second
        func foreign(_ name: String) throws {
            let path = folder.file(name)
            try FileManager.default.createDirectory(
                atPath: FileNames.folder(of: path), withIntermediateDirectories: true)
            guard !FileManager.default.fileExists(atPath: path) else { return }
            let form = [RecordingForm.mp4, .fragmentedMP4, .matroska].randomElement(using: &random)!
            // Another recorder's, in another folder, under this very name.
            let mark = RecordingMark(
                recorder: "rec", run: 1, number: Int64.random(in: 0..<1000, using: &random),
                file: FileNames.name(of: path),
                folder: 99, unixMilliseconds: truth / 1_000_000, clock: 5, boot: 1)
            let content: [UInt8] =
                switch Int.random(in: 0..<4, using: &random) {
                case 0: []
                case 1: Array("somebody's own".utf8)
                case 2: form.head(mark)
                default: Array(form.head(mark).dropLast(.random(in: 1..<200, using: &random)))
                }
            try Data(content).write(to: URL(fileURLWithPath: path))
            Self.date(path, truth + Int64.random(in: -400...400, using: &random) * 86_400 * Self.second)
            neighbours[name] = Neighbour(path)
        }
        for name in Self.words { try foreign("\(name).mp4") }
        for pattern in Self.patterns.shuffled(using: &random) where neighbours.count < 200 {
            for _ in 0..<5 where neighbours.count < 200 {
                let moment = truth + Int64.random(in: -300...300, using: &random) * 86_400 * Self.second
                try foreign(try FileNamePattern(pattern).path(at: moment, number: .random(in: 1...40, using: &random)))
            }
        }
        while neighbours.count < 200 {
            try foreign("\(Self.words.randomElement(using: &random)!) \(neighbours.count).mp4")
        }
        var removals = 0
        for pattern in Self.patterns {
            try runs(pattern, folder, &truth, &random, &neighbours, &removals)
            for (name, before) in neighbours {
                #expect(Neighbour(folder.file(name)) == before, "\(pattern), seed \(seed): '\(name)'")
            }
        }
        #expect(removals > 40 * 8, "own files are removed too: \(removals)")
    }

    private func runs(
        _ pattern: String, _ folder: ScratchFolder, _ truth: inout Int64, _ random: inout SplitRandom,
        _ neighbours: inout [String: Neighbour], _ removals: inout Int
    ) throws {
        // Seconds by which the wall clock is wrong, and the truth at the machine's start.
        var (wrong, boot, booted): (Int64, UInt64, Int64) = (0, 1, truth - 5000 * Self.second)
        let keepsByAge = Bool.random(using: &random)
        let policy = RetentionPolicy(seconds: keepsByAge ? 100 : nil, megabytes: keepsByAge ? nil : 0.05)
        /// The own files, in the order in which they were recorded, and when each was complete.
        var recorded: [(path: String, end: Int64)] = []
        var limitReached = 0
        for number in 0..<3 {
            func moment(_ truth: Int64) -> RecordingMoment {
                RecordingMoment(
                    up: truth - booted, wall: truth + wrong * Self.second, isSynchronised: false)
            }
            var run: Run? = try Run(pattern, folder.path, policy, moment(truth), boot: boot)
            func check(_ removed: [RetentionPolicy.File], _ what: String) {
                for file in removed {
                    removals += 1
                    guard let index = recorded.firstIndex(where: { $0.path == file.path }) else {
                        Issue.record("\(pattern): removed '\(file.path)', which is not its own (\(what))")
                        continue
                    }
                    let age = Double(truth - recorded[index].end) / 1e9
                    if keepsByAge { #expect(age > 100, "\(pattern): '\(file.path)' is \(age) s old (\(what))") }
                    if !keepsByAge { #expect(index == 0, "\(pattern): '\(file.path)' is not the oldest (\(what))") }
                    recorded.remove(at: index)
                }
                let kept = recorded.reduce(0) { $0 + (Self.size($1.path) ?? 0) }
                if !keepsByAge, !removed.isEmpty {
                    limitReached += 1
                    #expect(kept > 20_000, "\(pattern): only \(kept) bytes are kept (\(what))")
                }
            }
            for step in 0..<9 {
                let now = moment(truth)
                let file = try #require(try run?.files.make(at: now.wall, clock: now.up, made: now))
                check(run!.clean(file, now), "run \(number), file \(step)")
                truth += 10 * Self.second
                if step == 2 || step == 5 {
                    // Forward and backward, by hours, days and years.
                    wrong += [36_000, 172_800, 31_536_000, -36_000, -172_800, -7_200].randomElement(using: &random)!
                }
                truth += 5 * Self.second
                _ = [UInt8](repeating: 7, count: 8000).withUnsafeBytes { file.write($0) }
                try file.finish()
                let done = moment(truth)
                Self.date(file.path, done.wall)
                if let mark = file.mark { run!.own.complete(mark, at: done) }
                recorded.append((file.path, truth))
                check(run!.clean(nil, done), "run \(number), after file \(step)")
            }
            if keepsByAge {
                // What this run has recorded goes as soon as it may, whatever the clock says.
                #expect(
                    recorded.allSatisfy { truth - $0.end <= 120 * Self.second || $0.end < truth - 9 * 15 * Self.second }
                )
            }
            // Copies and renamed recordings are somebody's from now on.
            if let some = recorded.randomElement(using: &random)?.path, number < 2, neighbours.count < 400 {
                let copy = some.replacingOccurrences(of: ".mp4", with: "~\(9000 + neighbours.count).mp4")
                try FileManager.default.copyItem(atPath: some, toPath: copy)
                Self.date(copy, truth - 400 * 86_400 * Self.second)
                neighbours[String(copy.dropFirst(folder.path.count + 1))] = Neighbour(copy)
                if let index = recorded.indices.randomElement(using: &random) {
                    let old = recorded.remove(at: index).path
                    let new = old.replacingOccurrences(of: ".mp4", with: "~\(8000 + neighbours.count).mp4")
                    #expect(rename(old, new) == 0)
                    neighbours[String(new.dropFirst(folder.path.count + 1))] = Neighbour(new)
                }
            }
            run = nil
            truth += Int64.random(in: 1...30, using: &random) * Self.second
            if Bool.random(using: &random) {
                boot += 1
                booted = truth
                truth += 20 * Self.second
            }
        }
        if !keepsByAge { #expect(limitReached > 0) }
        // The next pattern may match these names.
        for entry in recorded { neighbours.removeValue(forKey: String(entry.path.dropFirst(folder.path.count + 1))) }
        for entry in recorded { unlink(entry.path) }
    }

    private static func size(_ path: String) -> Int64? {
        var status = stat()
        return stat(path, &status) == 0 ? Int64(status.st_size) : nil
    }

    private static func date(_ path: String, _ time: Int64) {
        let time = timespec(tv_sec: Int(time / second), tv_nsec: Int(time % second))
        var times = [time, time]
        utimensat(AT_FDCWD, path, &times, 0)
    }

    // MARK: What a recorder says

    @Test func tellsOfFilesWithoutItsMarkOnce() throws {
        let folder = try ScratchFolder()
        for number in 1...3 {
            try Data(count: 40_000).write(to: URL(fileURLWithPath: folder.file("a-0\(number).mp4")))
        }
        let recorder = try StageDriver(
            recording:
                #"{ "path": "\#(folder.file("a-{nn}.mp4"))", "segmentSeconds": 1, "keepMegabytes": 0.1, "finalize": "never" }"#,
            RecorderStreams.format())
        for unit in RecorderStreams.steady(250, bytes: 1000, isKey: { $0 % 25 == 0 }) { try recorder.send(unit) }
        try recorder.finish()
        // The recorder keeps as much of its own as without them.
        #expect(
            RecorderStreams.names(in: folder) == [
                "a-01.mp4", "a-02.mp4", "a-03.mp4", "a-11.mp4", "a-12.mp4", "a-13.mp4",
            ])
        let said = recorder.takeEvents().filter { $0.name == "recording-not-removed" }
        #expect(said.count == 1)
        #expect(said.first?.details["files"]?.asInt == 3 && said.first?.details["bytes"]?.asInt == 120_000)
        #expect(
            said.first?.text.contains("run `framehost recordings adopt \(folder.path)`") == true,
            "\(String(describing: said.first?.text))")
    }

    /// What a person protects stays, and is said once: it takes space.
    @Test func tellsOfWhatItMayNotRemoveOnce() throws {
        let folder = try ScratchFolder()
        func record(_ seconds: Int, _ options: String) throws -> [Event] {
            let recorder = try StageDriver(
                recording:
                    #"{ "path": "\#(folder.file("a-{n}.mp4"))", "segmentSeconds": 1, "finalize": "never"\#(options) }"#,
                RecorderStreams.format())
            for unit in RecorderStreams.steady(25 * seconds, bytes: 1000, isKey: { $0 % 25 == 0 }) {
                try recorder.send(unit)
            }
            try recorder.finish()
            return recorder.takeEvents().filter { $0.name == "recording-not-removed" }
        }
        #expect(try record(4, "").isEmpty)
        for name in ["a-1.mp4", "a-3.mp4"] { chmod(folder.file(name), 0o444) }
        let said = try record(4, #", "keepMegabytes": 0.02"#)
        #expect(["a-1.mp4", "a-3.mp4"].allSatisfy { RecorderStreams.names(in: folder).contains($0) })
        #expect(!RecorderStreams.names(in: folder).contains("a-2.mp4"))
        #expect(said.count == 1 && said.first?.level == .warning)
        #expect(said.first?.details["files"]?.asInt == 2 && said.first?.details["bytes"]?.asInt ?? 0 > 40_000)
        #expect(
            said.first?.text.contains("a-1.mp4' (and 1 more file, ") == true
                && said.first?.text.contains(
                    "it is write-protected. Recordings like this take space beyond the limit. To let it go, make it writable (chmod u+w)."
                ) == true, "\(String(describing: said.first?.text))")
    }

    @Test(arguments: [
        (FileRefusal.failed(EPERM), "lsattr, chattr -i"), (.failed(EACCES), "Give this user write permission"),
        (.failed(EROFS), "Mount it writable."), (.noLocks, "record to another file system"),
        (.isProtected, "chmod u+w"),
    ]) func saysWhatToDoAboutWhatStays(refusal: FileRefusal, remedy: String) {
        var kept = KeptRecordings()
        let order = RecordingOrder(number: 1, unixMilliseconds: 0, path: "a")
        let file = RetentionPolicy.File(path: "a", bytes: .max, age: 0, order: order)
        for other in [FileRefusal.readElsewhere, .absent, .failed(ENOENT)] { kept.add(file, other) }
        #expect(kept.text == nil && kept.count == 0)
        for _ in 0..<3 { kept.add(file, refusal) }
        #expect(kept.count == 3 && kept.bytes == .max)
        #expect(kept.text?.contains(remedy) == true && kept.text?.hasSuffix(".") == true, "\(kept.text ?? "")")
    }

    /// The folder of another machine, copied as a whole to the same place of this one.
    @Test func leavesTheRingOfAnotherMachineAlone() throws {
        let folder = try ScratchFolder()
        let runFiles = RunFiles()
        func files(_ machine: UInt64) throws -> RecordingFiles {
            try RecordingFiles(
                path: "a-{n}.mp4", folder: folder.path, overwrite: false, makesMoreFiles: true, recorder: "c/r",
                machine: machine, files: runFiles)
        }
        let pattern = try FileNamePattern("a-{n}.mp4").placed(in: folder.path)
        for (machine, isNamed) in [(UInt64(1), false), (2, true), (0, true)] {
            try files(machine).make(at: 0).finish()
            let own = OwnRecordings(
                pattern, holder: "recorder", companions: Sidecar.allCases, recorder: "c/r", run: 9, machine: 2)
            let moment = RecordingMoment(up: 0, wall: 0, isSynchronised: false)
            let found = own.look(now: moment)
            let name = folder.file("a-\(RecorderStreams.names(in: folder).count).mp4")
            #expect(found.own.contains { $0.path == name } == isNamed, "\(machine)")
            #expect(found.strangers.count == 1 && found.strangers.example == folder.file("a-1.mp4"))
        }
        // It replaces none of them either.
        let replacing = try RecordingFiles(
            path: "a-{n}.mp4", folder: folder.path, overwrite: true, makesMoreFiles: true, recorder: "c/r", machine: 2,
            files: RunFiles())
        #expect(try replacing.make(at: 0).path == folder.file("a-4.mp4"))
    }

    /// A further name in the ring, before or behind the own one in the folder's order, takes no file from its recorder.
    @Test(arguments: ["a-4.mp4", "a-99.mp4", "a-1~2.mp4"]) func knowsItsFileByAnyName(
        other: String
    ) throws {
        let folder = try ScratchFolder()
        let runFiles = RunFiles()
        let files = try RecordingFiles(
            path: "a-{n}.mp4", folder: folder.path, overwrite: false, makesMoreFiles: true, recorder: "c/r",
            files: runFiles)
        for _ in 0..<3 { try files.make(at: 0).finish() }
        let names = (1...3).map { folder.file("a-\($0).mp4") }
        // Of all three, so that one of them comes first in any order.
        let links = names.indices.map { folder.file(other.replacingOccurrences(of: ".mp4", with: "\($0).mp4")) }
        for (name, other) in zip(names, links) { #expect(link(name, other) == 0) }
        let own = OwnRecordings(
            files.pattern, holder: "recorder", companions: Sidecar.allCases, recorder: "c/r", run: runFiles.id)
        let found = own.look(now: .now())
        #expect(found.own.map(\.path).sorted() == names && found.strangers.count == 0)
        for file in found.own { #expect(own.remove(file, runFiles) == nil) }
        // The other name is somebody's, who keeps the recording.
        #expect(
            links.allSatisfy { FileIdentity(path: $0) != nil } && names.allSatisfy { FileIdentity(path: $0) == nil })
        let after = own.look(now: .now())
        #expect(after.own.isEmpty && after.strangers.count == 3)
    }

    /// Two recorders of one chain whose names meet in one folder: each counts and removes its own.
    @Test func countsNothingOfARecorderBesideIt() throws {
        let folder = try ScratchFolder()
        let recorders = try ["chain", "other"].map { name in
            try StageDriver(
                Recorder.self,
                options:
                    #"{ "path": "\#(folder.file("a-{n}.mp4"))", "segmentSeconds": 1, "keepMegabytes": 0.06, "finalize": "never" }"#,
                input: .encoded(RecorderStreams.format()), chainName: name)
        }
        for unit in RecorderStreams.steady(250, bytes: 1000, isKey: { $0 % 25 == 0 }) {
            for recorder in recorders { try recorder.send(unit) }
        }
        var removed: [[String]] = []
        for recorder in recorders {
            try recorder.finish()
            let events = recorder.takeEvents()
            let paths = { (name: String) in
                events.filter { $0.name == name }.compactMap { $0.details["path"]?.asString }
            }
            removed.append(paths("recording-removed"))
            #expect(Set(paths("recording-removed")).isSubset(of: paths("segment-did-start")))
        }
        #expect(removed.map(\.count) == [8, 8], "\(removed)")
        #expect(RecorderStreams.names(in: folder).count == 4)
    }

    /// However many newer files of others fit the pattern.
    @Test func countsOnBehindManyFilesOfOthers() throws {
        let folder = try ScratchFolder()
        func record() throws {
            let recorder = try StageDriver(
                recording: #"{ "path": "\#(folder.file("a-{n}.mp4"))", "finalize": "never" }"#,
                RecorderStreams.format())
            for unit in RecorderStreams.steady(3, isKey: { $0 == 0 }) { try recorder.send(unit) }
            try recorder.finish()
        }
        try record()
        Self.date(folder.file("a-1.mp4"), 1_000_000_000 * Self.second)
        for number in 2...400 {
            FileManager.default.createFile(atPath: folder.file("a-\(number).mp4"), contents: Data("somebody's".utf8))
        }
        try record()
        #expect(MarkedFile.marks(of: folder.file("a-401.mp4")).first?.number == 2)
    }

    // MARK: Overwriting

    /// `overwrite` replaces a file that a person named. A pattern fits files of others too.
    @Test(arguments: ["%Y", "{n}", "a-{nnnn}"], ["mp4", "mkv"]) func aPatternReplacesOnlyItsOwn(
        stem: String, ending: String
    ) throws {
        let folder = try ScratchFolder()
        func record() throws -> String {
            let recorder = try StageDriver(
                recording:
                    #"{ "path": "\#(folder.file("\(stem).\(ending)"))", "overwrite": true, "vtt": true, "finalize": "never" }"#,
                RecorderStreams.format())
            for unit in RecorderStreams.steady(3, isKey: { $0 == 0 }) { try recorder.send(unit) }
            try recorder.finish()
            return try #require(
                recorder.takeEvents().first { $0.name == "recording-did-start" }?.details["path"]?.asString)
        }
        let first = try record()
        // Its own, and what lies beside it.
        let inode = FileIdentity(path: first)
        #expect(try record() == first && FileIdentity(path: first) != inode)
        let captions = Sidecar.captions.path(beside: first)
        for content in [Data(), Data("somebody's".utf8), try Data(contentsOf: URL(fileURLWithPath: first)) + [0]] {
            try FileManager.default.removeItem(atPath: first)
            // A recording of this recorder that somebody has moved in is somebody's too.
            if content.count > 20 {
                var bytes = content
                let name = Array(FileNames.name(of: first).utf8)
                let place = try #require(bytes.firstRange(of: Data(name)))
                bytes[place.lowerBound] ^= 1
                try bytes.write(to: URL(fileURLWithPath: first))
            } else {
                try content.write(to: URL(fileURLWithPath: first))
            }
            let before = try Data(contentsOf: URL(fileURLWithPath: first))
            let subtitles = try Data(contentsOf: URL(fileURLWithPath: captions))
            #expect(try record() != first)
            #expect(try Data(contentsOf: URL(fileURLWithPath: first)) == before)
            #expect(try Data(contentsOf: URL(fileURLWithPath: captions)) == subtitles)
            for name in RecorderStreams.names(in: folder)
            where folder.file(name) != first && folder.file(name) != captions {
                try FileManager.default.removeItem(atPath: folder.file(name))
            }
        }
        // No recording, and captions that no recording says are its own.
        try FileManager.default.removeItem(atPath: first)
        for content in [Data(), try Data(contentsOf: URL(fileURLWithPath: captions))] {
            try content.write(to: URL(fileURLWithPath: captions))
            #expect(try record() != first)
            #expect(try Data(contentsOf: URL(fileURLWithPath: captions)) == content)
        }
    }

    /// A recorder that was killed before its first fragment leaves a mark, and so a file that is its own.
    @Test(arguments: ["mp4", "mov", "mkv"]) func marksEachFileBeforeAnythingElse(ending: String) throws {
        let folder = try ScratchFolder()
        let recorder = try StageDriver(
            recording: #"{ "path": "\#(folder.file("%Y-{n}.\(ending)"))" }"#, RecorderStreams.format())
        let units = RecorderStreams.steady(60) { $0 % 25 == 0 }
        try recorder.send(units[0])
        let name = try #require(RecorderStreams.names(in: folder).first)
        let mark = try #require(MarkedFile.marks(of: folder.file(name)).first)
        #expect(mark.file == name && mark.number == 1 && mark.run != 0)
        #expect(mark.folder == RecordingMark.fingerprint(ofFolder: folder.path))
        for unit in units.dropFirst() { try recorder.send(unit) }
        try recorder.finish()
        // It was finalised, and is still the same recording.
        #expect(MarkedFile.marks(of: folder.file(name)) == [mark])
        #expect(try RecorderStreams.packets(of: folder.file(name)).packets.count == 60)
        if ending != "mkv" {
            #expect(try RecorderFinaliseTests.boxes(folder.file(name)).prefix(3) == ["ftyp", "uuid", "free"])
            // What libavformat says of the file is what the file says.
            let bytes = try Data(contentsOf: URL(fileURLWithPath: folder.file(name)))
            let free = try #require(bytes.firstRange(of: Data("free".utf8))).lowerBound
            let size = Int(bytes[3])
            #expect(bytes[8..<size] == bytes[(free + 4)..<(free + size - 4)])
        }
    }

    @Test func countsOnFromRunToRun() throws {
        let folder = try ScratchFolder()
        for round in 0..<3 {
            let keep = round == 1 ? #", "keepMegabytes": 10"# : ""
            let recorder = try StageDriver(
                recording: #"{ "path": "\#(folder.file("a.mp4"))", "segmentSeconds": 1, "finalize": "never"\#(keep) }"#,
                RecorderStreams.format())
            for unit in RecorderStreams.steady(50, isKey: { $0 % 25 == 0 }) { try recorder.send(unit) }
            try recorder.finish()
        }
        let names = (1...6).map { "a-000\($0).mp4" }
        #expect(RecorderStreams.names(in: folder) == names)
        #expect(names.map { MarkedFile.marks(of: folder.file($0)).first?.number } == (1...6).map { Int64($0) })
    }

    /// The outputs of a batch are the same bytes whenever they are made; it knows them by its records.
    @Test func writesNoMarkInABatch() throws {
        let folder = try ScratchFolder()
        let runFiles = RunFiles()
        runFiles.isReproducible = true
        for isRing in [false, true] {
            let files = try RecordingFiles(
                path: "\(isRing)-{n}.mp4", folder: folder.path, overwrite: false, makesMoreFiles: true, isRing: isRing,
                files: runFiles)
            let file = try files.make(at: 0)
            #expect((file.mark != nil) == isRing && (file.size > 0) == isRing)
        }
    }

    // MARK: Names

    /// A recorder whose folder has any number of files of one name goes on behind the highest.
    @Test(arguments: ["%Y.mp4", "a-{n}.mp4"], [false, true]) func goesOnBehindManyFilesOfOneName(
        path: String, overwrite: Bool
    )
        throws
    {
        let folder = try ScratchFolder()
        let pattern = try FileNamePattern(path)
        func name(_ number: Int) -> String {
            pattern.hasNumber ? pattern.path(at: 0, number: number) : pattern.path(at: 0, number: 1, again: number)
        }
        for number in 1...10_050 {
            let file = open(folder.file(name(number)), O_CREAT | O_WRONLY, 0o444)
            #expect(file >= 0)
            close(file)
        }
        let files = try RecordingFiles(
            path: path, folder: folder.path, overwrite: overwrite, makesMoreFiles: true, files: RunFiles())
        #expect(try files.make(at: 0).path == folder.file(name(10_051)))
        #expect(try files.make(at: 0).path == folder.file(name(10_052)))
    }

    /// The highest number that counts is taken, and so is what follows it.
    @Test func goesOnBehindForgedNumbers() throws {
        let folder = try ScratchFolder()
        for number in 0..<20 {
            FileManager.default.createFile(atPath: folder.file("a-\(1_000_000_000_000 + number).mp4"), contents: nil)
        }
        let files = try RecordingFiles(
            path: "a-{n}.mp4", folder: folder.path, overwrite: false, makesMoreFiles: true, files: RunFiles())
        #expect(try files.make(at: 0).path == folder.file("a-1000000000020.mp4"))
    }
}
