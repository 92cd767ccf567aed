// SPDX-License-Identifier: Apache-2.0

import Foundation
import FrameCore
import Publishing
import Testing

/// What a spool does while somebody removes its files, or its disk takes nothing.
@Suite struct SpoolRemovalTests {
    // MARK: Files that somebody removes during the run

    @Test(arguments: ["file", "files", "folder", "other"]) func writesAgainWhatWasInARemovedFile(what: String) throws {
        let box = try SpoolBox()
        box.add(5)
        #expect(box.take(2) == [1, 2])
        box.spool.acknowledge(through: 1)
        switch what {
        case "file": try FileManager.default.removeItem(atPath: box.segment(0))
        case "files":
            for name in try FileManager.default.contentsOfDirectory(atPath: box.path) {
                try FileManager.default.removeItem(atPath: "\(box.path)/\(name)")
            }
        case "folder": try FileManager.default.removeItem(atPath: box.path)
        default: try Data(box.bytes(0)).write(to: URL(fileURLWithPath: box.segment(0)), options: .atomic)
        }
        box.add(5)
        #expect(box.spool.fault == nil)
        #expect(box.take() == Array(3...10))
        box.spool.look()
        #expect(box.spool.takeLosses() == [:])
        #expect(throws: FrameHostError.self) { try SpoolFolder(box.path) }
        try box.open()
        #expect(box.take() == Array(2...10))
        #expect(box.spool.takeLosses() == [:])
    }

    @Test func aRemovedFileIsFoundWithoutANewEvent() throws {
        let box = try SpoolBox()
        // There is nothing yet.
        box.spool.look()
        box.add(5)
        try box.open()
        try FileManager.default.removeItem(atPath: box.segment(0))
        box.spool.look()
        try box.open()
        #expect(box.take() == Array(1...5))
        // The sender is the first to see it.
        box.add(3)
        try FileManager.default.removeItem(atPath: box.segment(0))
        #expect(box.take() == [6, 7, 8])
        box.spool.flush()
        try box.open()
        #expect(box.take() == Array(1...8))
        box.spool.acknowledge(through: 8)
        try FileManager.default.removeItem(atPath: box.segment(0))
        box.spool.look()
        box.spool.look()
        box.add(1)
        #expect(box.take() == [9])
        #expect(box.spool.takeLosses() == [:])
    }

    @Test(arguments: [0, 3, 12, 20]) func countsTheNumbersThatAreCutOff(lines: Int) throws {
        let box = try SpoolBox()
        box.add(20)
        #expect(box.take(5) == Array(1...5))
        let whole = try box.bytes(0).split(separator: 10).map { Array($0) + [10] }
        try box.write(Array(whole[..<lines].joined()), 0)
        box.add(5)
        let kept = box.take()
        #expect(kept == Array(6..<UInt64(max(lines, 5) + 1)) + Array(21...25))
        #expect(box.spool.takeLosses() == (lines == 20 ? [:] : [.damaged: 20 - max(lines, 5)]))
    }

    /// `look()` says it while nobody reads, and the reader counts none of it again.
    @Test(arguments: [true, false]) func countsTheNumbersOfRemovedFiles(looks: Bool) throws {
        let box = try SpoolBox(most: 64 << 10)
        box.add(400, bytes: 60)
        #expect(box.segments.count > 4)
        #expect(box.take(5) == Array(1...5))
        let first = try [1, 2, 3].map { try #require(UInt64(box.segments[$0].prefix(20))) }
        for index in [2, 1] { try FileManager.default.removeItem(atPath: box.segment(index)) }
        // The lines of this one are in memory up to the window's end, which is the file's.
        try FileManager.default.removeItem(atPath: box.segment(0))
        let lost = Int(first[2] - first[0])
        if looks {
            box.spool.look()
            #expect(box.spool.takeLosses() == [.damaged: lost])
        }
        box.add(5)
        #expect(box.take() == Array(6..<first[0]) + Array(first[2]...405))
        #expect(box.spool.takeLosses() == (looks ? [:] : [.damaged: lost]))
    }

    @Test func numbersThatMemoryLostAreNotCountedAgain() throws {
        let box = try SpoolBox()
        box.add(2)
        let file = box.segment(0)
        try FileManager.default.removeItem(atPath: file)
        try FileManager.default.createDirectory(atPath: file, withIntermediateDirectories: true)
        box.add(Spool.mostUnwritten + 10)
        #expect(box.spool.fault == "Is a directory")
        #expect(box.spool.takeLosses() == [.memoryFull: 12])
        try FileManager.default.removeItem(atPath: file)
        box.spool.flush()
        var bytes = try box.bytes(0)
        bytes[20] ^= 1
        try box.write(bytes, 0)
        #expect(box.take() == Array(14...UInt64(Spool.mostUnwritten) + 12))
        #expect(box.spool.takeLosses() == [.damaged: 1])
    }

    /// The sender has some of those that memory loses: the ranges that are counted touch and overlap.
    @Test func numbersThatAreLostTwiceAreCountedOnce() throws {
        let box = try SpoolBox()
        let place = box.path + "/00000000000000000001.events"
        try FileManager.default.createDirectory(atPath: place, withIntermediateDirectories: true)
        try box.open()
        box.add(20)
        #expect(box.take(10) == Array(1...10))
        box.add(Spool.mostUnwritten)
        #expect(box.spool.takeLosses() == [.memoryFull: 20])
        try FileManager.default.removeItem(atPath: place)
        box.spool.flush()
        let last = UInt64(Spool.mostUnwritten) + 20
        for cut in [100, 50, 0] {
            let lines = try box.bytes(0).split(separator: 10).map { Array($0) + [10] }
            try box.write(Array(lines[..<cut].joined()), 0)
            box.spool.look()
        }
        #expect(box.spool.takeLosses() == [.damaged: Spool.mostUnwritten])
        box.add(1)
        #expect(box.take() == [last + 1])
        #expect(box.spool.takeLosses() == [:])
    }

    // MARK: A disk that takes nothing

    @Test func aFaultLastsUntilSomethingIsWritten() throws {
        let box = try SpoolBox()
        let place = box.path + "/00000000000000000001.events"
        try FileManager.default.createDirectory(atPath: place, withIntermediateDirectories: true)
        try box.open()
        box.add(5)
        #expect(box.take() == [1, 2, 3, 4, 5])
        box.spool.acknowledge(through: 5)
        box.spool.flush()
        box.spool.flush()
        #expect(box.spool.fault == "Is a directory")
        try FileManager.default.removeItem(atPath: place)
        box.spool.flush()
        #expect(box.spool.fault == nil)
        box.spool.countLeft()
        #expect(box.spool.takeLosses() == [:])
        try box.open()
        #expect(box.take() == [])
        box.add(1)
        #expect(box.take() == [6])
    }

    @Test func saysAtMostEveryTenSecondsWhatTheDiskDoes() {
        var news = OutwardNews(kind: "webhook", servers: ["http://a:80"], spool: "/s")
        var said: [String] = []
        // Every 0.2 s for 60 s, as the spool's thread asks.
        for step in 0..<300 {
            let fault = step % 2 == 0 ? "No space left on device" : nil
            said += news.ofSpool(losses: [:], fault: fault, now: Int64(step) * 200_000_000).map(\.event)
        }
        #expect(said.count { $0 == "spool-failed" } <= 6 && said.count { $0 == "spool-recovered" } <= 6)
        #expect(said.count > 6)
    }
}
