// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Foundation
import Testing

@testable import Recorder
@testable import Recordings

@Suite struct RecorderNamingTests {
    /// 2026-11-21 13:43:55.25 in this machine's time zone.
    static let moment: Int64 = {
        var parts = tm()
        (parts.tm_year, parts.tm_mon, parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec) = (
            126, 10, 21, 13, 43, 55
        )
        parts.tm_isdst = -1
        return Int64(mktime(&parts)) * 1_000_000_000 + 250_000_000
    }()

    @Test(arguments: [
        ("a.mp4", "a.mp4"), ("/x/y/a.mp4", "/x/y/a.mp4"), ("/a.mp4", "/a.mp4"),
        ("%Y-%m-%d_%H-%M-%S.mp4", "2026-11-21_13-43-55.mp4"), ("%F/%T.MKV", "2026-11-21/13:43:55.MKV"),
        ("/rec/%Y/%m/cam %H.%f.mov", "/rec/2026/11/cam 13.250000.mov"), ("a-{n}.mp4", "a-7.mp4"),
        ("a-{nnn}-%y.mp4", "a-007-26.mp4"),
        ("100%%.mp4", "100%.mp4"), ("{x}{}.mp4", "{x}{}.mp4"), ("ä/ö-%d.mp4", "ä/ö-21.mp4"), ("%j.mp4", "325.mp4"),
    ]) func writesTimesAndNumbers(pattern: String, path: String) throws {
        let pattern = try FileNamePattern(pattern)
        #expect(pattern.path(at: Self.moment, number: 7) == path)
        let name = String(path.split(separator: "/").last!)
        #expect(pattern.number(ofName: name) == (pattern.hasNumber ? 7 : 0))
        let again = pattern.path(at: Self.moment, number: 7, again: 2)
        #expect(
            again != path
                && pattern.number(ofName: String(again.split(separator: "/").last!)) == (pattern.hasNumber ? 7 : 0))
    }

    @Test func knowsOnlyItsOwnNames() throws {
        let time = try FileNamePattern("cam-%Y-%m.mp4")
        for name in [
            "cam-2026-1.mp4", "cam-2026-11.mkv", "cam-2026-11.mp4.bak", "xcam-2026-11.mp4", "cam-2026-11-2.mp4",
            "cam-2026-11~1.mp4",
            "cam-2026-11~02.mp4", ".cam-2026-11.mp4.finalising", "cam-abcd-11.mp4", "cam-2026-11 .mp4",
            "cam-2026-11~.mp4", ".mp4", "",
        ] {
            #expect(time.number(ofName: name) == nil, "\(name)")
        }
        let number = try FileNamePattern("a-{nnn}.mp4")
        for name in ["a-07.mp4", "a-0007.mp4", "a-.mp4", "a-1e2.mp4", "a-007-.mp4", "a-99999999999999999999.mp4"] {
            #expect(number.number(ofName: name) == nil, "\(name)")
        }
        #expect(number.number(ofName: "a-1234.mp4") == 1234)
    }

    @Test func saysWhatIsNoPattern() {
        func text(_ path: String) -> String {
            do throws(OptionFault) {
                _ = try FileNamePattern(path)
                return ""
            } catch { return "\(error.what). \(error.remedy)" }
        }
        let remedy = "Use patterns such as %Y %m %d %H %M %S, %F %T %s %f (microseconds), or %% for a percent sign."
        #expect(text("50%.mp4") == "'%.' in '50%.mp4' is not a time pattern. \(remedy)")
        #expect(text("%Q.mp4") == "'%Q' in '%Q.mp4' is not a time pattern. \(remedy)")
        #expect(text("%D.mp4") == "'%D' in '%D.mp4' is not a time pattern. \(remedy)")
        #expect(
            text("{n}{n}.mp4")
                == "'{n}{n}.mp4' may have {n} only once, in the file's name and not in a folder's. Write {n} once, in the file's name."
        )
        #expect(
            text("{n}/a.mp4")
                == "'{n}/a.mp4' may have {n} only once, in the file's name and not in a folder's. Write {n} once, in the file's name."
        )
        let nameless = "must have a name before its ending. Write a name before the ending, such as out.mp4."
        #expect(text(".mp4") == "'.mp4' \(nameless)")
        #expect(text("a/.mp4") == "'a/.mp4' \(nameless)")
    }

    @Test func countsOnAfterTheHighestNumber() throws {
        let folder = try ScratchFolder()
        for name in ["a-002.mp4", "a-009.mp4", "b-100.mp4", "a-12.mp4"] {
            FileManager.default.createFile(atPath: folder.file(name), contents: nil)
        }
        let files = try RecordingFiles(
            path: "a-{nnn}.mp4", folder: folder.path, overwrite: false, makesMoreFiles: true, files: RunFiles())
        #expect(try files.make(at: 0).path == folder.file("a-010.mp4"))
        FileManager.default.createFile(atPath: folder.file("a-011.mp4"), contents: nil)
        #expect(try files.make(at: 0).path == folder.file("a-012.mp4"))
    }

    @Test func neverReplacesUnlessTold() throws {
        let folder = try ScratchFolder()
        do {
            let times = try RecordingFiles(
                path: "%Y.mp4", folder: folder.path, overwrite: false, makesMoreFiles: true, files: RunFiles())
            let paths = try (0..<3).map { _ in try times.make(at: Self.moment).path }
            #expect(paths == ["2026.mp4", "2026~2.mp4", "2026~3.mp4"].map(folder.file))
        }

        // Told so, it replaces what it has recorded before, but neither somebody's nor what it has just written.
        try Data("old".utf8).write(to: URL(fileURLWithPath: folder.file("2026.mp4")))
        let replacing = try RecordingFiles(
            path: "%Y.mp4", folder: folder.path, overwrite: true, makesMoreFiles: true, files: RunFiles())
        let old = FileIdentity(path: folder.file("2026~2.mp4"))
        let paths = try (0..<3).map { _ in try replacing.make(at: Self.moment).path }
        #expect(paths == ["2026~2.mp4", "2026~3.mp4", "2026~4.mp4"].map(folder.file))
        #expect(FileIdentity(path: paths[0]) != old)
        #expect(try Data(contentsOf: URL(fileURLWithPath: folder.file("2026.mp4"))) == Data("old".utf8))
    }

    @Test func putsANumberIntoAPlainName() throws {
        let folder = try ScratchFolder()
        let segments = try RecordingFiles(
            path: "a.mp4", folder: folder.path, overwrite: false, makesMoreFiles: true, files: RunFiles())
        #expect(
            try (0..<2).map { _ in try segments.make(at: 0).path } == ["a-0001.mp4", "a-0002.mp4"].map(folder.file))
        let single = try RecordingFiles(
            path: "b.mp4", folder: folder.path, overwrite: false, makesMoreFiles: false, files: RunFiles())
        #expect(
            try (0..<3).map { _ in try single.make(at: 0).path }
                == ["b.mp4", "b-0002.mp4", "b-0003.mp4"].map(folder.file))
    }

    @Test func makesTheFoldersOfItsPattern() throws {
        let folder = try ScratchFolder()
        let files = try RecordingFiles(
            path: "%Y/day %d/%H.mp4", folder: folder.path, overwrite: false, makesMoreFiles: true, files: RunFiles())
        #expect(files.fault == nil)
        #expect(try files.make(at: Self.moment).path == folder.file("2026/day 21/13.mp4"))
        let missing = try RecordingFiles(
            path: "no/%Y/%H.mp4", folder: folder.path, overwrite: false, makesMoreFiles: true, files: RunFiles())
        let text = "the folder '\(folder.file("no"))' does not exist. Create it, or correct 'path'."
        #expect(missing.fault?.description == text)
        #expect(throws: FrameHostError.self) { try missing.make(at: Self.moment) }
        #expect(!FileManager.default.fileExists(atPath: folder.file("no")))
    }

    /// Two recorders of one path: a lock tells them of each other, in one process as between two.
    @Test func doesNotReplaceWhatIsBeingWritten() throws {
        let folder = try ScratchFolder()
        var first: OutputFile? = try RecordingFiles(
            path: "a.mp4", folder: folder.path, overwrite: true, makesMoreFiles: false, files: RunFiles()
        ).make(at: 0)
        let path = folder.file("a.mp4")
        let second = try RecordingFiles(
            path: "a.mp4", folder: folder.path, overwrite: true, makesMoreFiles: false, files: RunFiles())
        let error = #expect(throws: FrameHostError.self) { try second.make(at: 0) }
        #expect(
            error?.description
                == "'\(path)' is being written by another recorder. Give each recorder its own 'path'.")
        try first?.finish()
        // A chain that still runs keeps what it has recorded.
        #expect(throws: FrameHostError.self) { try second.make(at: 0) }
        #expect(second.fault != nil)
        first = nil
        #expect(try second.make(at: 0).path == path)
    }
}

