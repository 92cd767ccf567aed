// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

@testable import FrameCore

/// A folder of a test's own.
private final class Folder {
    let path: String

    init() throws {
        path = FileManager.default.temporaryDirectory.appending(path: "files-\(UInt64.random(in: 0 ... .max))").path
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }

    subscript(_ name: String) -> String { "\(path)/\(name)" }
    func write(_ name: String, _ text: String = "old") throws {
        try Data(text.utf8).write(to: URL(filePath: self[name]))
    }
    func text(_ name: String) -> String? {
        FileManager.default.contents(atPath: self[name]).map { String(decoding: $0, as: UTF8.self) }
    }
    var names: [String] { (try? FileManager.default.contentsOfDirectory(atPath: path).sorted()) ?? [] }
    func status(_ name: String) -> stat {
        var status = stat()
        lstat(self[name], &status)
        return status
    }
}

@Suite struct RunFilesTests {
    private let folder = try! Folder()
    private let files = RunFiles()

    /// The kernel gives a removed file's inode to the next one. The list of held files knew it for a moment longer: a
    /// file that another thread made meanwhile was taken for one that somebody writes, and stayed.
    @Test func discardsAFileWhoseInodeWasAnothersAMomentAgo() throws {
        let left = Locked(0)
        let threads = try (0..<4).map { number in
            try TestThread("files \(number)") { [folder, files] in
                for _ in 0..<2000 {
                    guard let file = try? files.create(folder["\(number)"], as: "test") else {
                        left.withLock { $0 += 1 }
                        continue
                    }
                    files.discard(file)
                }
            }
        }
        for thread in threads { thread.join(within: 120) }
        #expect(left.withLock { $0 } == 0)
        #expect(folder.names == [])
    }

    // MARK: Files that are there when they are complete

