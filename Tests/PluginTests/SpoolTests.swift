// SPDX-License-Identifier: Apache-2.0

import Foundation
import FrameCore
import Glibc
import Publishing
import Synchronization
import Testing

/// A spool in a folder of its own.
final class SpoolBox {
    let path: String
    private(set) var spool: Spool!
    private let most: Int

    init(most: Int = 1 << 20) throws {
        path = FileManager.default.temporaryDirectory.appending(path: "framehost-spool-\(UUID().uuidString)/a/b").path
        self.most = most
        try open()
    }

    deinit { try? FileManager.default.removeItem(atPath: path + "/../..") }

    /// As after the end of the process: without a word to the spool.
    func open() throws {
        spool = nil
        spool = try Spool(SpoolFolder(path), mostBytes: most)
    }

    /// Events called `e` whose text is their number in words of this length.
    func add(_ count: Int, bytes: Int = 20) {
        spool.append(Array(0..<count)) { _, number in
            SpoolRecord(
                number: number, id: "h.b.r.\(number)", event: "e",
                text: #"{"n":"# + "\(number)" + String(repeating: " ", count: bytes) + "}")
        }
    }

    func take(_ most: Int = 100_000) -> [UInt64] { spool.take(most: most).map(\.number) }

    var segments: [String] {
        ((try? FileManager.default.contentsOfDirectory(atPath: path)) ?? []).filter { $0.hasSuffix(".events") }.sorted()
    }

    func segment(_ index: Int) -> String {
        let all = segments
        return "\(path)/\(all.indices.contains(index) ? all[index] : "none")"
    }

    func bytes(_ index: Int) throws -> [UInt8] { Array(try Data(contentsOf: URL(fileURLWithPath: segment(index)))) }

    func write(_ bytes: [UInt8], _ index: Int) throws {
        try Data(bytes).write(to: URL(fileURLWithPath: segment(index)))
    }
}

@Suite struct SpoolTests {
    @Test func givesEachRecordOnceAndInOrder() throws {
        let box = try SpoolBox()
        box.add(10)
        #expect(box.take(3) == [1, 2, 3])
        #expect(box.take() == Array(4...10))
        #expect(box.take() == [])
        box.add(2)
        #expect(box.take() == [11, 12])
        #expect(box.spool.waitingCount == 12)
        #expect(box.spool.takeLosses() == [:])
    }

    @Test func givesWhatIsNotAcknowledgedAgainAfterARestart() throws {
        let box = try SpoolBox()
        box.add(10)
        _ = box.take(6)
        box.spool.acknowledge(through: 4)
        try box.open()
        #expect(box.spool.waitingCount == 6)
        #expect(box.spool.take(most: 1).first?.id == "h.b.r.5")
        #expect(box.take() == Array(6...10))
        box.add(1)
        #expect(box.take() == [11])
    }

    @Test func countsOnWhenAllIsAcknowledged() throws {
        let box = try SpoolBox()
        box.add(3)
        _ = box.take()
        box.spool.acknowledge(through: 3)
        try box.open()
        #expect(box.spool.waitingCount == 0)
        box.add(1)
        #expect(box.take() == [4])
    }

    @Test func cutsATornLineAtEveryPlace() throws {
        let box = try SpoolBox()
        box.add(2)
        let whole = try box.bytes(0)
        let first = whole.firstIndex(of: 10)! + 1
        for cut in first..<whole.count {
            try box.write(Array(whole[..<cut]), 0)
            try box.open()
            #expect(box.take() == [1])
            #expect(try box.bytes(0).count == first)
            box.add(1)
            #expect(box.take() == [2])
            #expect(box.spool.takeLosses() == [:])
        }
    }

    @Test func skipsDamagedLinesAndCountsThem() throws {
        let box = try SpoolBox()
        box.add(5)
        var bytes = try box.bytes(0)
        let begin = bytes.firstIndex(of: 10)! + 15
        bytes[begin] ^= 1
        try box.write(bytes, 0)
        try box.open()
        #expect(box.take() == [1, 3, 4, 5])
        #expect(box.spool.takeLosses() == [.damaged: 1])
        #expect(box.take() == [])
    }

