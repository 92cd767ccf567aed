// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

@testable import FrameCore

@Suite struct RecordingMarkTests {
    private static let forms: [RecordingForm] = [.fragmentedMP4, .mp4, .mov, .matroska]

    private func mark(
        _ file: String = "cam-0001.mp4", folder: UInt64 = 7, recorder: String = "rec", machine: UInt64 = 0
    ) -> RecordingMark {
        RecordingMark(
            recorder: recorder, run: .max, number: 12, file: file, folder: folder, unixMilliseconds: 1_790_000_000_123,
            clock: 4_711_000_000_001, boot: 0xFEDC_BA98_7654_3210, sidecars: [".vtt"], machine: machine,
            made: RecordingMoment(up: 1 << 59 | 1, wall: 1_790_000_000_456_789_012, isSynchronised: true))
    }

    private func scratch() throws -> String {
        let folder = FileManager.default.temporaryDirectory.appending(path: "mark-\(UInt64.random(in: 0 ... .max))")
            .path
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        return folder
    }

    /// Whatever ends the recorder: as soon as a file has the bytes of its mark, it says whose it is.
    @Test(arguments: forms) func everyPrefixHasTheMark(form: RecordingForm) throws {
        let folder = try scratch()
        defer { try? FileManager.default.removeItem(atPath: folder) }
        for name in ["a.mp4", "Ä \"\\\n\u{7}.mp4", String(repeating: "x", count: 250) + ".mp4"] {
            let mark = mark(name)
            let head = form.head(mark)
            #expect(!head.isEmpty && head.count < RecordingForm.mostBytes)
            let whole = head + (0..<6000).map { UInt8(truncatingIfNeeded: $0 &* 7) }
            let path = folder + "/file"
            for count in [head.count, head.count + 1, head.count + 1000, whole.count] {
                try Data(whole[..<count]).write(to: URL(filePath: path))
                #expect(MarkedFile.marks(of: path) == [mark], "\(form), \(count) bytes")
            }
            // In Matroska five bytes follow the mark.
            for count in stride(from: 0, to: head.count - 5, by: 7) {
                #expect(RecordingForm.mark(atStartOf: Array(whole[..<count])) == nil)
            }
        }
    }

    /// A JPEG of SOI, JFIF, a comment and EOI; a PNG of IHDR and IEND.
    private static let pictures: [[UInt8]] = [
        [0xFF, 0xD8, 0xFF, 0xE0, 0, 4, 1, 2, 0xFF, 0xE1, 0, 3, 9, 0xFF, 0xFE, 0, 3, 7, 0xFF, 0xD9],
        [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A, 0, 0, 0, 13] + Array("IHDR".utf8)
            + [UInt8](repeating: 1, count: 17) + [0, 0, 0, 0] + Array("IEND".utf8) + [0xAE, 0x42, 0x60, 0x82],
    ]

    @Test(arguments: pictures) func picturesCarryTheMarkBehindTheirFirstPart(file: [UInt8]) throws {
        let folder = try scratch()
        defer { try? FileManager.default.removeItem(atPath: folder) }
        for name in ["a.jpg", String(repeating: "x", count: 250) + ".png"] {
            let mark = mark(name)
            let marked = try #require(MarkedPicture.file(file, with: mark))
            let place = file[0] == 0xFF ? 13 : 33
            #expect(marked.starts(with: file[..<place]) && marked.suffix(file.count - place) == file[place...])
            try Data(marked).write(to: URL(filePath: folder + "/file"))
            #expect(MarkedFile.marks(of: folder + "/file") == [mark])
            // Any part of it has the mark, or none.
            for count in 0..<marked.count {
                let found = MarkedPicture.mark(atStartOf: Array(marked[..<count]))
                #expect(found == nil || found == mark)
            }
            // Damage is read without harm.
            for place in marked.indices {
                var damaged = marked
                damaged[place] ^= 0xFF
                _ = MarkedPicture.mark(atStartOf: damaged)
                _ = MarkedPicture.file(damaged, with: mark)
            }
        }
        #expect(MarkedPicture.file(file, with: mark(String(repeating: "\u{1}", count: 1000))) == nil)
        #expect(MarkedPicture.file(Array("GIF89a".utf8), with: mark()) == nil)
        #expect(MarkedPicture.file([], with: mark()) == nil)
    }

