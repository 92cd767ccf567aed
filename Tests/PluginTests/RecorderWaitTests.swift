// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Recordings
import Foundation
import Testing

@testable import Recorder

/// Recordings by command that cannot be written when they are asked for, or from some moment on.
@Suite struct RecorderWaitTests {
    private let folder: ScratchFolder
    private let clock = ManualClock(at: 1_000_000_000)
    init() throws { folder = try ScratchFolder() }

    private var films: String { folder.file("films") }

    private func makeFilms() throws {
        try FileManager.default.createDirectory(atPath: films, withIntermediateDirectories: true)
    }

    private func recorder(_ more: String) throws -> StageDriver<Recorder> {
        try makeFilms()
        return try StageDriver(
            Recorder.self,
            options:
                #"{ "path": "\#(films)/a-{n}.mp4", "record": "onCommand", "finalize": "never"\#(more) }"#,
            input: .encoded(RecorderStreams.format()), clock: clock)
    }

    /// Sends pictures 40 ms apart in the time of the clock, and does what is asked for before some of them.
    private func send(_ count: Int, to recorder: StageDriver<Recorder>, _ steps: [Int: () throws -> Void]) throws {
        for (number, unit) in RecorderStreams.steady(count, isKey: { $0 % 10 == 0 }).enumerated() {
            try steps[number]?()
            try recorder.send(unit)
            clock.advance(to: clock.now() + 40_000_000)
        }
    }

    private func numbers(_ name: String) throws -> [Int] {
        try RecorderStreams.packets(of: "\(films)/\(name)").packets.map { packet in
            Int(String(decoding: packet.bytes.dropFirst(10).prefix { $0 != 0x20 }, as: UTF8.self)) ?? -1
        }
    }

    private func remove() throws { try FileManager.default.removeItem(atPath: films) }