    /// A line with this number that somebody has written, with a checksum that is right.
    private static func forged(_ number: UInt64, event: String = "e", id: String = "f") -> [UInt8] {
        SpoolRecord(number: number, id: id, event: event, text: "{}").line
    }

    /// Lines 1 to 60 in segments of 4 KiB, and a forged one before line `place`.
    @Test(arguments: [1, 2, 10, 17, 30, 59, 60], [0, 5, 25, 61, 1000, 1 << 40, .max / 2 - 1, .max] as [UInt64])
    func aForgedLineCostsNoOther(place: Int, number: UInt64) throws {
        let box = try SpoolBox(most: 64 << 10)
        box.add(60, bytes: 300)
        #expect(box.segments.count > 2)
        var index = box.segments.count - 1
        while index > 0, Int(box.segments[index].prefix(20))! > place { index -= 1 }
        var lines = try box.bytes(index).split(separator: 10).map { Array($0) + [10] }
        lines.insert(Self.forged(number), at: place - Int(box.segments[index].prefix(20))!)
        try box.write(Array(lines.joined()), index)
        try box.open()
        box.add(3)
        let there = box.spool.take(most: 1000).filter { $0.id != "f" }
        #expect(there.prefix(60).map(\.id) == (1...60).map { "h.b.r.\($0)" })
        #expect(there.count == 63)
        // What is not given is said, and it costs a number at most.
        #expect(box.spool.takeLosses().values.reduce(0, +) <= 1)
        box.spool.acknowledge(through: there.last!.number)
        #expect(box.spool.waitingCount == 0)
    }

    @Test(arguments: [1, 10, 16, 9_000_000_000] as [UInt64])
    func aForgedLineThatIsWrittenDuringTheRunCostsNoOther(number: UInt64) throws {
        let box = try SpoolBox()
        box.add(10)
        #expect(box.take(4) == [1, 2, 3, 4])
        box.add(5)
        #expect(box.take(6) == Array(5...10))
        let lines = try box.bytes(0).split(separator: 10).map { Array($0) + [10] }
        // In place of line 12, and of its length.
        var forged = SpoolRecord(number: number, id: "f", event: "e", text: "{}")
        forged.text += String(repeating: " ", count: lines[11].count - forged.line.count)
        try box.write(Array((lines[..<11] + [forged.line] + lines[12...]).joined()), 0)
        box.add(5)
        #expect(box.take() == [11] + Array(13...20))
        #expect(box.spool.takeLosses() == [.damaged: 1])
        // What was read before is given as it was.
        try box.write([UInt8](repeating: 65, count: box.bytes(0).count), 0)
        #expect(box.take() == [])
    }

    @Test func aLineWhoseNamesBelongToAProtocolIsDamaged() {
        for (event, id) in [("a\tb", "f"), ("a\r", "f"), ("*", "f"), (">", "f"), ("a/b", "f"), ("e", "f\rNats-X: y")] {
            let line = Self.forged(7, event: event, id: id)
            #expect(SpoolRecord(line: line.dropLast()) == nil, "\(event) \(id)")
        }
        #expect(SpoolRecord(line: Self.forged(7).dropLast()) != nil)
    }

    @Test func damagedLinesAreReportedOnce() throws {
        let box = try SpoolBox()
        box.add(5)
        var bytes = try box.bytes(0)
        bytes[bytes.firstIndex(of: 10)! + 15] ^= 1
        try box.write(bytes, 0)
        try box.open()
        #expect(box.take() == [1, 3, 4, 5])
        #expect(box.spool.takeLosses() == [.damaged: 1])
        box.spool.acknowledge(through: 5)
        try box.open()
        box.add(1)
        #expect(box.take() == [6])
        #expect(box.spool.takeLosses() == [:])
    }