    @Test func namesOneFileOfOneRecorder() {
        let mark = mark()
        #expect(mark.names("cam-0001.mp4", in: 7, recorder: "rec"))
        #expect(!mark.names("cam-0002.mp4", in: 7, recorder: "rec"))
        #expect(!mark.names("cam-0001.mp4", in: 8, recorder: "rec"))
        #expect(!mark.names("cam-0001.mp4", in: 7, recorder: "other"))
        #expect(self.mark(recorder: "").names("cam-0001.mp4", in: 7, recorder: "other"))
        #expect(mark.payload.flatMap { RecordingMark(payload: $0[...]) } == mark)
        #expect(mark.made?.wall == 1_790_000_000_456_000_000)
        // Of one machine; one that has no id does not take what another has made.
        let machine = self.mark(machine: .max - 7)
        #expect(machine.payload.flatMap { RecordingMark(payload: $0[...]) } == machine)
        for (other, isNamed) in [(UInt64.max - 7, true), (4, false), (0, false)] {
            #expect(machine.names("cam-0001.mp4", in: 7, recorder: "rec", machine: other) == isNamed)
            #expect(mark.names("cam-0001.mp4", in: 7, recorder: "rec", machine: other))
        }
        #expect(self.mark(String(repeating: "\u{1}", count: 1000)).payload == nil)
    }

