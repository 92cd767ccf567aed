// SPDX-License-Identifier: Apache-2.0

import Glibc
import Testing

@testable import FrameCore

@Suite struct TraceRingTests {
    private func ring(_ capacity: Int, _ clock: ManualClock = ManualClock(at: 1)) -> TraceRing {
        let ring = TraceRing(.thread(name: "src:a"), capacity: capacity, clock: clock)
        ring.setOpen(true)
        return ring
    }

    @Test func keepsNothingWhileItIsClosed() {
        let ring = ring(4)
        ring.setOpen(false)
        ring.pen.level(1)
        #expect(ring.tail == 0 && ring.lost == 0)
    }

    @Test func losesTheNewestWhenFullAndTellsOfItFirst() {
        let ring = ring(4)
        for value in 0..<7 { ring.pen.level(value) }
        #expect(ring.tail == 4 && ring.lost == 3)
        #expect((0..<4).map { Int(ring[$0].value) } == [0, 1, 2, 3])
        // With room for one alone the loss could not be told.
        ring.release(to: 1)
        ring.pen.level(7)
        #expect(ring.tail == 4 && ring.lost == 4)
        ring.release(to: 2)
        ring.pen.level(8)
        #expect(ring.tail == 6 && ring.lost == 4)
        #expect(ring[4].kind == .gap && ring[4].value == 4)
        #expect(ring[5].kind == .level && ring[5].value == 8)
    }

    @Test func leavesOutWaitsThatAreNone() {
        let clock = ManualClock(at: 1)
        let ring = ring(8, clock)
        ring.pen.beginWait(.room)
        clock.advance(to: TracePen.shortestWait)
        ring.pen.endWait(stage: 3)
        #expect(ring.tail == 0)
        ring.pen.beginWait(.buffer)
        clock.advance(to: 10 * TracePen.shortestWait)
        ring.pen.endWait(stage: 3)
        #expect(ring.tail == 1)
        #expect(ring[0].kind == .wait && ring[0].value == TracePen.shortestWait && ring[0].stage == 3)
        #expect(ring[0].time == 10 * TracePen.shortestWait)
    }

    /// One writer, one reader, a ring that wraps around: every entry comes once, in order, or is counted.
    @Test func handsEntriesFromThreadToThread() throws {
        let ring = ring(64)
        let count = 200_000
        let writer = try TestThread("writer") {
            for value in 0..<count {
                ring.pen.level(value)
                if value % 1000 == 0 { sched_yield() }
            }
        }
        var next = 0
        var gaps = 0
        var isOver = false
        while !isOver {
            isOver = writer.isOver
            let tail = ring.tail
            for index in ring.head..<tail {
                let record = ring[index]
                if record.kind == .gap {
                    gaps += Int(record.value)
                    next += Int(record.value)
                } else {
                    guard record.value == next else {
                        Issue.record("\(record.value) came where \(next) was expected")
                        return
                    }
                    next += 1
                }
            }
            ring.release(to: tail)
        }
        writer.join()
        #expect(next + ring.lost - gaps == count)
    }
}

/// How the trace thread makes slices of a ring's entries.
@Suite struct TraceLaneTests {
    private static let graph = TraceStages.Graph(
        stages: [.init(number: 0, id: "src"), .init(number: 1, id: "mid"), .init(number: 2, id: "sink")],
        links: [.init(from: 0, to: 1), .init(from: 1, to: 2)])

    /// What is written of what `note` notes.
    private func trace(
        capacity: Int = 1024, parts: [(TracePen, ManualClock) -> Void], isLast: Bool = true
    ) throws -> ReadTrace {
        let clock = ManualClock(at: 1_000)
        let ring = TraceRing(.thread(name: "src:src"), capacity: capacity, clock: clock)
        ring.threadNumber.store(4711, ordering: .relaxed)
        ring.setOpen(true)
        var packets = PerfettoPackets(process: 4700)
        packets.begin(title: "test", at: 1_000, boot: 1_000, unix: 1_000)
        let names = TraceNames(&packets)
        var stages = TraceStages()
        stages.add(Self.graph)
        var lane = TraceLane(ring)
        for (index, part) in parts.enumerated() {
            part(ring.pen, clock)
            lane.write(
                to: &packets, &stages, names, now: clock.now(), isLast: isLast && index == parts.count - 1,
                learn: { _ in }, isFull: { _ in false })
        }
        let trace = try ReadTrace(packets.bytes.bytes)
        #expect(trace.faults.isEmpty, "\(trace.faults)")
        return trace
    }