    /// What is on the disk, what was lost and what was acknowledged make up what was added.
    @Test(arguments: [0, 3, 40]) func countsEachLossOnce(acknowledged: Int) throws {
        let box = try SpoolBox(most: 64 << 10)
        box.add(50, bytes: 100)
        // The sender has these, and the server acknowledges some of them.
        let taken = box.take(40)
        box.add(100, bytes: 100)
        // The last line of the first segment is damaged, before the segment goes.
        var bytes = try box.bytes(0)
        bytes[bytes.count - 20] ^= 1
        try box.write(bytes, 0)
        for _ in 0..<39 { box.add(100, bytes: 100) }
        if acknowledged > 0 { box.spool.acknowledge(through: taken[acknowledged - 1]) }
        box.spool.countLeft()
        let lost = box.spool.takeLosses()
        try box.open()
        let there = box.take()
        #expect(lost.values.reduce(0, +) == 4050 - acknowledged - there.count)
        #expect(lost[.damaged] == 1)
        #expect(there == Array(there[0]...4050))
    }

    @Test func countsWhatIsOnlyInMemoryWhenTheRunEnds() throws {
        let box = try SpoolBox()
        let place = box.path + "/00000000000000000001.events"
        try FileManager.default.createDirectory(atPath: place, withIntermediateDirectories: true)
        try box.open()
        box.add(5)
        _ = box.take()
        box.spool.acknowledge(through: 2)
        box.spool.countLeft()
        #expect(box.spool.takeLosses() == [.notWritten: 3])
    }

    /// Against the lengths by the definition, over all orders of few numbers.
    @Test func findsTheLongestRisingSequence() {
        for code in 0..<3125 {
            let numbers = (0..<5).map { UInt64(code / [1, 5, 25, 125, 625][$0] % 5) }
            let marks = SpoolOrder.rising(numbers)
            let kept = zip(numbers, marks).filter(\.1).map(\.0)
            #expect(zip(kept, kept.dropFirst()).allSatisfy { $0 < $1 })
            let longest = (0..<32).map { set in (0..<5).filter { set >> $0 & 1 == 1 }.map { numbers[$0] } }
                .filter { zip($0, $0.dropFirst()).allSatisfy { $0 < $1 } }.map(\.count).max()
            #expect(kept.count == longest)
        }
        #expect(SpoolOrder.rising([]) == [])
    }

    @Test func readsOnWhereAFileIsGarbageOrGone() throws {
        let box = try SpoolBox(most: 64 << 10)
        box.add(300, bytes: 60)
        #expect(box.segments.count > 3)
        try box.write([UInt8](repeating: 65, count: 5000), 0)
        try FileManager.default.removeItem(atPath: box.segment(1))
        try box.open()
        let first = UInt64(box.segments[1].prefix(20))!
        #expect(box.take() == Array(first...300))
        #expect(box.spool.takeLosses()[.damaged]! > 0)
    }

    @Test func staysWithinItsBoundAndCountsWhatWent() throws {
        let box = try SpoolBox(most: 64 << 10)
        for _ in 0..<40 { box.add(100, bytes: 100) }
        #expect(box.spool.diskBytes <= 64 << 10)
        let there = box.take()
        #expect(there.last == 4000)
        #expect(there == Array(there[0]...4000))
        #expect(box.spool.takeLosses() == [.spoolFull: 4000 - there.count])
        let disk = try (0..<box.segments.count).reduce(0) { $0 + (try box.bytes($1).count) }
        #expect(disk <= 64 << 10)
    }

    @Test func removesSegmentsThatAreAcknowledged() throws {
        let box = try SpoolBox(most: 64 << 10)
        box.add(400, bytes: 60)
        #expect(box.segments.count > 3)
        _ = box.take()
        box.spool.acknowledge(through: 400)
        #expect(box.segments.count == 1)
        try box.open()
        box.add(1)
        #expect(box.take() == [401])
    }