@Suite struct RecorderRetentionTests {
    private func file(_ name: String, _ bytes: Int64, at seconds: Int64) -> RetentionPolicy.File {
        RetentionPolicy.File(
            path: name, bytes: bytes, age: (40 - seconds) * 1_000_000_000,
            order: RecordingOrder(number: seconds, unixMilliseconds: 0, path: name))
    }

    @Test func removesTheOldestFirst() {
        let files = [file("c", 400_000, at: 30), file("a", 400_000, at: 10), file("b", 400_000, at: 20)]
        func removed(_ seconds: Double?, _ megabytes: Double?, writing: Int64 = 0) -> [String] {
            RetentionPolicy(seconds: seconds, megabytes: megabytes).excess(files, writing: writing).map(\.path)
        }
        #expect(removed(25, nil) == ["a"])
        #expect(removed(nil, 1) == ["a"])
        #expect(removed(nil, 1, writing: 300_000) == ["a", "b"])
        #expect(removed(nil, 1.2) == [])
        #expect(removed(5, 0.1) == ["a", "b", "c"])
    }

    @Test func sumsWhateverFilesSay() {
        let files = (0..<4).map { file("\($0)", .max, at: 0) }
        #expect(RetentionPolicy(seconds: nil, megabytes: 1).excess(files, writing: .max).count == 1)
        #expect(RetentionPolicy(seconds: 1, megabytes: 1).excess(files, writing: .max).count == 4)
    }