    private func step(_ clock: ManualClock) { clock.advance(to: clock.now() + 100) }

    @Test func aSourcesSliceHasTheFrameThatItGivesLater() throws {
        let trace = try trace(
            parts: [
                { pen, clock in
                    pen.begin(.produce, stage: 0, frame: 0)
                    step(clock)
                },
                { pen, clock in
                    // Still waiting for its picture: nothing is said of it yet.
                    pen.beginWait(.time)
                    clock.advance(to: clock.now() + 10_000)
                    pen.endWait(stage: 0)
                },
                { pen, clock in
                    pen.emit(stage: 0, frame: 41)
                    pen.begin(.item, stage: 1, frame: 41)
                    step(clock)
                    pen.end()
                    pen.end()
                    pen.begin(.produce, stage: 0, frame: 42)
                    step(clock)
                    pen.end()
                },
            ])
        let calls = trace.slices("src")
        #expect(calls.count == 2)
        #expect(calls[0].frame == 41 && calls[0].depth == 0)
        #expect(calls[1].frame == nil && calls[1].flows.isEmpty, "a call that gave nothing has no frame")
        #expect(trace.slices("waits").map(\.depth) == [1])
        let next = try #require(trace.slices("mid").first)
        #expect(next.depth == 1 && next.frame == 41)
        #expect(calls[0].flows.count == 1 && next.flows.contains(calls[0].flows[0]))
    }

    /// A camera that gives nothing for a long time shows that it is asked.
    @Test func aCallThatLastsLongIsWrittenBeforeItEnds() throws {
        let trace = try trace(
            parts: [
                { pen, clock in
                    pen.begin(.produce, stage: 0, frame: 0)
                    clock.advance(to: clock.now() + TraceLane.longestPatience + 1)
                },
                { _, _ in },
            ], isLast: false)
        #expect(trace.slices("src").count == 1 && trace.slices("src")[0].end == nil)
    }

    @Test func furtherItemsOfOneCallAreMarks() throws {
        let trace = try trace(
            parts: [
                { pen, clock in
                    pen.begin(.produce, stage: 0, frame: 0)
                    for frame in UInt64(0)..<3 {
                        step(clock)
                        pen.emit(stage: 0, frame: frame)
                    }
                    pen.end()
                }
            ])
        #expect(trace.slices("src").map(\.frame) == [0])
        #expect(trace.marks.filter { $0.name == "gives" }.map(\.frame) == [1, 2])
        #expect(Set(trace.marks.flatMap(\.flows) + trace.slices.flatMap(\.flows)).count == 3)
    }

    /// Whoever names events cannot make the trace thread keep names for ever.
    @Test func namesAreBounded() throws {
        var packets = PerfettoPackets(process: 1)
        packets.begin(title: "test", at: 1, boot: 1, unix: 1)
        for index in 0..<2 * PerfettoPackets.mostNames {
            let number = packets.number(of: "event \(index)")
            packets.mark(number, .event, on: PerfettoPackets.eventTrack, at: 2)
        }
        let trace = try ReadTrace(packets.bytes.bytes)
        #expect(trace.faults.isEmpty && trace.marks.count == 2 * PerfettoPackets.mostNames)
        #expect(trace.marks.last?.name == "other" && trace.marks.first?.name == "event 0")
        #expect(Set(trace.marks.map(\.name)).count == PerfettoPackets.mostNames)
    }

    @Test func slicesNestWhereEntriesWereLost() throws {
        // The ring holds eight; each part notes more than that.
        let burst: (TracePen, ManualClock) -> Void = { pen, clock in
            for frame in UInt64(0)..<7 {
                pen.begin(.produce, stage: 0, frame: frame)
                step(clock)
                pen.emit(stage: 0, frame: frame)
                pen.begin(.item, stage: 1, frame: frame)
                step(clock)
                pen.begin(.item, stage: 2, frame: frame)
                step(clock)
                pen.end()
                pen.end()
                pen.end()
            }
        }
        let trace = try trace(capacity: 8, parts: Array(repeating: burst, count: 9))
        #expect(trace.marks.contains { $0.name == "entries lost" })
        #expect(trace.slices.allSatisfy { $0.depth <= 2 }, "a lost end leaves nothing open for the next frame")
        for slice in trace.slices {
            let most = try #require(["src": 0, "mid": 1, "sink": 2][slice.name])
            #expect(slice.depth <= most, "\(slice)")
        }
    }
}