    @Test func keepsInMemoryWhatTheDiskDoesNotTake() throws {
        let box = try SpoolBox()
        // A folder in the segment's place stands for a disk that takes nothing.
        let place = box.path + "/00000000000000000001.events"
        try FileManager.default.createDirectory(atPath: place, withIntermediateDirectories: true)
        try box.open()
        box.add(5)
        #expect(box.spool.fault == "Is a directory")
        #expect(box.take() == [1, 2, 3, 4, 5])
        box.spool.acknowledge(through: 3)
        try FileManager.default.removeItem(atPath: place)
        box.spool.flush()
        #expect(box.spool.fault == nil)
        #expect(box.take() == [])
        try box.open()
        #expect(box.take() == [4, 5])
        #expect(box.spool.takeLosses() == [:])
    }

    @Test func boundsWhatIsInMemoryAndCountsWhatWent() throws {
        let box = try SpoolBox()
        let place = box.path + "/00000000000000000001.events"
        try FileManager.default.createDirectory(atPath: place, withIntermediateDirectories: true)
        try box.open()
        box.add(Spool.mostUnwritten)
        box.add(10)
        #expect(box.spool.takeLosses() == [.memoryFull: 10])
        #expect(box.take() == Array(11...UInt64(Spool.mostUnwritten) + 10))
    }

    @Test func doesNotTakeADamagedNumberForAcknowledged() throws {
        let box = try SpoolBox()
        box.add(3)
        try Data("00000000000000009999 00000000\n".utf8).write(to: URL(fileURLWithPath: box.path + "/sent"))
        try box.open()
        #expect(box.take() == [1, 2, 3])
    }

    @Test func refusesAFolderThatIsInUse() throws {
        let box = try SpoolBox()
        #expect {
            try SpoolFolder(box.path)
        } throws: {
            "\($0)".contains(
                "spool: the folder '\(box.path)' is in use by another run, or by another service of this run. End that run, or name another folder with 'spool'."
            )
        }
    }

    /// A descriptor that is closed twice may be another thread's by then.
    @Test func closesNothingOfOthersWhereAFolderIsInUse() throws {
        let box = try SpoolBox()
        let isOver = Atomic<Bool>(false)
        let lost = Atomic<Int>(0)
        let neighbour = Thread {
            while !isOver.load(ordering: .relaxed) {
                let file = Glibc.open("/dev/null", O_RDONLY)
                for _ in 0..<50 where fcntl(file, F_GETFD) < 0 { lost.add(1, ordering: .relaxed) }
                if Glibc.close(file) != 0 { lost.add(1, ordering: .relaxed) }
            }
        }
        neighbour.start()
        for _ in 0..<20_000 { #expect(throws: FrameHostError.self) { try SpoolFolder(box.path) } }
        isOver.store(true, ordering: .relaxed)
        #expect(lost.load(ordering: .relaxed) == 0)
    }

    @Test func findsTheUsualFolder() {
        func usual(_ variables: [String: String]) -> String {
            SpoolFolder.usual(chain: "front door", key: "nats") { variables[$0] }
        }
        #expect(
            usual(["STATE_DIRECTORY": "/var/lib/a:/var/lib/b", "HOME": "/h"]) == "/var/lib/a/events/front_door.nats")
        #expect(usual(["XDG_STATE_HOME": "/s", "HOME": "/h"]) == "/s/framehost/events/front_door.nats")
        #expect(usual(["HOME": "/h"]) == "/h/.local/state/framehost/events/front_door.nats")
    }

    /// What is written is read, whatever stands in it.
    @Test func writesLinesThatAreReadBack() {
        for text in ["{}", #"{"a":"b c\n"}"#, #"{"ü":"é ñ"}"#, "{ }"] {
            let record = SpoolRecord(number: 18, id: "a.b.c.18", event: "x-y", text: text)
            #expect(SpoolRecord(line: record.line.dropLast()) == record)
        }
        #expect(CRC32.of("123456789".utf8) == 0xCBF4_3926)
        #expect(SpoolRecord(line: []) == nil)
        #expect(SpoolRecord(line: Array("00000000 ".utf8)[...]) == nil)
    }
}