    @Test func beginsWithAllThatItHoldsOnceItCan() throws {
        let recorder = try recorder(#", "preEventSeconds": 1, "preEventMegabytes": 1"#)
        // A second before 60 is 35; after two seconds of waiting these pictures are three seconds old.
        try send(
            160, to: recorder,
            [
                59: remove, 60: { try recorder.command("start") }, 110: makeFilms,
                150: { try recorder.command("stop") },
            ])
        try recorder.finish()
        #expect(try numbers("a-1.mp4") == Array(30..<150))
        let events = recorder.takeEvents()
        #expect(
            events.map(\.name) == [
                "recording-did-fail", "recording-did-start", "recording-will-stop", "recording-did-stop",
            ])
        #expect(
            events[0].text
                == "the folder '\(films)' does not exist. Create it, or correct 'path'. The recording begins with what is kept in memory as soon as it can be written."
        )
        #expect(events[0].level == .warning && events[0].details["triesAgain"]?.asBool == true)
        #expect(DropReason.allCases.allSatisfy { recorder.dropCount($0) == 0 })
    }

    @Test func aFileInTheWayHoldsItUpToo() throws {
        let recorder = try recorder(#", "preEventSeconds": 1, "preEventMegabytes": 1"#)
        try send(
            100, to: recorder,
            [
                50: {
                    try remove()
                    try Data("mine".utf8).write(to: URL(fileURLWithPath: films))
                    try recorder.command("start")
                },
                60: {
                    try remove()
                    try makeFilms()
                },
            ])
        try recorder.finish()
        #expect(try numbers("a-1.mp4") == Array(20..<100))
    }

    /// A rule repeats a start that has failed.
    @Test func aRepeatedStartIsTriedAtOnce() throws {
        let recorder = try recorder(#", "preEventSeconds": 1, "preEventMegabytes": 1"#)
        var begun: [Int] = []
        func look(_ number: Int) {
            if recorder.takeEvents().contains(where: { $0.name == "recording-did-start" }) { begun.append(number) }
        }
        try send(
            70, to: recorder,
            [
                50: {
                    try remove()
                    try recorder.command("start")
                },
                52: makeFilms, 53: { look(53) }, 54: { try recorder.command("start") }, 55: { look(55) },
            ])
        #expect(begun == [55])
        // It records now.
        #expect(throws: FrameHostError.self) { try recorder.command("start") }
        try recorder.finish()
        #expect(try numbers("a-1.mp4") == Array(20..<70))
    }

    @Test func saysWhatItLosesWithoutMemory() throws {
        let recorder = try recorder("")
        try send(
            100, to: recorder,
            [
                45: remove, 50: { try recorder.command("start") }, 60: makeFilms,
            ])
        let error = #expect(throws: FrameHostError.self) { try recorder.finish() }
        // From 50 on, until the first keyframe a second later.
        #expect(
            error?.description.contains("30 pictures that were to be recorded are in no file.") == true,
            "\(String(describing: error))")
        #expect(error?.cause.contains("does not exist") == true)
        #expect(try numbers("a-1.mp4") == Array(80..<100))
        #expect(recorder.dropCount(.byStage) == 30)
        let events = recorder.takeEvents()
        #expect(events.filter { $0.name == "recording-loses" }.count == 1)
        #expect(events.first?.text.hasSuffix("The recording begins as soon as it can be written.") == true)
    }

    /// The memory is full before the folder is there again: the oldest groups go, and that is said.
    @Test func saysWhatHasNoRoomInMemory() throws {
        let recorder = try recorder(#", "preEventSeconds": 1, "preEventMegabytes": 0.01"#)
        try send(300, to: recorder, [50: remove, 51: { try recorder.command("start") }, 250: makeFilms])
        let error = #expect(throws: FrameHostError.self) { try recorder.finish() }
        let found = try numbers("a-1.mp4")
        let first = try #require(found.first)
        #expect(found == Array(first..<300) && first > 100 && first % 10 == 0)
        #expect(
            error?.description.contains("\(first - 20) pictures that were to be recorded are in no file.") == true,
            "\(String(describing: error))")
        let names = recorder.takeEvents().map(\.name)
        #expect(names.filter { $0 == "recording-loses" }.count == 1)
        #expect(!names.contains("pre-event-too-small"))
    }

    /// The disk fails in the middle of a recording: what is in no file goes into the next one.
    @Test func goesOnAfterAFailure() throws {
        let recorder = try recorder(#", "preEventSeconds": 4, "preEventMegabytes": 1"#)
        try send(
            200, to: recorder,
            [
                20: { try recorder.command("start") },
                60: remove, 120: makeFilms, 180: { try recorder.command("stop") },
            ])
        try recorder.finish()
        // All of the removed file is still in memory.
        #expect(try FileManager.default.contentsOfDirectory(atPath: films).count == 1)
        #expect(try numbers("a-2.mp4") == Array(0..<180))
        let failed = recorder.takeEvents().filter { $0.name == "recording-did-fail" }
        #expect(failed.count == 1 && failed[0].text.contains("was removed while it was being written"))
    }

    /// What is stopped before it could be written is tried a last time.
    @Test(arguments: [true, false]) func triesALastTimeAtTheStop(isThere: Bool) throws {
        let recorder = try recorder(#", "preEventSeconds": 1, "preEventMegabytes": 1"#)
        try send(
            100, to: recorder,
            [
                50: {
                    try remove()
                    try recorder.command("start")
                },
                60: {
                    guard isThere else {
                        #expect(throws: FrameHostError.self) { try recorder.command("stop") }
                        return
                    }
                    try makeFilms()
                    try recorder.command("stop")
                },
            ])
        let error = Result { try recorder.finish() }
        guard isThere else {
            guard case .failure(let fault) = error else {
                Issue.record("it ended as if nothing had been lost")
                return
            }
            #expect("\(fault)".contains("40 pictures that were to be recorded are in no file."), "\(fault)")
            return
        }
        #expect(throws: Never.self) { try error.get() }
        #expect(try numbers("a-1.mp4") == Array(20..<60))
    }

    @Test func sparesTheDiskWhereATryHasWritten() {
        let fault = RecordingFault.unwritable("a.mp4", ENOSPC)
        var wait = RecordingWait(fault, firstUnit: 10, now: 0)
        #expect(wait.nextTry == 1_000_000_000)
        let times = [true, true, true, true, true, true, false].map { hasWritten in
            wait.failed(fault, hasWritten: hasWritten, firstUnit: 0, now: 0)
            return wait.nextTry / 1_000_000_000
        }
        #expect(times == [2, 4, 8, 16, 30, 30, 1])
        let lost = [5, 12, 12, 20].map { wait.drop(before: $0) }
        #expect(lost == [0, 2, 0, 8] && wait.firstUnit == 20)
    }
}