    /// A mark as the version before wrote it: without machine, and without the moment of its making.
    @Test func readsMarksOfEarlierVersions() throws {
        let text =
            #"{"framehost":1,"recorder":"c/r","run":"a","number":3,"file":"a.mp4","folder":"7","utc":5,"clock":6,"boot":"b","beside":[]}"#
        let mark = try #require(RecordingMark(payload: (RecordingMark.identifier + Array(text.utf8))[...]))
        #expect(
            mark
                == RecordingMark(
                    recorder: "c/r", run: 10, number: 3, file: "a.mp4", folder: 7, unixMilliseconds: 5, clock: 6,
                    boot: 11))
        #expect(mark.names("a.mp4", in: 7, recorder: "c/r", machine: 12))
    }

    @Test(arguments: [
        ("0123456789abcdef0123456789abcdef\n", true), ("0123456789abcdef0123456789abcdef", true),
        ("uninitialized\n", false),
        ("", false), ("0123456789ABCDEF0123456789abcdef\n", false),
    ]) func readsTheIdOfTheMachine(text: String, isId: Bool) throws {
        let folder = try scratch()
        defer { try? FileManager.default.removeItem(atPath: folder) }
        try Data(text.utf8).write(to: URL(filePath: folder + "/id"))
        let machine = RecordingMark.machine(id: folder + "/id")
        #expect((machine != 0) == isId)
        try Data("fedcba98765432100123456789abcdef\n".utf8).write(to: URL(filePath: folder + "/id"))
        #expect(RecordingMark.machine(id: folder + "/id") != machine)
        #expect(RecordingMark.machine(id: folder + "/none") == 0)
    }

    @Test func readsTheClocks() {
        let (before, moment) = (RecordingMoment.now(), RecordingMoment.now())
        #expect(moment.up >= before.up && moment.up > 0 && moment.wall > 1_700_000_000_000_000_000)
        let clock = ManualClock(at: 5)
        #expect(clock.moment == RecordingMoment(up: 5, wall: 5, isSynchronised: true))
        #expect(RecordingMoment(up: -1, wall: .max, isSynchronised: false).offset == 8_000_000_000_000_000_000)
    }

    /// Bytes of others, damaged and forged ones: never a crash, and never another mark than one that was written.
    @Test(arguments: forms) func readsWhateverStandsThere(form: RecordingForm) {
        var random = SystemRandomNumberGenerator()
        let good = mark()
        let head = form.head(good)
        for _ in 0..<3000 {
            var bytes = head
            for _ in 0..<Int.random(in: 1...4, using: &random) {
                bytes[Int.random(in: 0..<bytes.count, using: &random)] = .random(in: 0...255, using: &random)
            }
            if Bool.random(using: &random) { bytes.removeLast(.random(in: 0..<bytes.count, using: &random)) }
            for found in [RecordingForm.mark(atStartOf: bytes), RecordingForm.mark(atEndOf: bytes)] {
                guard let found else { continue }
                #expect(found.number >= 0 && found.number < RecordingMark.mostNumber && !found.file.isEmpty)
            }
            var start = Array(bytes.prefix(16))
            form.hideStart(&start)
            #expect(start.count == min(16, bytes.count))
        }
        #expect(RecordingForm.mark(atStartOf: [UInt8](repeating: 0xFF, count: 5000)) == nil)
        #expect(RecordingForm.mark(atEndOf: []) == nil)
    }

    /// The muxer's own first box or element becomes one of the same size that readers skip.
    @Test func hidesTheMuxersStart() {
        var box: [UInt8] = [0, 0, 0, 28] + Array("ftypiso5".utf8) + [0, 0, 2, 0]
        RecordingForm.mp4.hideStart(&box)
        #expect(box == [0, 0, 0, 28] + Array("freeiso5".utf8) + [0, 0, 2, 0])
    }

    /// The muxer's header, of whatever size, lies within the mark's, and what follows is the segment.
    @Test(arguments: [40, 12, 45, 300]) func holdsTheMuxersHeader(bytes: Int) throws {
        let mark = mark()
        let size = [UInt8]([0x40 | UInt8((bytes - 6) >> 8), UInt8(truncatingIfNeeded: bytes - 6)])
        let header = RecordingForm.ebmlID + size + [UInt8](repeating: 0x42, count: bytes - 6)
        var head = RecordingForm.matroska.head(mark)
        let start = Array((header + [0x18, 0x53, 0x80, 0x67, 0x80])[..<16])
        var shown = start
        RecordingForm.matroska.hideStart(&shown)
        #expect(shown == start)
        for (place, bytes) in RecordingForm.matroska.corrections(for: start, head: head.count) {
            head.replaceSubrange(place..<(place + bytes.count), with: bytes)
        }
        let file = head + header + [0x18, 0x53, 0x80, 0x67, 0x80]
        #expect(RecordingForm.mark(atStartOf: file) == mark)
        let (content, length) = try #require(RecordingForm.vint(file[4...]))
        #expect(Array(file[(4 + length + Int(content))...]) == [0x18, 0x53, 0x80, 0x67, 0x80])
    }

    // MARK: Adopting

    private func file(_ form: RecordingForm) -> [UInt8] {
        switch form {
        case .matroska:
            RecordingForm.ebmlID + [0x84, 1, 2, 3, 4] + [0x18, 0x53, 0x80, 0x67, 0x90]
                + [UInt8](repeating: 9, count: 16)
        case .mov: [0, 0, 0, 16] + Array("ftypqt  ".utf8) + [0, 0, 0, 0, 0, 0, 0, 12] + Array("mdat1234".utf8)
        default: [0, 0, 0, 16] + Array("ftypisom".utf8) + [0, 0, 0, 0, 0, 0, 0, 12] + Array("mdat1234".utf8)
        }
    }

    @Test(arguments: [RecordingForm.mp4, .mov, .matroska]) func addsAMarkBehindAFile(form: RecordingForm) throws {
        let folder = try scratch()
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let path = folder + "/a.mp4"
        try Data(file(form)).write(to: URL(filePath: path))
        let old = Date(timeIntervalSince1970: 1_000_000_000)
        try FileManager.default.setAttributes([.modificationDate: old], ofItemAtPath: path)
        #expect(MarkedFile.marks(of: path) == [])
        #expect(try MarkedFile.form(ofWhole: path) == form)
        let identity = try #require(FileIdentity(path: path))
        try MarkedFile.add(mark("a.mp4"), to: path, meant: identity, RunFiles())
        #expect(MarkedFile.marks(of: path) == [mark("a.mp4")])
        // Once more, as after the file was moved.
        try MarkedFile.add(mark("b.mp4"), to: path, meant: identity, RunFiles())
        #expect(MarkedFile.marks(of: path) == [mark("b.mp4")])
        let bytes = [UInt8](try Data(contentsOf: URL(filePath: path)))
        #expect(bytes.starts(with: file(form)) && FileIdentity(path: path) == identity)
        #expect(try FileManager.default.attributesOfItem(atPath: path)[.modificationDate] as? Date == old)
    }

    @Test func addsNothingWhereItMustNot() throws {
        let folder = try scratch()
        defer { try? FileManager.default.removeItem(atPath: folder) }
        func make(_ name: String, _ bytes: [UInt8]) throws -> String {
            try Data(bytes).write(to: URL(filePath: "\(folder)/\(name)"))
            return "\(folder)/\(name)"
        }
        func refusal(_ path: String) -> MarkedFile.Refusal? {
            guard let identity = FileIdentity(path: path) else { return .failed(ENOENT) }
            do throws(MarkedFile.Refusal) {
                try MarkedFile.add(mark(), to: path, meant: identity, RunFiles())
                return nil
            } catch { return error }
        }
        let whole = file(.mp4)
        #expect(refusal(try make("text.mp4", Array("somebody's diary\n".utf8))) == .otherKind)
        #expect(refusal(try make("cut.mp4", Array(whole.dropLast()))) == .isNotWhole)
        #expect(refusal(try make("cut.mkv", Array(file(.matroska).dropLast()))) == .isNotWhole)
        #expect(
            refusal(
                try make("live.mkv", RecordingForm.ebmlID + [0x84, 1, 2, 3, 4, 0x18, 0x53, 0x80, 0x67, 0xFF, 1, 2]))
                == .isNotWhole)
        let linked = try make("linked.mp4", whole)
        link(linked, folder + "/other.mp4")
        #expect(refusal(linked) == .hasOtherNames)
        let protected = try make("protected.mp4", whole)
        chmod(protected, 0o444)
        #expect(refusal(protected) == .refused(.isProtected))
        let used = try make("used.mp4", whole)
        let lock = open(used, O_RDONLY)
        #expect(flock(lock, LOCK_SH) == 0)
        #expect(refusal(used) == .refused(.readElsewhere))
        close(lock)
        symlink("used.mp4", folder + "/link.mp4")
        #expect(MarkedFile.marks(of: folder + "/link.mp4") == [])
        mkfifo(folder + "/pipe.mp4", 0o600)
        #expect(MarkedFile.marks(of: folder + "/pipe.mp4") == [])
        for name in ["text.mp4", "cut.mp4", "linked.mp4", "protected.mp4", "used.mp4"] {
            #expect(MarkedFile.marks(of: "\(folder)/\(name)") == [])
        }
    }
}

/// Chains of one process do not replace each other's files.
@Suite struct MadeFilesTests {
    @Test func keepsWhatARunBesideItHasMade() throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "made-\(UInt64.random(in: 0 ... .max))")
            .path
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let path = folder + "/a.mp4"
        let second = RunFiles()
        do {
            let first = RunFiles()
            try first.create(path, as: "recorder").close()
            #expect(first.hasMade(path) && !second.hasMade(path))
            #expect(throws: FileRefusal.isOwn) { try second.replace(path, as: "recorder") }
            #expect(throws: FileRefusal.isOwn) { try second.rewrite(path, as: "dump") }
            #expect(second.write(path, [1], as: "snapshot", isReplacing: true) == .isOwn)
            #expect(second.refusalOfReplacing(ofAnotherRun: path) == .isOwn)
            #expect(first.refusalOfReplacing(ofAnotherRun: path) == nil)
        }
        // That run has ended: its file is one of an earlier run.
        #expect(second.refusalOfReplacing(ofAnotherRun: path) == nil)
        try second.replace(path, as: "recorder").close()
        #expect(second.hasMade(path))
    }
}