    private static let start = RecordingMoment(up: 0, wall: 0, isSynchronised: false)

    @Test func findsOnlyFilesOfItsPattern() throws {
        let folder = try ScratchFolder()
        let manager = FileManager.default
        let files = RunFiles()
        for name in [
            "2026-01/a-1.mp4", "2026-01/a-2.mp4", "2026-01/notes.txt", "2026-01/a-1.mp4.bak", "2026-1/a-1.mp4",
            "a-1.mp4", "else/a-1.mp4",
        ] {
            let path = folder.file(name)
            try manager.createDirectory(
                atPath: FileNames.folder(of: path), withIntermediateDirectories: true)
            let mark = RecordingMark(
                recorder: "r", run: files.id, number: 1, file: FileNames.name(of: path),
                folder: RecordingMark.fingerprint(ofFolder: FileNames.folder(of: path)), unixMilliseconds: 0, clock: 0,
                boot: 0)
            try Data(RecordingForm.mp4.head(mark) + [UInt8](repeating: 0, count: 100)).write(
                to: URL(fileURLWithPath: path))
        }
        try Data("somebody's".utf8).write(to: URL(fileURLWithPath: folder.file("2026-01/a-7.mp4")))
        // Neither a link to a file nor one to a folder is ours.
        try manager.createSymbolicLink(
            atPath: folder.file("2026-01/a-3.mp4"), withDestinationPath: folder.file("a-1.mp4"))
        try manager.createSymbolicLink(atPath: folder.file("2026-02"), withDestinationPath: folder.file("else"))
        let pattern = try FileNamePattern("%Y-%m/a-{n}.mp4").placed(in: folder.path)
        let own = OwnRecordings(pattern, holder: "recorder", companions: Sidecar.allCases, recorder: "r", run: files.id)
        let found = own.look(now: Self.start)
        #expect(Set(found.own.map(\.path)) == Set(["2026-01/a-1.mp4", "2026-01/a-2.mp4"].map(folder.file)))
        #expect(found.strangers.count == 1 && found.strangers.example == folder.file("2026-01/a-7.mp4"))
        let other = OwnRecordings(
            pattern, holder: "recorder", companions: Sidecar.allCases, recorder: "other", run: files.id)
        #expect(other.look(now: Self.start).own.isEmpty)

        // Its content changes under its name: it is somebody's.
        let replaced = try #require(found.own.first { $0.path.hasSuffix("a-2.mp4") })
        let handle = try FileHandle(forWritingTo: URL(fileURLWithPath: replaced.path))
        try handle.write(contentsOf: Data("somebody's".utf8))
        try handle.close()
        for file in found.own { #expect(own.remove(file, files) == (file == replaced ? .changed : nil)) }
        // The folder has other things in it and stays.
        #expect(manager.fileExists(atPath: folder.file("2026-01/notes.txt")))
        #expect(manager.fileExists(atPath: folder.file("else/a-1.mp4")))
        #expect(manager.fileExists(atPath: replaced.path))
    }

    @Test func removesFoldersThatAreEmpty() throws {
        let folder = try ScratchFolder()
        let runFiles = RunFiles()
        let files = try RecordingFiles(
            path: "%Y/%m/a.mp4", folder: folder.path, overwrite: false, makesMoreFiles: true, recorder: "r",
            files: runFiles)
        let made = try files.make(at: RecorderNamingTests.moment)
        let own = OwnRecordings(
            files.pattern, holder: "recorder", companions: Sidecar.allCases, recorder: "r", run: runFiles.id)
        let found = own.look(now: Self.start).own
        #expect(found.map(\.path) == [made.path])
        // Not while it is written.
        #expect(own.remove(found[0], runFiles) == .writtenHere("recorder"))
        try made.finish()
        #expect(own.remove(found[0], runFiles) == nil)
        #expect(FolderListing.names(in: folder.path) == [])
    }
}

@Suite struct RecorderRingTests {
    private func unit(_ number: Int64, key: Bool) throws -> RecordedUnit {
        RecordedUnit(
            pts: RecorderStateTests.ms(number * 100), dts: RecorderStateTests.ms(number * 100),
            duration: RecorderStateTests.ms(100),
            capturedAt: 0, sequenceNumber: UInt64(number), orientation: .up, isKeyframe: key)
    }

