// SPDX-License-Identifier: Apache-2.0

import Glibc
import Testing

@testable import FrameCore

/// Changes of a chain while frames flow.
@Suite struct RunningGraphTests {
    /// A paced chain of a source that waits, a filter and a sink: what is lost is lost by the change.
    private func base(_ log: String, spare: Int = 4) throws -> ChainSketch {
        var sketch = ChainSketch()
        sketch.request.spare = spare
        try sketch.add(CountingSource.self, "src", options: #"{"count": 1000000, "everyMs": 1}"#)
        try sketch.add(ProbeFilter.self, "mark")
        try sketch.add(RecordingSink.self, "file", options: #"{"log": "\#(log)"}"#)
        return sketch
    }

    /// Whether every number from the first to the last is there once.
    private func isGapless(_ log: String) -> Bool {
        let numbers = RecordingSink.log(log).entries.map(\.sequence)
        return numbers.indices.dropFirst().allSatisfy { numbers[$0] == numbers[$0 - 1] + 1 }
    }

    /// A change's thread is known before it runs. It is not the last thread of a chain then.
    @Test func manyChangesEndNoChainOfOneThread() throws {
        var sketch = ChainSketch()
        try sketch.add(CountingSource.self, "src", options: #"{"count": 1000000000}"#)
        try sketch.add(ProbeFilter.self, "mark")
        try sketch.add(CountSink.self, "sink")
        let driver = try RunningChainDriver(sketch)
        #expect(driver.chain.graph.stageThreads.count == 1)
        for turn in 0..<5000 {
            let answer = driver.answer {
                turn % 2 == 0
                    ? driver.chain.pause(stage: "mark", reply: $0) : driver.chain.resume(stage: "mark", reply: $0)
            }
            guard answer.isOK else {
                Issue.record("turn \(turn): \(answer.error)")
                break
            }
        }
        let result = driver.finish()
        #expect(result.isSuccess, "\(result)")
    }

    // MARK: Attach, detach

    @Test(arguments: ["src", "mark"]) func attachesABranchAndTakesItAwayWithoutAGapElsewhere(at: String) throws {
        let log = "attach-\(at)"
        let plain = try base(log)
        let driver = try RunningChainDriver(plain)
        driver.waitForFrames(20)
        let (pool, need) = (driver.chain.pools[0], driver.chain.plan.budget.pools[0].need)
        #expect(pool.touchedCount == need && pool.bufferCount == need + 4)
        var longer = plain
        try longer.add(RecordingSink.self, "late", options: #"{"log": "\#(log)-late"}"#, from: [at])
        let attached = driver.change(to: longer)
        #expect(attached.isOK, "\(attached.error)")
        #expect(attached.details["attached"] == ["late"])
        #expect(driver.chain.pools[0] === pool && pool.touchedCount > need)
        #expect(pool.touchedCount == driver.chain.plan.budget.pools[0].need)
        driver.waitForFrames(Int(attached.frame) + 50)
        let detached = driver.change(to: plain)
        #expect(detached.isOK, "\(detached.error)")
        #expect(detached.details["detached"] == ["late"])
        driver.waitForEvent { $0.name == "branch-ended" }
        driver.waitForFrames(Int(detached.frame) + 20)
        let result = driver.finish()
        #expect(result.isSuccess, "\(result)")
        #expect(isGapless(log))
        #expect(isGapless("\(log)-late"))
        let late = RecordingSink.log("\(log)-late").entries.map(\.sequence)
        #expect(late.first == attached.frame)
        #expect(late.last.map { $0 + 1 == detached.frame } ?? false, "\(late.last ?? 0), \(detached.frame)")
        // Each refusal before may have begun one and ended it.
        #expect((1...1 + attached.refusals).contains(RecordingSink.log("\(log)-late").stops))
        #expect(driver.chain.ledger.isBalanced)
    }

    @Test func attachesABranchOfSeveralStagesWithAWriterAndAQueue() throws {
        let plain = try base("long", spare: 8)
        let driver = try RunningChainDriver(plain)
        var longer = plain
        try longer.add(CopyTransform.self, "copy", options: #"{"delay": 2}"#, from: ["mark"])
        try longer.add(AddOne.self, "plus")
        try longer.add(RecordingSink.self, "late", options: #"{"log": "long-late"}"#, link: LinkRequest(queue: 2))
        let attached = driver.change(to: longer)
        #expect(attached.isOK, "\(attached.error)")
        driver.waitForFrames(Int(attached.frame) + 50)
        let detached = driver.change(to: plain)
        #expect(detached.isOK, "\(detached.error)")
        driver.waitForEvent { $0.name == "branch-ended" }
        let result = driver.finish()
        #expect(result.isSuccess, "\(result)")
        #expect(isGapless("long"))
        let late = RecordingSink.log("long-late").entries
        #expect(late.count > 30)
        #expect(late.allSatisfy { $0.pixel == UInt8(truncatingIfNeeded: $0.sequence + 1) })
        #expect(late.last.map { $0.sequence + 1 == detached.frame } ?? false, "what the branch held came out as well")
    }

    /// From the middle of what runs on one thread: a filter, and a transform that holds items, behind a source and behind
    /// a queue. What the transform holds goes on to the stage behind it, which stays.
    @Test(arguments: [0, 2]) func takesStagesFromTheMiddle(queue: Int) throws {
        let log = "middle-\(queue)"
        func chain(filter: Bool, transform: Bool) throws -> ChainSketch {
            var sketch = ChainSketch()
            try sketch.add(CountingSource.self, "src", options: #"{"count": 1000000, "everyMs": 1}"#)
            try sketch.add(ProbeFilter.self, "first", link: LinkRequest(queue: queue))
            if filter {
                try sketch.add(
                    DoorFilter.self, "mark", options: #"{"log": "\#(log)-mark"}"#, link: LinkRequest(queue: 0))
            }
            if transform {
                try sketch.add(CopyTransform.self, "copy", options: #"{"delay": 3}"#, link: LinkRequest(queue: 0))
            }
            try sketch.add(RecordingSink.self, "file", options: #"{"log": "\#(log)"}"#, link: LinkRequest(queue: 0))
            return sketch
        }
        let driver = try RunningChainDriver(try chain(filter: true, transform: true))
        driver.waitForFrames(20)
        let first = driver.change(to: try chain(filter: false, transform: true))
        #expect(first.isOK, "\(first.error)")
        driver.waitForFrames(Int(first.frame) + 20)
        let second = driver.change(to: try chain(filter: false, transform: false))
        #expect(second.isOK, "\(second.error)")
        driver.waitForFrames(Int(second.frame) + 20)
        let result = driver.finish()
        #expect(result.isSuccess, "\(result)")
        #expect(isGapless(log))
        #expect(RecordingSink.log(log).entries.last.map { Int($0.sequence) >= Int(second.frame) + 19 } ?? false)
        #expect(RecordingSink.log(log).stops == 1)
        #expect(DoorSink.log("\(log)-mark").stops == 1)
        #expect(driver.chain.ledger.isBalanced)
        #expect(driver.chain.ledger.dropped == 0)
    }

    /// The filter that stays gets another reader; those behind it go, over a queue.
    @Test(arguments: [false, true]) func takesTheRestOfAWayAndItsQueue(transform: Bool) throws {
        let log = "rest-\(transform)"
        var long = ChainSketch()
        try long.add(CountingSource.self, "src", options: #"{"count": 1000000, "everyMs": 1}"#)
        try long.add(ProbeFilter.self, "first", link: LinkRequest(queue: 2))
        var short = long
        if transform {
            try long.add(CopyTransform.self, "part", options: #"{"delay": 3}"#, link: LinkRequest(queue: 0))
        } else {
            try long.add(ProbeFilter.self, "part", link: LinkRequest(queue: 0))
        }
        try long.add(RecordingSink.self, "far", options: #"{"log": "\#(log)-far"}"#, link: LinkRequest(queue: 2))
        try short.add(RecordingSink.self, "near", options: #"{"log": "\#(log)-near"}"#, link: LinkRequest(queue: 0))
        let driver = try RunningChainDriver(long)
        driver.waitForFrames(20)
        let changed = driver.change(to: short)
        #expect(changed.isOK, "\(changed.error)")
        driver.waitForEvent { $0.name == "branch-ended" }
        driver.waitForFrames(Int(changed.frame) + 20)
        let result = driver.finish()
        #expect(result.isSuccess, "\(result)")
        #expect(isGapless("\(log)-far") && isGapless("\(log)-near"))
        let (far, near) = (RecordingSink.log("\(log)-far"), RecordingSink.log("\(log)-near"))
        #expect(far.entries.last.map { $0.sequence + 1 } == near.entries.first?.sequence)
        #expect(far.stops == 1 && (1...1 + changed.refusals).contains(near.stops))
        #expect(driver.chain.ledger.isBalanced && driver.chain.ledger.dropped == 0, "\(driver.chain.ledger)")
    }

    /// The stage behind keeps buffers of the pool before until the new one gives it something, for which that one wants
    /// buffers of the same pool.
    @Test(arguments: [0, 2]) func countsWhatAStageBehindKeepsWhenOneComesBetween(spare: Int) throws {
        let log = "between-\(spare)"
        func chain(_ isLonger: Bool) throws -> ChainSketch {
            var sketch = ChainSketch()
            sketch.request.spare = spare
            try sketch.add(CountingSource.self, "src", options: #"{"count": 1000000, "everyMs": 1}"#)
            if isLonger {
                try sketch.add(CopyTransform.self, "new", options: #"{"delay": 2}"#, link: LinkRequest(queue: 0))
            }
            try sketch.add(CopyTransform.self, "late", options: #"{"delay": 2}"#, link: LinkRequest(queue: 0))
            try sketch.add(RecordingSink.self, "file", options: #"{"log": "\#(log)"}"#, link: LinkRequest(queue: 0))
            return sketch
        }
        let driver = try RunningChainDriver(try chain(false))
        driver.waitForFrames(20)
        let changed = driver.change(to: try chain(true))
        if spare == 0 {
            #expect(
                changed.error.contains("'new' needs 2 buffers more than pool 'src' has to spare"), "\(changed.error)")
        } else {
            #expect(changed.isOK, "\(changed.error)")
        }
        driver.waitForFrames(driver.chain.progress.captured + 50)
        let result = driver.finish()
        #expect(result.isSuccess, "\(result)")
        #expect(isGapless(log))
    }

    @Test func takesAStuckBranchAwayAndNamesItWhileTheRestGoesOn() throws {
        var sketch = try base("stuck")
        sketch.request.drainSeconds = 0.3
        var longer = sketch
        try longer.add(RecordingSink.self, "late", options: #"{"log": "stuck-late", "pauseAt": 60}"#, from: ["src"])
        let driver = try RunningChainDriver(longer)
        waitForHang(of: "late", at: 60, driver)
        let detached = driver.change(to: sketch)
        #expect(detached.isOK, "\(detached.error)")
        let abandoned = driver.waitForEvent { $0.name == "stage-abandoned" }
        #expect(
            abandoned?.text.hasPrefix(
                "late (recording-sink) did not return within 800 ms after the stop and was abandoned")
                == true)
        // The run itself has its time to end.
        sketch.request.drainSeconds = 60
        #expect(driver.change(to: sketch).isOK)
        let before = driver.chain.progress.captured
        driver.waitForFrames(before + 50)
        let result = driver.finish()
        #expect(result.abandoned == ["late (recording-sink)"])
        #expect(
            result.failures.map(\.description) == [
                "late (recording-sink): the detached branch did not finish within 0.300 s and was stopped; the items that 'late' still had are lost. Raise \"drainSeconds\" in the chain file if the branch needs longer."
            ])
        #expect(result.ledgerFaults.isEmpty, "\(result)")
        #expect(isGapless("stuck"))
    }

    /// A call of this frame or a later one: a busy machine may make one before it long.
    @discardableResult
    private func waitForHang(of stage: String, at frame: Int, _ driver: RunningChainDriver) -> Event? {
        driver.waitForEvent {
            $0.name == "stage-hangs" && $0.stage == stage && $0.details["frame"]?.asInt ?? 0 >= frame
        }
    }

    /// The stuck thread keeps one buffer of what was to spare; what waited in its queue comes back.
    @Test func plansWithoutTheBuffersThatAnAbandonedBranchKeeps() throws {
        let log = "lost"
        var plain = try base(log, spare: 3)
        plain.request.drainSeconds = 0.3
        let driver = try RunningChainDriver(plain)
        var stuck = plain
        try stuck.add(RecordingSink.self, "late", options: #"{"log": "\#(log)-late", "pauseAt": 60}"#, from: ["src"])
        #expect(driver.change(to: stuck).isOK)
        waitForHang(of: "late", at: 60, driver)
        #expect(driver.change(to: plain).isOK)
        driver.waitForEvent { $0.name == "stage-abandoned" }
        // The run itself has its time to end.
        plain.request.drainSeconds = 60
        #expect(driver.change(to: plain).isOK)
        let pool = try #require(driver.chain.pools.first)
        #expect(driver.chain.buffersLost(in: pool) == 1)
        var again = plain
        try again.add(RecordingSink.self, "again", options: #"{"log": "\#(log)-again"}"#, from: ["src"])
        let refused = driver.change(to: again)
        #expect(!refused.isOK)
        #expect(refused.error.contains("'again' needs 1 buffer more than pool 'src' has to spare"), "\(refused.error)")
        var shorter = plain
        try shorter.add(
            RecordingSink.self, "again", options: #"{"log": "\#(log)-again"}"#, from: ["src"],
            link: LinkRequest(queue: 1))
        let attached = driver.change(to: shorter)
        #expect(attached.isOK, "\(attached.error)")
        driver.waitForFrames(Int(attached.frame) + 50)
        let result = driver.finish()
        #expect(result.abandoned == ["late (recording-sink)"])
        #expect(result.failures.map(\.place.stage) == ["late"], "\(result)")
        #expect(result.ledgerFaults.isEmpty, "\(result)")
        #expect(isGapless(log))
        #expect(isGapless("\(log)-again"))
    }

    @Test func changesNothingWhereAnAttachedStageDoesNotStart() throws {
        let plain = try base("no-start")
        let driver = try RunningChainDriver(plain)
        var longer = plain
        try longer.add(UnstartableSink.self, "late", from: ["mark"])
        let answer = driver.change(to: longer)
        #expect(!answer.isOK)
        #expect(answer.error == "late (unstartable-sink): the device is not there. Plug it in.")
        #expect(driver.chain.plan.stages.map(\.id) == ["src", "mark", "file"])
        let result = driver.finish()
        #expect(result.isSuccess, "\(result)")
        #expect(isGapless("no-start"))
    }

    // MARK: Another image of a plugin

    /// The same stage type, as the registry has it once its plugin was loaded again.
    private func rebuilt(_ sketch: ChainSketch) -> ChainSketch {
        var sketch = sketch
        sketch.request.stages[1].type = StageType(ProbeFilter.self)
        return sketch
    }

    @Test func anotherImagesInstanceHasTheLiveOptionsThatWereSet() throws {
        let plain = try base("swap").setting("mark", #"{"level": 3, "sleepUs": 10}"#)
        let driver = try RunningChainDriver(plain)
        driver.waitForFrames(20)
        let set = driver.answer {
            driver.chain.set(stage: "mark", options: [.init(key: "level", value: 7)], reply: $0)
        }
        #expect(set.isOK, "\(set.error)")
        let other = rebuilt(plain)
        let swapped = driver.change(to: other)
        #expect(swapped.isOK, "\(swapped.error)")
        #expect(swapped.details["replaced"] == ["mark"])
        #expect(try driver.level(of: "mark") == 7)
        // Once more, and a change elsewhere between: it stays.
        var longer = other
        try longer.add(RecordingSink.self, "late", options: #"{"log": "swap-late"}"#, from: ["mark"])
        #expect(driver.change(to: longer).isOK)
        #expect(driver.change(to: rebuilt(longer)).isOK)
        #expect(try driver.level(of: "mark") == 7)
        // Until the request says otherwise.
        let said = try rebuilt(longer).setting("mark", #"{"level": 4, "sleepUs": 10}"#)
        #expect(driver.change(to: said).isOK)
        #expect(try driver.level(of: "mark") == 4)
        let result = driver.finish()
        #expect(result.isSuccess, "\(result)")
        #expect(isGapless("swap"))
        #expect(driver.chain.ledger.isBalanced)
    }

    @Test func takesOneInstanceAfterTheOtherWithoutAGap() throws {
        let plain = try base("swaps")
        let driver = try RunningChainDriver(plain)
        driver.waitForFrames(20)
        let rounds = getenv("FRAMEHOST_SANITIZED") == nil ? 300 : 60
        for round in 0..<rounds {
            let answer = driver.change(to: rebuilt(plain))
            #expect(answer.isOK, "round \(round): \(answer.error)")
        }
        let result = driver.finish()
        #expect(result.isSuccess, "\(result)")
        #expect(isGapless("swaps"))
        #expect(driver.chain.ledger.isBalanced)
        #expect(driver.chain.ledger.dropped == 0)
    }

    // MARK: Pause

    @Test func pausesASinkAndMarksTheGap() throws {
        let driver = try RunningChainDriver(try base("pause"))
        driver.waitForFrames(20)
        let paused = driver.answer { driver.chain.pause(stage: "file", reply: $0) }
        #expect(paused.isOK, "\(paused.error)")
        driver.waitForFrames(Int(paused.frame) + 30)
        let resumed = driver.answer { driver.chain.resume(stage: "file", reply: $0) }
        try #require(resumed.isOK && resumed.frame >= paused.frame, "\(resumed.error)")
        driver.waitForFrames(Int(resumed.frame) + 20)
        let result = driver.finish()
        #expect(result.isSuccess, "\(result)")
        let numbers = RecordingSink.log("pause").entries.map(\.sequence)
        #expect(!numbers.contains { $0 >= paused.frame && $0 < resumed.frame })
        #expect(numbers.contains(resumed.frame))
        #expect(driver.chain.graph.runner(id: "file")!.dropCount(.paused) == Int(resumed.frame - paused.frame))
    }

    @Test func pausesAFilterWhichLetsFramesByAndASourceWhichGivesNone() throws {
        let driver = try RunningChainDriver(try base("pause-more"))
        driver.waitForFrames(20)
        #expect(driver.answer { driver.chain.pause(stage: "mark", reply: $0) }.isOK)
        let before = driver.chain.progress.captured
        driver.waitForFrames(before + 20)
        #expect(driver.answer { driver.chain.resume(stage: "mark", reply: $0) }.isOK)
        let paused = driver.answer { driver.chain.pause(stage: "src", reply: $0) }
        #expect(paused.isOK)
        let captured = driver.chain.progress.captured
        usleep(50_000)
        #expect(driver.chain.progress.captured == captured)
        #expect(driver.answer { driver.chain.resume(stage: "src", reply: $0) }.isOK)
        driver.waitForFrames(captured + 20)
        let result = driver.finish()
        #expect(result.isSuccess, "\(result)")
        #expect(isGapless("pause-more"))
    }

    /// The sequence numbers of the frames that say that they follow a gap.
    private func marked(_ log: String) -> [UInt64] {
        let seen = RecordingSink.log(log)
        return zip(seen.entries, seen.followsGap).filter(\.1).map(\.0.sequence)
    }

    @Test func marksTheFirstFrameThatPassesAfterAPauseThatDropsThem() throws {
        let log = "pause-then-pass"
        let driver = try RunningChainDriver(try base(log))
        driver.waitForFrames(20)
        let paused = driver.answer { driver.chain.pause(stage: "mark", isDropping: true, reply: $0) }
        #expect(paused.isOK, "\(paused.error)")
        driver.waitForFrames(Int(paused.frame) + 20)
        let passes = driver.answer { driver.chain.pause(stage: "mark", reply: $0) }
        #expect(passes.isOK && passes.frame >= paused.frame, "\(passes.error)")
        driver.waitForFrames(Int(passes.frame) + 20)
        let resumed = driver.answer { driver.chain.resume(stage: "mark", reply: $0) }
        #expect(resumed.isOK, "\(resumed.error)")
        driver.waitForFrames(Int(resumed.frame) + 20)
        let result = driver.finish()
        #expect(result.isSuccess, "\(result)")
        #expect(marked(log) == [passes.frame])
        let numbers = RecordingSink.log(log).entries.map(\.sequence)
        #expect(numbers.contains(passes.frame) && !numbers.contains { $0 >= paused.frame && $0 < passes.frame })
    }

    /// The frame that had the mark ended in the filter that failed.
    @Test func marksTheFirstFrameThatPassesAFilterWhichFailedRightAfterAGap() throws {
        let log = "gap-then-bypass"
        var sketch = ChainSketch()
        try sketch.add(CountingSource.self, "src", options: #"{"count": 1000000, "everyMs": 1}"#)
        try sketch.add(ProbeFilter.self, "mark", onError: .bypass)
        try sketch.add(RecordingSink.self, "file", options: #"{"log": "\#(log)"}"#)
        let driver = try RunningChainDriver(sketch)
        driver.waitForFrames(20)
        let paused = driver.answer { driver.chain.pause(stage: "mark", isDropping: true, reply: $0) }
        #expect(paused.isOK, "\(paused.error)")
        driver.waitForFrames(Int(paused.frame) + 20)
        let failFrom = JSONNode.Member(key: "failFrom", value: 0)
        #expect(driver.answer { driver.chain.set(stage: "mark", options: [failFrom], reply: $0) }.isOK)
        let resumed = driver.answer { driver.chain.resume(stage: "mark", reply: $0) }
        #expect(resumed.isOK, "\(resumed.error)")
        driver.waitForEvent { $0.name == "stage-failed" }
        driver.waitForFrames(Int(resumed.frame) + 30)
        let result = driver.finish()
        #expect(result.failures.count == 1 && result.ledgerFaults.isEmpty, "\(result)")
        #expect(marked(log) == [resumed.frame + 1])
    }

    @Test func saysThatAStageIsPausedAlreadyOrNotPaused() throws {
        let driver = try RunningChainDriver(try base("pause-twice"))
        driver.waitForFrames(20)
        let early = driver.answer { driver.chain.resume(stage: "file", reply: $0) }
        #expect(early.isOK && early.text == "file: is not paused.", "\(early.text)")
        let paused = driver.answer { driver.chain.pause(stage: "file", reply: $0) }
        #expect(paused.isOK && paused.text == "file: takes effect at frame \(paused.frame).", "\(paused.text)")
        let again = driver.answer { driver.chain.pause(stage: "file", reply: $0) }
        #expect(again.isOK && again.text == "file: is already paused.", "\(again.text)")
        driver.waitForFrames(Int(paused.frame) + 20)
        let resumed = driver.answer { driver.chain.resume(stage: "file", reply: $0) }
        #expect(resumed.isOK && resumed.text == "file: takes effect at frame \(resumed.frame).", "\(resumed.text)")
        let late = driver.answer { driver.chain.resume(stage: "file", reply: $0) }
        #expect(late.isOK && late.text == "file: is not paused.", "\(late.text)")
        driver.waitForFrames(Int(resumed.frame) + 20)
        let result = driver.finish()
        #expect(result.isSuccess, "\(result)")
        for name in ["stage-paused", "stage-resumed"] {
            #expect(driver.allEvents.count { $0.name == name } == 1, "\(name)")
        }
    }

    @Test func saysWhichStageDoesNotComeToRest() throws {
        var sketch = ChainSketch()
        try sketch.add(CountingSource.self, "src", options: #"{"count": 1000000, "live": true, "everyMs": 1}"#)
        try sketch.add(RecordingSink.self, "file", options: #"{"log": "no-rest", "pauseAt": 5}"#)
        let driver = try RunningChainDriver(sketch)
        let frame = try #require(waitForHang(of: "file", at: 5, driver)?.details["frame"]?.asInt)
        let answer = driver.answer(isRepeating: false) { driver.chain.pause(stage: "file", reply: $0) }
        #expect(!answer.isOK && answer.isBusy)
        #expect(
            answer.error
                == "file (recording-sink): its call 'consume' of frame \(frame) has not returned for 1 s, so nothing was changed. Send the command again later. If the call has still not returned then, detach the branch with this stage, or restart the chain."
        )
        #expect(driver.finish().abandoned == ["file (recording-sink)"])
    }

    // MARK: Replace

    @Test func replacesATransformThatAnswersWhatItHolds() throws {
        var sketch = ChainSketch()
        try sketch.add(CountingSource.self, "src", options: #"{"count": 1000000, "everyMs": 1}"#)
        try sketch.add(CopyTransform.self, "copy", options: #"{"delay": 3}"#)
        try sketch.add(RecordingSink.self, "file", options: #"{"log": "replace"}"#)
        let driver = try RunningChainDriver(sketch)
        driver.waitForFrames(20)
        for delay in [1, 0, 3, 2] as [Int] {
            let answer = driver.change(to: try sketch.setting("copy", #"{"delay": \#(delay)}"#))
            #expect(answer.isOK, "\(answer.error)")
            #expect(answer.details["replaced"] == ["copy"])
            driver.waitForFrames(driver.chain.progress.captured + 20)
        }
        let result = driver.finish()
        #expect(result.isSuccess, "\(result)")
        #expect(isGapless("replace"))
        #expect(driver.chain.ledger.dropped == 0)
    }

    @Test func countsWhatAReplacedStageHeldWhenItIsNotDrained() throws {
        var sketch = ChainSketch()
        try sketch.add(CountingSource.self, "src", options: #"{"count": 1000000, "everyMs": 1}"#)
        try sketch.add(CopyTransform.self, "copy", options: #"{"delay": 3}"#)
        try sketch.add(RecordingSink.self, "file", options: #"{"log": "replace-drop"}"#)
        let driver = try RunningChainDriver(sketch)
        driver.waitForFrames(20)
        let answer = driver.change(to: try sketch.setting("copy", #"{"delay": 1}"#), isDraining: false)
        #expect(answer.isOK, "\(answer.error)")
        driver.waitForFrames(driver.chain.progress.captured + 20)
        let result = driver.finish()
        #expect(result.isSuccess, "\(result)")
        #expect(driver.chain.graph.runner(id: "copy")!.dropCount(.detached) == 3)
    }

    /// The fork before it waits at the other way's queue, which is just as long as the stage delays: the join has to be
    /// told that the frame which was inside does not come. (The model found this: `ChangeModelTests`.)
    @Test func tellsAJoinWhatAReplacedStageHeldWhenItIsNotDrained() throws {
        var sketch = ChainSketch()
        let one = LinkRequest(queue: 1)
        try sketch.add(CountingSource.self, "src", options: #"{"count": 1000000, "everyMs": 1}"#)
        try sketch.add(CopyTransform.self, "copy", options: #"{"delay": 1}"#, link: one)
        try sketch.add(PairJoin.self, "pair", from: ["src", "copy"], link: one)
        sketch.request.stages[2].join = JoinRequest(match: .exact)
        try sketch.add(RecordingSink.self, "file", options: #"{"log": "replace-join"}"#)
        let driver = try RunningChainDriver(sketch)
        driver.waitForFrames(20)
        for never in 90_000..<90_004 {
            let options = #"{"delay": 1, "swallow": \#(never)}"#
            let answer = driver.change(to: try sketch.setting("copy", options), isDraining: false)
            #expect(answer.isOK, "\(answer.error)")
            let wanted = driver.chain.progress.captured + 20
            driver.waitForFrames(wanted)
            try #require(driver.chain.progress.captured >= wanted, "the chain stands still")
        }
        #expect(driver.finish().isSuccess)
        #expect(driver.chain.graph.runner(id: "copy")!.dropCount(.detached) > 0)
    }

    /// A transform in a filter's place and back, whatever the links before and behind it are.
    @Test(arguments: [0, 2], [0, 2]) func replacesAStageByOneOfAnotherKind(before: Int, behind: Int) throws {
        let log = "other-kind-\(before)-\(behind)"
        let plain = try otherKind(log, before, behind) { try $0.add(ProbeFilter.self, "mark", link: $1) }
        let copying = try otherKind(log, before, behind) {
            try $0.add(CopyTransform.self, "mark", options: #"{"delay": 2}"#, link: $1)
        }
        let writing = try otherKind(log, before, behind) { try $0.add(AddOne.self, "mark", link: $1) }
        let driver = try RunningChainDriver(plain)
        var frames: [UInt64] = []
        for sketch in [copying, writing, copying, plain] {
            driver.waitForFrames(driver.chain.progress.captured + 20)
            let answer = driver.change(to: sketch)
            #expect(answer.isOK, "\(answer.error)")
            #expect(answer.details["replaced"] == ["mark"])
            frames.append(answer.frame)
        }
        try #require(frames[1] <= frames[2])
        driver.waitForFrames(driver.chain.progress.captured + 20)
        #expect(!driver.chain.pools.contains { $0.name == "mark" }, "the transform's pool goes with it")
        let result = driver.finish()
        #expect(result.isSuccess, "\(result)")
        #expect(isGapless(log))
        #expect(driver.chain.ledger.isBalanced && driver.chain.ledger.dropped == 0)
        let added = RecordingSink.log(log).entries.filter { $0.pixel != UInt8(truncatingIfNeeded: $0.sequence) }
        #expect(added.map(\.sequence) == Array(frames[1]..<frames[2]), "each holds from the frame that is told")
    }

    private func otherKind(
        _ log: String, _ before: Int, _ behind: Int, _ middle: (inout ChainSketch, LinkRequest) throws -> Void
    ) throws -> ChainSketch {
        var sketch = ChainSketch()
        sketch.request.spare = 8
        try sketch.add(CountingSource.self, "src", options: #"{"count": 1000000, "everyMs": 1}"#)
        try middle(&sketch, LinkRequest(queue: before))
        try sketch.add(
            RecordingSink.self, "file", options: #"{"log": "\#(log)"}"#, link: LinkRequest(queue: behind))
        return sketch
    }

    /// The fault stands at what is put before it, not at a converter or at what runs.
    @Test func saysWhichChangeWouldMoveAStageThatRuns() throws {
        let plain = try base("moved")
        let driver = try RunningChainDriver(plain)
        var other = ChainSketch()
        other.request.spare = 4
        try other.add(CountingSource.self, "src", options: #"{"count": 1000000, "everyMs": 1}"#)
        try other.add(ProbeFilter.self, "between")
        try other.add(ProbeFilter.self, "mark", link: LinkRequest(queue: 2))
        try other.add(RecordingSink.self, "file", options: #"{"log": "moved"}"#)
        let answer = driver.change(to: other)
        #expect(
            answer.error
                == "between: this change would move 'mark', which comes after 'between', to another thread or queue, and a running stage cannot be moved. Restart the chain to make this change (if it came from a command, first write it into the chain file), or leave it out."
        )
        #expect(driver.finish().isSuccess)
    }

    // MARK: Restart

    /// A source that fails at its 30th frame: made anew it gives them from the first again.
    @Test func startsASourceThatFailedAnewAndDoesNotForgetOneThatHasNotComeBack() throws {
        var sketch = ChainSketch()
        try sketch.add(FailingSource.self, "src", onError: .restart)
        try sketch.add(RecordingSink.self, "file", options: #"{"log": "restart"}"#)
        let driver = try RunningChainDriver(sketch)
        driver.waitForEvent { $0.name == "stage-restarted" }
        driver.waitForFrames(60)
        let result = driver.finish()
        #expect(RecordingSink.log("restart").entries.count >= 60)
        #expect(result.ledgerFaults.isEmpty && result.abandoned.isEmpty, "\(result)")
        // It fails again at its 30th frame; until it is there once more the run is a failed one.
        let names = driver.allEvents.map(\.name)
        let isMissing = names.count { $0 == "stage-failed" } > names.count { $0 == "stage-restarted" }
        #expect(result.failures.map(\.what) == (isMissing ? ["the source was told to fail"] : []))
        goesOnInTime("restart", instances: names.count { $0 == "stage-restarted" })
    }

    @Test func setsBackWhatCommandsHaveSetOnlyWhenAskedTo() throws {
        let sketch = try base("set-back").setting("mark", #"{"level": 3}"#)
        let driver = try RunningChainDriver(sketch)
        let nine = [JSONNode.Member(key: "level", value: 9)]
        #expect(driver.answer { driver.chain.set(stage: "mark", options: nine, reply: $0) }.isOK)
        // Another change leaves it alone.
        var longer = sketch
        try longer.add(RecordingSink.self, "late", options: #"{"log": "set-back-late"}"#, from: ["mark"])
        #expect(driver.change(to: longer).isOK)
        #expect(try driver.level(of: "mark") == 9)
        let other = driver.answer {
            driver.chain.change(stage: nil, resetting: .of("file"), to: { _ in longer.request }, reply: $0)
        }
        #expect(other.isOK)
        #expect(try driver.level(of: "mark") == 9)
        // The chain file read again does not.
        let answer = driver.answer {
            driver.chain.change(stage: nil, resetting: .all, to: { _ in longer.request }, reply: $0)
        }
        #expect(answer.isOK && answer.details["set"] == ["mark"], "\(answer)")
        #expect(try driver.level(of: "mark") == 3)
        #expect(driver.chain.setOptions.isEmpty)
        #expect(driver.finish().isSuccess)
    }

    @Test func takesWhatTheChainFileSaysOfErrorsAndOfTheDrainNow() throws {
        var sketch = ChainSketch()
        try sketch.add(CountingSource.self, "src", options: #"{"count": 1000000, "everyMs": 1}"#)
        try sketch.add(ProbeFilter.self, "mark")
        try sketch.add(RecordingSink.self, "file", options: #"{"log": "rules"}"#)
        let driver = try RunningChainDriver(sketch)
        sketch.request.stages[1].onError = .bypass
        sketch.request.drainSeconds = 30
        let answer = driver.change(to: sketch)
        #expect(answer.isOK, "\(answer.error)")
        #expect(driver.chain.drainNs == 30_000_000_000)
        let fails = [JSONNode.Member(key: "failFrom", value: .number(driver.chain.progress.captured + 20))]
        #expect(driver.answer { driver.chain.set(stage: "mark", options: fails, reply: $0) }.isOK)
        let failed = try #require(driver.waitForEvent { $0.name == "stage-failed" }?.frame)
        driver.waitForFrames(driver.chain.progress.captured + 100)
        let result = driver.finish()
        let numbers = RecordingSink.log("rules").entries.map(\.sequence)
        #expect(numbers.count { $0 > failed } > 50, "frames go by the filter that failed")
        #expect(marked("rules") == [failed + 1], "the frame on which it failed is missing")
        #expect(result.failures.count == 1 && result.ledgerFaults.isEmpty, "\(result)")
    }

    /// Its other instance gets what comes from then on.
    @Test func aBypassedFilterThatIsReplacedWorksAgain() throws {
        let log = "bypass-replaced"
        func chain(_ options: String) throws -> ChainSketch {
            var sketch = ChainSketch()
            sketch.request.spare = 4
            try sketch.add(CountingSource.self, "src", options: #"{"count": 1000000, "everyMs": 1}"#)
            try sketch.add(ProbeFilter.self, "mark", options: options, onError: .bypass)
            try sketch.add(RecordingSink.self, "file", options: #"{"log": "\#(log)"}"#)
            return sketch
        }
        let driver = try RunningChainDriver(try chain(#"{"failAt": 20}"#))
        driver.waitForEvent { $0.name == "stage-failed" }
        #expect(driver.chain.status.stages[1].state == .failed)
        let answer = driver.change(to: try chain(#"{"keep": 1}"#))
        #expect(answer.isOK && answer.details["replaced"] == ["mark"], "\(answer.error)")
        driver.waitForFrames(Int(answer.frame) + 50)
        #expect(driver.chain.status.stages[1].state == .streaming)
        let runner = try #require(driver.chain.graph.runner(id: "mark"))
        #expect(runner.mode == .runs && runner.dropCount(.paused) == 0)
        #expect(eventually { runner.keptNow == 1 }, "the new instance sees the frames")
        let result = driver.finish()
        #expect(result.failures.count == 1 && result.ledgerFaults.isEmpty, "\(result)")
        let numbers = RecordingSink.log(log).entries.map(\.sequence)
        #expect(numbers == (0..<UInt64(numbers.count)).filter { $0 != 20 } + [UInt64(numbers.count)])
        #expect(marked(log) == [21], "nothing else is missing")
    }

    /// The source's pictures are 1 ms apart; each of its instances begins at 0 by itself.
    private func goesOnInTime(_ log: String, instances: Int) {
        let seen = RecordingSink.log(log)
        #expect(seen.milliseconds == seen.entries.indices.map { Int64($0) })
        let marks = seen.followsGap.count { $0 }
        // The last one may not have given any.
        #expect(marks == instances || marks == instances - 1, "\(marks) of \(instances)")
    }

    @Test func keepsTheTimeLineOfASourceThatIsReplaced() throws {
        let log = "time-line"
        let sketch = try base(log)
        let driver = try RunningChainDriver(sketch)
        driver.waitForFrames(20)
        for count in [2_000_000, 3_000_000] {
            let answer = driver.change(to: try sketch.setting("src", #"{"count": \#(count), "everyMs": 1}"#))
            #expect(answer.isOK, "\(answer.error)")
            #expect(answer.details["replaced"] == ["src"])
            driver.waitForFrames(driver.chain.progress.captured + 20)
        }
        let result = driver.finish()
        #expect(result.isSuccess, "\(result)")
        goesOnInTime(log, instances: 2)
    }

    // MARK: Behind an encoder

    /// An encoder that gives a keyframe every 1,000 units unless it is asked for one.
    private func encoded(_ log: String) throws -> ChainSketch {
        var sketch = ChainSketch()
        sketch.request.spare = 4
        try sketch.add(CountingSource.self, "src", options: #"{"count": 1000000, "everyMs": 1}"#)
        try sketch.add(UnitEncoder.self, "enc", options: #"{"gop": 1000}"#)
        try sketch.add(UnitSink.self, "file", options: #"{"log": "\#(log)"}"#)
        return sketch
    }

    @Test func asksForAKeyframeForAReaderThatIsReplaced() throws {
        let driver = try RunningChainDriver(try encoded("key"))
        driver.waitForFrames(20)
        let answer = driver.change(to: try encoded("key-other"))
        #expect(answer.isOK, "\(answer.error)")
        #expect(answer.details["replaced"] == ["file"])
        #expect(eventually { !UnitSink.keyframes("key-other").isEmpty })
        #expect(driver.finish().isSuccess)
        let first = UnitSink.keyframes("key-other").first
        #expect(first.map { $0 >= answer.frame && $0 % 1000 != 0 } ?? false, "\(first ?? 0) \(answer.frame)")
    }

    @Test func asksForAKeyframeForAReaderThatIsAttached() throws {
        let plain = try encoded("key-plain")
        let driver = try RunningChainDriver(plain)
        driver.waitForFrames(20)
        var longer = plain
        try longer.add(UnitSink.self, "late", options: #"{"log": "key-late"}"#, from: ["enc"])
        let answer = driver.change(to: longer)
        #expect(answer.isOK, "\(answer.error)")
        #expect(eventually { !UnitSink.keyframes("key-late").isEmpty })
        #expect(driver.finish().isSuccess)
        let first = UnitSink.keyframes("key-late").first
        #expect(first.map { $0 >= answer.frame && $0 % 1000 != 0 } ?? false, "\(first ?? 0) \(answer.frame)")
    }

    // MARK: Live options

    @Test func setsLiveOptionsWithoutANewInstance() throws {
        let sketch = try base("live-set")
        let driver = try RunningChainDriver(sketch)
        let instance = driver.chain.graph.runner(id: "mark")!.instance
        let answer = driver.change(to: try sketch.setting("mark", #"{"level": 7}"#))
        #expect(answer.isOK, "\(answer.error)")
        #expect(answer.details["set"] == ["mark"])
        let result = driver.finish()
        #expect(result.isSuccess, "\(result)")
        #expect(driver.chain.graph.runner(id: "mark")!.instance === instance)
        #expect((instance.stage as! ProbeFilter).options.level == 7)
    }

    @Test func replacesAStageThatRefusesALiveOptionAsItRuns() throws {
        var sketch = ChainSketch()
        try sketch.add(CountingSource.self, "src", options: #"{"count": 1000000, "everyMs": 1}"#)
        try sketch.add(StubbornFilter.self, "mark")
        try sketch.add(ProbeFilter.self, "probe", link: LinkRequest(queue: 2))
        try sketch.add(RecordingSink.self, "file", options: #"{"log": "stubborn"}"#)
        let driver = try RunningChainDriver(sketch)
        let instance = driver.chain.graph.runner(id: "mark")!.instance
        let both = try sketch.setting("mark", #"{"level": 7}"#).setting("probe", #"{"level": 5}"#)
        let answer = driver.change(to: both)
        #expect(answer.isOK, "\(answer.error)")
        #expect(answer.details["replaced"] == ["mark"])
        #expect(answer.details["set"] == ["probe"])
        let result = driver.finish()
        #expect(result.isSuccess, "\(result)")
        #expect(isGapless("stubborn"))
        let now = driver.chain.graph.runner(id: "mark")!.instance
        #expect(now !== instance && (now.stage as! StubbornFilter).options.level == 7)
    }
}

/// Fails at its 30th frame.
final class FailingSource: Source {
    static let info = StageInfo(id: "failing-source", summary: "Fails.", output: .video(.gray8))

    struct Options: StageOptions { @Option(help: "A door to which somebody must have come first.") var door = "" }

    var options: Options
    private var count = 0
    init(options: Options, context: StageContext) { self.options = options }

    func negotiate() throws -> MediaFormat {
        .video(VideoFormat(.gray8, width: 16, height: 16, frameRate: Rational(1000)))
    }

    func produce(_ output: Output) throws -> SourceProgress {
        if count >= 30, options.door.isEmpty || Door.hasSomebody(options.door) {
            throw FrameHostError(.callFailed, what: "the source was told to fail")
        }
        guard let frame = try output.makeFrame() else { return .more }
        frame.pts = MediaTime(nanoseconds: Int64(count) * 1_000_000)
        count += 1
        try output.emit(frame)
        return .more
    }
}

/// Its device is missing.
final class UnstartableSink: Sink {
    static let info = StageInfo(id: "unstartable-sink", summary: "Does not start.", input: .video(.gray8))
    typealias Options = NoOptions
    var options: NoOptions
    init(options: NoOptions, context: StageContext) { self.options = options }
    func start() throws { throw FrameHostError(.unavailable, what: "the device is not there", remedy: "Plug it in.") }
    func consume(_ input: consuming Sample) throws -> SinkVerdict { .delivered }
}

/// Takes its live option only from the begin.
final class StubbornFilter: Filter {
    static let info = StageInfo(id: "stubborn", summary: "Stays as it is.", input: .anyVideo, output: .sameAsInput)

    struct Options: StageOptions {
        @Option(help: "A live value.", live: true) var level = 0
    }

    var options: Options
    init(options: Options, context: StageContext) { self.options = options }
    func process(_ frame: inout Frame) throws -> Verdict { .forward }
    func optionsChanged() throws { throw FrameHostError(.unavailable, what: "not while it runs") }
}
