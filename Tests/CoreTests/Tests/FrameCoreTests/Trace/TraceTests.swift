// SPDX-License-Identifier: Apache-2.0

import Glibc
import Synchronization
import Testing

@testable import FrameCore

/// Traces of chains that run.
@Suite struct TraceTests {
    /// Runs a chain to its end with a trace; `tick` is handed all events so far.
    private func trace(
        _ sketch: ChainSketch, mostBytes: Int = 1 << 30, clock: ChainClock = ChainClock(),
        tick: (Chain, [Event]) -> Void = { _, _ in }
    ) throws -> (trace: ReadTrace, events: [Event]) {
        let path = try TraceBytes.path("run.pftrace")
        defer { TraceBytes.remove(path) }
        let chain = try Chain(sketch.request, clock: clock, traced: true)
        try chain.openTrace(path, as: "--trace", mostBytes: mostBytes)
        let subscription = chain.subscribe()
        var events: [Event] = []
        let result = chain.run {
            events += subscription.take().events
            tick(chain, events)
        }
        #expect(result.isSuccess, "\(result)")
        let trace = try ReadTrace(path: path)
        #expect(trace.faults.isEmpty, "\(trace.faults)")
        #expect(chain.ledger.isBalanced)
        return (trace, events)
    }

    /// Counts of a run that end well hold for every trace of a chain.
    private func checkLevels(_ trace: ReadTrace, _ name: String, most: Int, endsAt last: Int = 0) {
        let levels = trace.levels[name] ?? []
        #expect(!levels.isEmpty, "\(name) is not among \(trace.levels.keys)")
        #expect(levels.allSatisfy { (0...most).contains($0.value) }, "\(name): \(levels.map(\.value).max() ?? 0)")
        #expect(levels.last?.value == last, "\(name)")
        for (one, next) in zip(levels, levels.dropFirst()) { #expect(one.time <= next.time) }
    }

    @Test func aFrameFlowsThroughEveryStage() throws {
        var sketch = ChainSketch()
        try sketch.add(CountingSource.self, "src", options: #"{"count": 200}"#)
        try sketch.add(ProbeFilter.self, "near")
        try sketch.add(ProbeFilter.self, "far", link: LinkRequest(queue: 4))
        try sketch.add(RecordingSink.self, "sink", options: #"{"log": "trace-plain"}"#)
        let (trace, events) = try trace(sketch, clock: SlowClock())
        for name in ["src", "near", "far", "sink"] {
            let frames = trace.slices(name).compactMap(\.frame)
            #expect(frames == Array(0..<200), "\(name): \(frames.count) frames")
            #expect(trace.slices(name).allSatisfy { $0.end != nil })
        }
        #expect(trace.slices("near").allSatisfy { $0.lane == "src:src" && $0.depth == 1 })
        #expect(Set(trace.slices("far").map(\.lane)) == ["stg:far"])
        #expect(trace.slices("far").allSatisfy { $0.depth == 0 })
        // Each frame: by one arrow from each stage to the next, forward in time.
        let stages = ["src", "near", "far", "sink"].map { name in
            Dictionary(grouping: trace.slices(name).filter { $0.frame != nil }, by: { $0.frame! })
        }
        for frame in 0..<200 {
            for (one, next) in zip(stages, stages.dropFirst()) {
                let (from, to) = (try #require(one[frame]?.first), try #require(next[frame]?.first))
                let shared = Set(from.flows).intersection(to.flows)
                #expect(shared.count == 1 && from.begin <= to.begin, "frame \(frame): \(from) → \(to)")
            }
        }
        let flows = Dictionary(grouping: trace.slices.flatMap(\.flows), by: { $0 })
        #expect(flows.count == 600 && flows.values.allSatisfy { $0.count == 2 })
        // Calls that are none for a frame.
        for name in ["src start", "near start", "sink drain", "far stop", "sink stop"] {
            #expect(trace.slices(name).count == 1)
        }
        #expect(Set(trace.slices("src start").map(\.lane)) == ["setup"])
        checkLevels(trace, "queue near → far", most: 4)
        let pool = try #require(trace.levels.keys.first { $0 == "pool src" })
        checkLevels(trace, pool, most: 64)
        #expect(
            trace.marks.contains {
                $0.track == "events" && $0.name == "state" && $0.texts.contains("chain: streaming.")
            })
        #expect(trace.marks.contains { $0.name == "trace ends" })
        let end = try #require(events.last { $0.name == "trace-did-stop" })
        #expect(end.level == .info && end.details["lost"]?.asInt == 0)
        #expect(end.text.hasSuffix(" kB; ui.perfetto.dev shows it."), "\(end.text)")
    }

    @Test func aForkHasAnArrowForEachBranchAndAJoinOneForEachInput() throws {
        var sketch = ChainSketch()
        try sketch.add(CountingSource.self, "src", options: #"{"count": 60}"#)
        try sketch.add(ProbeFilter.self, "a", from: ["src"])
        try sketch.add(ProbeFilter.self, "b", from: ["src"])
        try sketch.add(PairJoin.self, "pair", from: ["a", "b"])
        try sketch.add(RecordingSink.self, "sink", options: #"{"log": "trace-join"}"#)
        let (trace, _) = try trace(sketch, clock: SlowClock())
        let sources = trace.slices("src").filter { $0.frame != nil }
        #expect(sources.count == 60 && sources.allSatisfy { $0.flows.count == 2 })
        let joins = trace.slices("pair").filter { $0.frame != nil }
        #expect(joins.count == 60 && joins.allSatisfy { $0.flows.count == 3 }, "\(joins.first?.flows.count ?? 0)")
        for (index, join) in joins.enumerated() {
            for name in ["a", "b"] {
                let before = trace.slices(name).first { $0.frame == index }
                #expect(Set(before?.flows ?? []).intersection(join.flows).count == 1)
            }
            let after = trace.slices("sink").first { $0.frame == index }
            #expect(Set(after?.flows ?? []).intersection(join.flows).count == 1)
        }
    }

    @Test func dropsAreMarks() throws {
        var sketch = ChainSketch()
        try sketch.add(CountingSource.self, "src", options: #"{"count": 300}"#)
        try sketch.add(ProbeFilter.self, "mid", options: #"{"dropEvery": 3}"#, from: ["src"])
        try sketch.add(RecordingSink.self, "sink", options: #"{"log": "trace-drops"}"#)
        try sketch.add(
            RecordingSink.self, "slow", options: #"{"log": "trace-slow", "sleepUs": 2000}"#, from: ["src"],
            link: LinkRequest(whenFull: .latest))
        let (trace, _) = try trace(sketch)
        let atStage = trace.marks.filter { $0.name == "drop: byStage" }
        #expect(atStage.compactMap(\.frame) == Array(stride(from: 0, to: 300, by: 3)))
        #expect(atStage.allSatisfy { $0.texts == ["mid"] && $0.track == "stg:mid" })
        let atLink = trace.marks.filter { $0.name == "drop: replaced" }
        #expect(!atLink.isEmpty && atLink.allSatisfy { $0.track == "queue src → slow" && $0.texts == ["slow"] })
        let seen = trace.slices("slow").compactMap(\.frame).count
        #expect(seen + atLink.reduce(0) { $0 + ($1.count ?? 0) } == 300)
    }

    @Test func aWaitForRoomIsASlice() throws {
        var sketch = ChainSketch()
        try sketch.add(CountingSource.self, "src", options: #"{"count": 40}"#)
        try sketch.add(
            RecordingSink.self, "slow", options: #"{"log": "trace-wait", "sleepUs": 20000}"#,
            link: LinkRequest(queue: 2))
        let (trace, _) = try trace(sketch)
        let waits = trace.slices.filter { $0.name.hasPrefix("waits for") }
        #expect(waits.count >= 5 && waits.allSatisfy { $0.lane == "src:src" && $0.depth == 1 }, "\(waits.count)")
        let longest = waits.map { ($0.end ?? 0) - $0.begin }.max() ?? 0
        #expect(longest > 1_000_000, "\(longest) ns")
    }

    @Test func aStageThatAnswersLaterKeepsTheArrowOfEachFrame() throws {
        var sketch = ChainSketch()
        try sketch.add(CountingSource.self, "src", options: #"{"count": 50}"#)
        try sketch.add(CopyTransform.self, "late", options: #"{"delay": 3}"#)
        try sketch.add(RecordingSink.self, "sink", options: #"{"log": "trace-units"}"#)
        let (trace, _) = try trace(sketch)
        // What a stage gives later keeps the arrow of its own frame.
        for frame in 0..<50 {
            let (from, to) = (
                trace.slices("late").first { $0.frame == frame }, trace.slices("sink").first { $0.frame == frame }
            )
            #expect(Set(from?.flows ?? []).intersection(to?.flows ?? []).count == 1, "frame \(frame)")
        }
        checkLevels(trace, "pool late", most: 64)
    }

    @Test func unitsAndTheirMemoryAreTraced() throws {
        var sketch = ChainSketch()
        try sketch.add(CountingSource.self, "src", options: #"{"count": 50}"#)
        try sketch.add(UnitEncoder.self, "enc")
        try sketch.add(UnitSink.self, "sink", link: LinkRequest(queue: 4))
        let (trace, _) = try trace(sketch)
        for frame in 0..<50 {
            let (from, to) = (
                trace.slices("enc").first { $0.frame == frame }, trace.slices("sink").first { $0.frame == frame }
            )
            #expect(Set(from?.flows ?? []).intersection(to?.flows ?? []).count == 1, "frame \(frame)")
        }
        checkLevels(trace, "memory enc", most: 1 << 30)
        checkLevels(trace, "queue enc → sink", most: 4)
    }

    @Test func stagesThatComeAndGoWhileTheChainRunsAreThere() throws {
        let path = try TraceBytes.path("changes.pftrace")
        defer { TraceBytes.remove(path) }
        var plain = ChainSketch()
        try plain.add(CountingSource.self, "src", options: #"{"count": 1000000, "everyMs": 10}"#)
        try plain.add(ProbeFilter.self, "mid")
        try plain.add(RecordingSink.self, "sink", options: #"{"log": "trace-changes"}"#)
        let driver = try RunningChainDriver(plain, tracePath: path)
        driver.waitForFrames(20)
        var more = plain
        try more.add(
            RecordingSink.self, "late", options: #"{"log": "trace-late"}"#, from: ["src"],
            link: LinkRequest(copies: true))
        let attached = driver.change(to: more)
        #expect(attached.isOK, "\(attached.error)")
        #expect(eventually { RecordingSink.log("trace-late").entries.count >= 30 })
        let detached = driver.change(to: plain)
        #expect(detached.isOK, "\(detached.error)")
        driver.waitForEvent { $0.name == "branch-ended" }
        var other = ChainSketch()
        try other.add(CountingSource.self, "src", options: #"{"count": 1000000, "everyMs": 10}"#)
        try other.add(CopyTransform.self, "mid")
        try other.add(RecordingSink.self, "sink", options: #"{"log": "trace-changes"}"#)
        let replaced = driver.change(to: other)
        #expect(replaced.isOK, "\(replaced.error)")
        driver.waitForFrames(Int(replaced.frame) + 30)
        #expect(driver.finish().isSuccess)
        let trace = try ReadTrace(path: path)
        #expect(trace.faults.isEmpty, "\(trace.faults)")
        let late = trace.slices("late").compactMap(\.frame)
        #expect(late.first == Int(attached.frame) && late.count >= 20, "\(late.first ?? -1), \(late.count)")
        for frame in late {
            let copy = trace.slices("late-copy").first { $0.frame == frame }
            let sink = trace.slices("late").first { $0.frame == frame }
            #expect(Set(copy?.flows ?? []).intersection(sink?.flows ?? []).count == 1)
        }
        #expect(
            trace.marks.contains { $0.name == "stage-attached" } && trace.marks.contains { $0.name == "stage-replaced" }
        )
        #expect(trace.lanes.contains("changes"))
        // The new kind has a pool, and its slices go on under the same name.
        #expect(trace.levels["pool mid"]?.isEmpty == false)
        #expect(trace.slices("mid").compactMap(\.frame).count > Int(replaced.frame))
    }

    // MARK: The file

    @Test func anExistingFileAndTheChainsOwnAreRefused() throws {
        let path = try TraceBytes.path("old.pftrace")
        defer { TraceBytes.remove(path) }
        let old = open(path, O_WRONLY | O_CREAT, 0o600)
        _ = write(old, "old", 3)
        close(old)
        var sketch = ChainSketch()
        try sketch.add(CountingSource.self, "src")
        try sketch.add(RecordingSink.self, "sink")
        sketch.request.file = "\(FileNames.folder(of: path))/chain.json"
        func refusal(_ path: String) -> String {
            do {
                let chain = try Chain(sketch.request, traced: true)
                try chain.openTrace(path, as: "--trace", mostBytes: 1 << 20)
                return ""
            } catch { return "\(error)" }
        }
        #expect(refusal(path) == "--trace: '\(path)' already exists. Name another file.")
        #expect(try TraceBytes.of(path) == Array("old".utf8))
        #expect(
            refusal(sketch.request.file) == "--trace: '\(sketch.request.file)' is the chain file. Name another file.")
        #expect(
            refusal("/no/such/folder/t")
                == "--trace: '/no/such/folder/t' cannot be written: No such file or directory. Create the folder, or correct the name."
        )
        let folder = FileNames.folder(of: path)
        #expect(refusal(folder) == "--trace: '\(folder)' is a folder. Name a file in it.")
    }

    @Test func aTraceThatHasAllItMayHaveEndsAndTheRunGoesOn() throws {
        var sketch = ChainSketch()
        try sketch.add(CountingSource.self, "src", options: #"{"count": 100000000}"#)
        try sketch.add(ProbeFilter.self, "mid", link: LinkRequest(queue: 4))
        try sketch.add(RecordingSink.self, "sink", options: #"{"log": "trace-full", "sleepUs": 20}"#)
        let deadline = ChainClock.system.now() + 120_000_000_000
        var (atEnd, delivered): (Int?, Int) = (nil, 0)
        let (trace, events) = try trace(sketch, mostBytes: Chain.leastTraceBytes) { chain, seen in
            delivered = chain.ledger.delivered
            if ChainClock.system.now() > deadline { chain.cancel() }
            guard seen.contains(where: { $0.name == "trace-did-stop" }) else { return }
            if let atEnd, delivered > atEnd { chain.drain() }
            atEnd = atEnd ?? delivered
        }
        #expect(RecordingSink.log("trace-full").entries.count == delivered)
        let end = try #require(events.first { $0.name == "trace-did-stop" })
        let bytes = try #require(end.details["bytes"]?.asInt)
        #expect(bytes <= Chain.leastTraceBytes && bytes > Chain.leastTraceBytes - 40_000, "\(bytes)")
        #expect(
            end.level == .warning && end.text.contains("' ends here, because it has reached its limit with "))
        #expect(end.text.hasSuffix("Allow a larger trace with --trace-megabytes."), "\(end.text)")
        #expect(events.filter { $0.name == "trace-did-stop" }.count == 1)
        let last = try #require(trace.marks.last { $0.track == "events" })
        #expect(last.name.hasPrefix("trace ends"))
        #expect(end.details["lost"]?.asInt == last.count ?? 0, "what came after the end is not missing")
        #expect(trace.slices("sink").count < delivered)
    }

    /// full(4): every write fails with ENOSPC.
    @Test func aFullDiskEndsTheTraceAndNotTheRun() throws {
        var sketch = ChainSketch()
        try sketch.add(CountingSource.self, "src", options: #"{"count": 100}"#)
        try sketch.add(RecordingSink.self, "sink", options: #"{"log": "trace-enospc"}"#)
        let chain = try Chain(sketch.request, traced: true)
        try chain.openTrace("/dev/full", as: "--trace", mostBytes: 1 << 30)
        let events = chain.subscribe()
        #expect(chain.run().isSuccess)
        #expect(RecordingSink.log("trace-enospc").entries.count == 100)
        let ends = events.take().events.filter { $0.name == "trace-did-stop" }
        #expect(
            ends.map(\.text) == [
                "The trace ends here with 0 kB; the run goes on. '/dev/full' cannot be written: No space left on device. Free some space, or name a file on another disk."
            ])
        #expect(ends.first?.level == .warning)
        #expect(
            chain.traceFault?.description
                == "--trace: '/dev/full' cannot be written: No space left on device. Free some space, or name a file on another disk."
        )
    }

    /// A program that asked for a trace hears at the end where it is not whole. Its limit was asked for too.
    @Test func aTraceWithGapsIsAFaultAndItsLimitIsNone() {
        func fault(_ end: Tracer.Outcome.End, lost: Int) -> String? {
            Tracer.Outcome(end: end, byteCount: 1000, lost: lost).fault(of: "run.pftrace")?.description
        }
        #expect(fault(.finished, lost: 0) == nil && fault(.full, lost: 0) == nil)
        #expect(
            fault(.finished, lost: 1)
                == "'run.pftrace' has gaps: 1 entry was lost. End other programs, or lower the frame rate of the chain."
        )
        #expect(fault(.full, lost: 12)?.hasPrefix("'run.pftrace' has gaps: 12 entries were lost.") == true)
        #expect(fault(.failed(ENOSPC), lost: 12)?.hasPrefix("'run.pftrace' cannot be written: ") == true)
    }

    /// Events that the trace thread does not take in time are missing in the trace as entries are.
    @Test func countsLostEventsAsLost() throws {
        let path = try TraceBytes.path("events.pftrace")
        defer { TraceBytes.remove(path) }
        let (hub, files) = (EventHub(), RunFiles())
        let file = TraceFile(file: try files.create(path, as: "--trace"), mostBytes: 1 << 20)
        var writer = TraceWriter(file, title: "events", clock: ChainClock(), events: hub.subscribe(capacity: 4))
        for _ in 0..<8 { hub.post(Event(name: "log", level: .info, text: "a", time: 1)) }
        _ = writer.writeAll(isLast: true) { _ in }
        let code = writer.flush()
        let outcome = writer.close(.finished)
        #expect(code == 0 && outcome.lost == 4)
    }

    /// Writing the last packets may take seconds, in which the chain runs on.
    @Test func countsNothingAsLostAfterItsEnd() throws {
        let path = try TraceBytes.path("late.pftrace")
        defer { TraceBytes.remove(path) }
        let (hub, files, clock) = (EventHub(), RunFiles(), ChainClock())
        let file = TraceFile(file: try files.create(path, as: "--trace"), mostBytes: 1 << 20)
        var writer = TraceWriter(file, title: "late", clock: clock, events: hub.subscribe(capacity: 4))
        let ring = TraceRing(.queue(name: "a → b"), capacity: 4, clock: clock)
        ring.setOpen(true)
        writer.add([ring])
        for depth in 0..<5 { ring.pen.level(depth) }
        writer.sayEnd(isFull: true)
        for depth in 0..<8 { ring.pen.level(depth) }
        let code = writer.flush()
        let outcome = writer.close(.full)
        #expect(code == 0 && outcome.lost == 1)
        let end = try #require(try ReadTrace(path: path).marks.last)
        #expect(end.name == "trace ends, entries were lost" && end.count == 1)
    }

    /// The writer of a file takes back what a failed write left of a packet.
    @Test func aFileEndsWithAWholePacketWhereWritingFails() throws {
        let path = try TraceBytes.path("cut.pftrace")
        defer { TraceBytes.remove(path) }
        let files = RunFiles()
        var file = TraceFile(file: try files.create(path, as: "--trace"), mostBytes: 1 << 20)
        #expect(file.write([1, 2, 3]) == 0)
        // As a disk would: what it is to write on is gone.
        _ = file.close()
        #expect(file.write([4, 5, 6]) == EBADF)
        #expect(file.byteCount == 3)
        #expect(try TraceBytes.of(path) == [1, 2, 3])
    }

    @Test func aChainThatIsTracedWithoutAFileRunsAsEver() throws {
        var sketch = ChainSketch()
        try sketch.add(CountingSource.self, "src", options: #"{"count": 100}"#)
        try sketch.add(RecordingSink.self, "sink", options: #"{"log": "trace-none"}"#)
        let chain = try Chain(sketch.request, traced: true)
        let events = chain.subscribe()
        #expect(chain.run().isSuccess)
        #expect(!events.take().events.contains { $0.name == "trace-did-stop" })
        #expect(chain.traceFault == nil)
    }
}

/// A thousand times slower than the system's: the trace waits for the item of a call however long its thread rests.
private final class SlowClock: ChainClock, @unchecked Sendable {
    override func now() -> Int64 { super.now() / 1000 }
}