    private func content(_ ring: PreEventRing) -> [UInt64] {
        var numbers: [UInt64] = []
        ring.forEach { unit, bytes in
            numbers.append(unit.sequenceNumber)
            #expect(bytes.allSatisfy { $0 == UInt8(truncatingIfNeeded: unit.sequenceNumber) })
        }
        return numbers
    }

    private func fill(_ ring: PreEventRing, _ numbers: Range<Int64>, group: Int64, bytes: Int) throws {
        for number in numbers {
            let payload = [UInt8](repeating: UInt8(truncatingIfNeeded: number), count: bytes)
            try payload.withUnsafeBytes { ring.add(try unit(number, key: number % group == 0), $0) }
        }
    }

    /// A keyframe a second: two seconds before 3.5 s is 1.5 s, and the keyframe before that is at 1 s.
    @Test func keepsFromTheKeyframeBefore() throws {
        let ring = PreEventRing(seconds: 2, byteCapacity: 10_000, unitCapacity: 100)
        try fill(ring, 3..<36, group: 10, bytes: 20)
        #expect(content(ring) == Array(10...35))
        #expect(ring.begin == RecorderStateTests.ms(1000))
        #expect(ring.lack == nil)
    }

    @Test func beginsWithAKeyframe() throws {
        let ring = PreEventRing(seconds: 2, byteCapacity: 10_000, unitCapacity: 100)
        try fill(ring, 3..<10, group: 10, bytes: 20)
        #expect(ring.isEmpty && ring.end == nil)
    }

    @Test(arguments: [(500, 100), (10_000, 25)]) func letsTheOldestGroupGoWhenItIsFull(bytes: Int, units: Int) throws {
        let ring = PreEventRing(seconds: 60, byteCapacity: bytes, unitCapacity: units)
        for upTo in stride(from: Int64(1), to: 100, by: 1) {
            try fill(ring, (upTo - 1)..<upTo, group: 10, bytes: 20)
            let numbers = content(ring)
            #expect(numbers.first! % 10 == 0)
            #expect(numbers == Array(numbers.first!...UInt64(upTo - 1)))
        }
        #expect(ring.lack == PreEventRing.Lack(isOfBytes: bytes == 500, isOfOneGroup: false))
        #expect(content(ring).count > 10)
    }

    /// A group that is larger than all memory leaves nothing, since its rest cannot be decoded; the next one is taken
    /// again.
    @Test func survivesGroupsThatNeverFit() throws {
        let ring = PreEventRing(seconds: 60, byteCapacity: 100, unitCapacity: 100)
        try fill(ring, 0..<10, group: 10, bytes: 20)
        #expect(ring.isEmpty && ring.lack == PreEventRing.Lack(isOfBytes: true, isOfOneGroup: true))
        try fill(ring, 10..<13, group: 10, bytes: 20)
        #expect(content(ring) == [10, 11, 12])
        try fill(ring, 13..<14, group: 10, bytes: 101)
        #expect(ring.isEmpty)
    }

    @Test func holdsRandomStreams() throws {
        var random = SystemRandomNumberGenerator()
        for _ in 0..<200 {
            let ring = PreEventRing(
                seconds: Double.random(in: 0.1...5), byteCapacity: .random(in: 50...3000),
                unitCapacity: .random(in: 3...80))
            for number in 0..<Int64(120) {
                let payload = [UInt8](repeating: UInt8(number), count: .random(in: 0...90, using: &random))
                try payload.withUnsafeBytes {
                    ring.add(try unit(number, key: number == 0 || .random(in: 0..<6) == 0), $0)
                }
                var before: UInt64?
                ring.forEach { unit, bytes in
                    #expect(bytes.allSatisfy { $0 == UInt8(unit.sequenceNumber) })
                    #expect(before == nil ? unit.isKeyframe : unit.sequenceNumber == before! + 1)
                    before = unit.sequenceNumber
                }
                #expect(before == nil || before == UInt64(number))
            }
        }
    }
}