    @Test func putsAFileWhereNothingIs() throws {
        try files.put(folder["a"], Array("one".utf8), replacing: nil, as: "test", syncs: true)
        #expect(folder.text("a") == "one" && folder.names == ["a"])
        #expect(files.hasMade(folder["a"]))
        symlink(folder["nowhere"], folder["link"])
        try folder.write("old")
        for name in ["a", "link", "old"] {
            let refusal = #expect(throws: FileRefusal.self) {
                try files.put(folder[name], Array("two".utf8), replacing: nil, as: "test")
            }
            #expect(refusal == (name == "link" ? .notRegular : .exists))
        }
        #expect(folder.text("a") == "one" && folder.text("old") == "old" && folder.names == ["a", "link", "old"])
        #expect(
            #expect(throws: FileRefusal.self) { try files.put(folder["no/x"], [1], replacing: nil, as: "test") }
                == .failed(ENOENT))
    }

    @Test func putsAFileInThePlaceOfTheOneThatIsMeant() throws {
        try folder.write("a")
        chmod(folder["a"], 0o640)
        let old = try #require(FileIdentity(path: folder["a"]))
        // Its reader keeps it.
        let reader = try #require(FileHandle(forReadingAtPath: folder["a"]))
        try files.put(folder["a"], Array("new".utf8), replacing: old, as: "test", isRenewed: true)
        #expect(folder.text("a") == "new" && folder.names == ["a"] && folder.status("a").st_mode & 0o777 == 0o640)
        #expect(!files.hasMade(folder["a"]))
        #expect(try reader.readToEnd() == Data("old".utf8))
        // Another one has the name now; and none.
        #expect(
            #expect(throws: FileRefusal.self) { try files.put(folder["a"], [1], replacing: old, as: "test") }
                == .changed)
        #expect(folder.text("a") == "new" && folder.names == ["a"])
        unlink(folder["a"])
        try files.put(folder["a"], Array("free".utf8), replacing: old, as: "test")
        #expect(folder.text("a") == "free" && folder.names == ["a"])
    }

    @Test func putsNothingInThePlaceOfWhatIsUsedOrProtected() throws {
        try folder.write("a")
        let identity = try #require(FileIdentity(path: folder["a"]))
        do {
            let reader = RunFiles.read(folder["a"], as: "reader")
            #expect(
                #expect(throws: FileRefusal.self) { try files.put(folder["a"], [1], replacing: identity, as: "test") }
                    == .readHere("reader"))
            reader?.close()
        }
        chmod(folder["a"], 0o444)
        #expect(
            #expect(throws: FileRefusal.self) { try files.put(folder["a"], [1], replacing: identity, as: "test") }
                == .isProtected)
        #expect(folder.text("a") == "old" && folder.names == ["a"])
    }

    // MARK: Whole files

    @Test func replacesARegularFileAndKeepsItsRights() throws {
        try folder.write("a")
        chmod(folder["a"], 0o640)
        let before = folder.status("a").st_ino
        #expect(files.write(folder["a"], "new", as: "t") == nil)
        #expect(folder.text("a") == "new" && folder.status("a").st_mode & 0o777 == 0o640)
        // A reader of the old one has it still.
        #expect(folder.status("a").st_ino != before)
        #expect(files.write(folder["a"], "again", as: "t") == nil)
        #expect(folder.text("a") == "again" && folder.names == ["a"])
        #expect(files.write(folder["b"], "first", as: "t") == nil && folder.text("b") == "first")
    }

    @Test(arguments: [true, false]) func followsALink(exists: Bool) throws {
        if exists { try folder.write("real") }
        symlink("real", folder["link"])
        symlink("link", folder["link2"])
        #expect(files.write(folder["link2"], "new", as: "t") == nil)
        #expect(folder.text("real") == "new" && folder.names == ["link", "link2", "real"])
        #expect(folder.status("link").st_mode & S_IFMT == S_IFLNK)
    }

    @Test func keepsFurtherNames() throws {
        try folder.write("a")
        link(folder["a"], folder["b"])
        #expect(files.write(folder["a"], "new", as: "t") == nil)
        #expect(folder.text("b") == "new" && folder.status("a").st_nlink == 2)
    }

    @Test func waitsForAPipesReaderUntilItIsToldToEnd() throws {
        mkfifo(folder["pipe"], 0o600)
        var looks = 0
        let begin = ChainClock.system.now()
        #expect(throws: FileRefusal.noReader) {
            _ = try files.rewrite(folder["pipe"], as: "t", patience: 3_000_000_000_000) {
                looks += 1
                return looks == 3
            }
        }
        #expect(looks == 3 && ChainClock.system.now() - begin >= 40_000_000)
    }

    @Test func writesIntoAPipe() throws {
        mkfifo(folder["pipe"], 0o600)
        #expect(files.write(folder["pipe"], "x", as: "t") == .noReader)
        let reader = open(folder["pipe"], O_RDONLY | O_NONBLOCK)
        defer { close(reader) }
        #expect(files.write(folder["pipe"], "figures", as: "t") == nil)
        var buffer = [UInt8](repeating: 0, count: 100)
        let count = read(reader, &buffer, 100)
        #expect(String(decoding: buffer.prefix(max(count, 0)), as: UTF8.self) == "figures")
        #expect(folder.status("pipe").st_mode & S_IFMT == S_IFIFO && folder.names == ["pipe"])
    }

    /// Devices of the test's own (as root): the full one says so, and both are there afterwards.
    @Test func writesIntoADevice() throws {
        guard geteuid() == 0, mknod(folder["full"], S_IFCHR | 0o666, 1 << 8 | 7) == 0,
            mknod(folder["null"], S_IFCHR | 0o666, 1 << 8 | 3) == 0
        else { return print("RunFilesTests.writesIntoADevice: not run, this user makes no devices") }
        let probe = open(folder["null"], O_WRONLY)
        if probe < 0 { return print("RunFilesTests.writesIntoADevice: not run, this file system has no devices") }
        close(probe)
        symlink("full", folder["link"])
        #expect(files.write(folder["null"], "x", as: "t") == nil)
        #expect(files.write(folder["full"], "x", as: "t") == .failed(ENOSPC))
        #expect(files.write(folder["link"], "x", as: "t") == .failed(ENOSPC))
        #expect(["full", "null"].allSatisfy { folder.status($0).st_mode & S_IFMT == S_IFCHR })
        #expect(folder.names == ["full", "link", "null"])
    }

    @Test func leavesNothingWhereItFails() throws {
        #expect(files.write(folder["no/a"], "x", as: "t") == .failed(ENOENT))
        #expect(files.write(folder.path, "x", as: "t") == .isFolder)
        try folder.write("held")
        let reader = RunFiles.read(folder["held"], as: "clip")
        #expect(files.write(folder["held"], "x", as: "t") == .readHere("clip"))
        #expect(files.refusalOfWriting(folder["held"]) == .readHere("clip"))
        _ = reader
        #expect(folder.text("held") == "old" && folder.names == ["held"])
    }

    // MARK: Names that belong to somebody

    @Test func neverReplacesWhatTheRunHasMade() throws {
        let first = try files.create(folder["a"], as: "r")
        #expect(throws: FileRefusal.writtenHere("r")) { _ = try files.replace(folder["a"], as: "r") }
        first.close()
        #expect(throws: FileRefusal.isOwn) { _ = try files.replace(folder["a"], as: "r") }
        // Nor may a run beside it, until this one has ended (MadeFilesTests).
        #expect(throws: FileRefusal.isOwn) { _ = try RunFiles().replace(folder["a"], as: "other") }
        #expect(folder.names == ["a"])
    }

    @Test func leavesWhatIsReadUnderWhateverName() throws {
        try folder.write("a")
        link(folder["a"], folder["hard"])
        symlink("a", folder["soft"])
        let reader = RunFiles.read(folder["soft"], as: "clip")
        for name in ["a", "hard"] {
            #expect(files.remove(folder[name], as: "r") == .readHere("clip"))
            #expect(throws: FileRefusal.readHere("clip")) { _ = try files.replace(folder[name], as: "r") }
        }
        #expect(files.remove(folder["soft"], as: "r") == .notRegular)
        reader?.close()
        #expect(files.remove(folder["a"], as: "r") == nil && folder.text("hard") == "old")
    }

    /// As another program's: locks of descriptors that this list knows nothing of.
    @Test func leavesWhatOthersLock() throws {
        try folder.write("a")
        let other = open(folder["a"], O_RDONLY)
        defer { close(other) }
        flock(other, LOCK_SH)
        #expect(files.remove(folder["a"], as: "r") == .readElsewhere)
        flock(other, LOCK_EX)
        #expect(files.remove(folder["a"], as: "r") == .writtenElsewhere)
        #expect(throws: FileRefusal.writtenElsewhere) { _ = try files.rewrite(folder["a"], as: "t") }
        #expect(folder.text("a") == "old")
        flock(other, LOCK_UN)
        #expect(files.remove(folder["a"], as: "r") == nil)
    }

    /// A reader tells the locks of other programs; what they remove asks for them.
    @Test func locksWhatItReads() throws {
        try folder.write("a")
        let reader = RunFiles.read(folder["a"], as: "clip")
        let other = open(folder["a"], O_RDONLY)
        defer { close(other) }
        #expect(flock(other, LOCK_EX | LOCK_NB) != 0 && flock(other, LOCK_SH | LOCK_NB) == 0)
        flock(other, LOCK_UN)
        reader?.close()
        #expect(flock(other, LOCK_EX | LOCK_NB) == 0)
    }

    /// With all descriptors in use nothing can be found out, so nothing is removed.
    @Test func removesNothingWithoutADescriptor() async {
        await #expect(processExitsWith: .success) {
            let path = "\(NSTemporaryDirectory())/emfile-\(getpid())"
            try Data("old".utf8).write(to: URL(filePath: path))
            defer { unlink(path) }
            var limit = rlimit(rlim_cur: 64, rlim_max: 64)
            setrlimit(__rlimit_resource_t(7), &limit)
            var taken: [Int32] = []
            while case let file = dup(2), file >= 0 { taken.append(file) }
            let refusal = RunFiles().remove(path, as: "r")
            for file in taken { close(file) }
            #expect(!taken.isEmpty && refusal == .unknown(EMFILE) && access(path, F_OK) == 0)
        }
    }

    @Test func discardsOnlyItsOwn() throws {
        let mine = try files.create(folder["a"], as: "r")
        rename(folder["a"], folder["moved"])
        try folder.write("a", "somebody's")
        files.discard(mine)
        #expect(folder.text("a") == "somebody's" && folder.names == ["a", "moved"])
        let second = try files.create(folder["b"], as: "r")
        files.discard(second)
        #expect(folder.names == ["a", "moved"])
    }

    @Test func exchangesOnlyTheFileThatWasMeant() throws {
        let recording = try files.create(folder["a"], as: "r")
        recording.close()
        let copy = try files.create(folder["copy"], as: "r")
        rename(folder["a"], folder["moved"])
        try folder.write("a", "somebody's")
        #expect(files.exchange(copy, over: folder["a"], meant: recording.identity, own: nil) == .changed)
        #expect(files.exchange(copy, over: folder["a"], meant: nil, own: nil) == .exists)
        #expect(folder.text("a") == "somebody's")
        #expect(files.exchange(copy, over: folder["moved"], meant: recording.identity, own: nil) == nil)
        #expect(copy.path == folder["moved"] && folder.names == ["a", "moved"])
        #expect(files.exchange(copy, over: folder["b"], meant: nil, own: nil) == nil && folder.names == ["a", "b"])
    }

    @Test func emptiesOnlyWhatNobodyUses() throws {
        try folder.write("a", "long before")
        let lines = try files.rewrite(folder["a"], as: "face")
        #expect(folder.text("a") == "")
        #expect(throws: FileRefusal.writtenHere("face")) { _ = try files.rewrite(folder["a"], as: "other") }
        lines.close()
        chmod(folder["a"], 0o444)
        #expect(throws: FileRefusal.isProtected) { _ = try files.rewrite(folder["a"], as: "other") }
    }

    @Test func letsGoOfEverything() throws {
        try folder.write("a")
        let before = HeldFiles.shared.count
        do {
            let held = [RunFiles.read(folder["a"], as: "x"), RunFiles.read(folder["a"], as: "y")]
            #expect(held.count == 2)
            #expect(files.remove(folder["a"], as: "r") != nil)
            withExtendedLifetime(held) {}
        }
        #expect(files.remove(folder["a"], as: "r") == nil && folder.names == [])
        #expect(HeldFiles.shared.count <= before + 20)
    }

    @Test func namesItsTemporaryFiles() {
        let name = FileNames.temporary(for: "/x/a.mp4")
        #expect(name == "/x/.a.mp4.\(getpid()).new" && FileNames.temporary(for: "/a") == "/.a.\(getpid()).new")
        #expect(FileNames.temporary(for: "/x/a.mp4", again: 2) == "/x/.a.mp4.\(getpid())-2.new")
    }

    /// A program that is killed leaves no file without its first bytes.
    @Test func aFileHasItsFirstBytesBeforeItsName() throws {
        var names: [[String]] = []
        func make(_ name: String) throws -> HeldFile {
            try files.create(folder[name], as: "t") { file in
                names.append(folder.names)
                #expect(Array("mine".utf8).withUnsafeBytes { file.write($0) } == 0)
            }
        }
        var file: HeldFile? = try make("a")
        #expect(names == [[]] && folder.text("a") == "mine" && file?.hasItsName == true && files.hasMade(folder["a"]))
        #expect(RunFiles().remove(folder["a"], as: "r") == .writtenHere("t"))
        #expect(throws: FileRefusal.exists) { _ = try make("a") }
        symlink("nowhere", folder["link"])
        #expect(throws: FileRefusal.exists) { _ = try make("link") }
        #expect(throws: FileRefusal.failed(ENOENT)) { _ = try make("no/a") }
        #expect(folder.names == ["a", "link"])
        file = nil
        // One of which nothing is left.
        files.discard(try make("b"))
        #expect(folder.names == ["a", "link"])
    }

    /// What has the name of a temporary file may be anybody's, also where an earlier program of this number left it.
    @Test func leavesWhatHasTheNameOfATemporaryFile() throws {
        let temporary = FileNames.name(of: FileNames.temporary(for: folder["a"]))
        try folder.write(temporary, "")
        try folder.write("a")
        #expect(files.write(folder["a"], "new", as: "t") == nil)
        #expect(folder.text("a") == "new" && folder.text(temporary) == "" && folder.names == [temporary, "a"])
        try folder.write("b")
        try files.replace(folder["b"], as: "t").close()
        #expect(folder.text("b") == "" && folder.names == [temporary, "a", "b"])
        let other = FileIdentity(path: folder["a"])
        #expect(throws: FileRefusal.changed) { try RunFiles().replace(folder["b"], meant: other, as: "t") }
    }
}
