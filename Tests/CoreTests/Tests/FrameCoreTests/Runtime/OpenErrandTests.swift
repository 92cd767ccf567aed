// SPDX-License-Identifier: Apache-2.0

import Glibc
import Testing

@testable import FrameCore

/// Changes of a chain of which a thread does not come back, or has ended: what is left with it, and what becomes of that.
@Suite struct OpenErrandTests {
    /// A live source and what two queues feed from it: each sink has a thread of its own, and nobody waits for it.
    private func base(_ log: String) throws -> ChainSketch {
        var sketch = ChainSketch()
        sketch.request.spare = 8
        try sketch.add(CountingSource.self, "src", options: #"{"count": 1000000, "everyMs": 1, "live": true}"#)
        try sketch.add(
            DoorSink.self, "a", options: #"{"log": "\#(log)-a"}"#, from: ["src"],
            link: LinkRequest(queue: 2))
        try sketch.add(
            DoorSink.self, "b", options: #"{"log": "\#(log)-b", "door": "\#(log)"}"#, from: ["src"],
            link: LinkRequest(queue: 2))
        return sketch
    }

    /// `a` and `b` are replaced. `b` answers, and then goes into a call from which it does not come back.
    private func replaceBoth(_ driver: RunningChainDriver, _ sketch: ChainSketch, _ log: String) throws -> ChainSketch {
        let other = try sketch.setting("a", #"{"log": "\#(log)-a2"}"#)
            .setting("b", #"{"log": "\#(log)-b2", "door": "\#(log)"}"#)
        driver.waitForFrames(20)
        hangBeforePart(driver, log)
        let answer = driver.change(to: other)
        #expect(answer.isOK, "\(answer.error)")
        driver.waitForEvent { $0.name == "replace-waits" && $0.stage == "b" }
        return other
    }

    /// Somebody comes to the door between the answers of all threads and the commit of the next change.
    private func hangBeforePart(_ driver: RunningChainDriver, _ door: String) {
        driver.chain.willCommit = { [unowned chain = driver.chain] in
            Door.shut(door)
            Door.waitForSomebody(door)
            chain.willCommit = {}
        }
    }

    private func waitUntil(_ isSo: () -> Bool, _ place: SourceLocation = #_sourceLocation) {
        let deadline = ChainClock.system.now() + 120_000_000_000
        while ChainClock.system.now() < deadline {
            if isSo() { return }
            usleep(1_000)
        }
        Issue.record("it did not come to that", sourceLocation: place)
    }

    @Test func refusesAChangeWhileAnEarlierOneWaitsForAThread() throws {
        let log = "errand-refused"
        let driver = try RunningChainDriver(try base(log))
        let replaced = try replaceBoth(driver, try base(log), log)
        var longer = replaced
        try longer.add(RecordingSink.self, "late", options: #"{"log": "\#(log)-late"}"#, from: ["src"])
        let refused = driver.change(to: longer, isRepeating: false)
        #expect(!refused.isOK)
        #expect(
            refused.error.contains("b (door-sink): its call 'consume' of frame ")
                && refused.error.contains(
                    "has not returned for 1 s; an earlier change still waits for that, so nothing was changed"),
            "\(refused.error)")
        #expect(driver.chain.plan.stages.map(\.id) == ["src", "a", "b"])
        Door.open(log)
        driver.waitForEvent { $0.name == "stage-replaced" && $0.stage == "b" }
        let attached = driver.change(to: longer)
        #expect(attached.isOK, "\(attached.error)")
        #expect(attached.details["replaced"] == nil, "nothing is exchanged twice")
        waitUntil { RecordingSink.log("\(log)-late").entries.count > 20 }
        let result = driver.finish()
        #expect(result.ledgerFaults.isEmpty && result.abandoned.isEmpty && result.failures.isEmpty, "\(result)")
        for name in ["a", "a2", "b", "b2"] {
            #expect(DoorSink.log("\(log)-\(name)").stops == 1, "\(name)")
            #expect(DoorSink.log("\(log)-\(name)").items > 0, "\(name)")
        }
    }

    /// The stage that does not come back is what a user would take away.
    @Test func takesAwayTheStageForWhichAnEarlierChangeWaits() throws {
        let log = "errand-detached"
        let driver = try RunningChainDriver(try base(log))
        let replaced = try replaceBoth(driver, try base(log), log)
        let detached = driver.change(to: replaced.without("b"))
        #expect(detached.isOK, "\(detached.error)")
        Door.open(log)
        driver.waitForEvent { $0.name == "branch-ended" && $0.stage == "b" }
        let result = driver.finish()
        #expect(result.ledgerFaults.isEmpty && result.abandoned.isEmpty && result.failures.isEmpty, "\(result)")
        for name in ["b", "b2"] { #expect(DoorSink.log("\(log)-\(name)").stops == 1, "\(name)") }
    }

    @Test func saysWhereAStageEndsBeforeItIsReplaced() throws {
        let log = "errand-missed"
        let driver = try RunningChainDriver(try base(log))
        _ = try replaceBoth(driver, try base(log), log)
        // A stop comes before what a thread was asked to do.
        driver.chain.cancel()
        Door.open(log)
        let missed = driver.waitForEvent { $0.name == "replace-missed" }
        #expect(missed?.stage == "b" && missed?.text == "b (door-sink) ended before it could be replaced.")
        let result = driver.finish()
        #expect(result.abandoned.isEmpty && result.failures.isEmpty, "\(result)")
        #expect(DoorSink.log("\(log)-b2").items == 0)
        for name in ["b", "b2"] { #expect(DoorSink.log("\(log)-\(name)").stops == 1, "\(name)") }
        #expect(!driver.allEvents.contains { $0.name == "stage-replaced" && $0.stage == "b" })
    }

    /// Once all threads have answered, the source of `b` ends, and `b` with it.
    @Test func leavesAStageThatWasNotReplacedOutOfTheAnswer() throws {
        let log = "errand-left-out"
        var sketch = ChainSketch()
        sketch.request.spare = 8
        try sketch.add(CountingSource.self, "one", options: #"{"count": 1000000, "everyMs": 1}"#)
        try sketch.add(
            DoorSink.self, "a", options: #"{"log": "\#(log)-a"}"#, link: LinkRequest(queue: 2))
        try sketch.add(UntilShutSource.self, "two", options: #"{"door": "\#(log)"}"#)
        try sketch.add(DoorSink.self, "b", options: #"{"log": "\#(log)-b"}"#, link: LinkRequest(queue: 2))
        let other = try sketch.setting("a", #"{"log": "\#(log)-a2"}"#).setting("b", #"{"log": "\#(log)-b2"}"#)
        let driver = try RunningChainDriver(sketch)
        driver.waitForFrames(20)
        let thread = try #require(driver.chain.graph.runner(id: "b")?.thread)
        driver.chain.willCommit = {
            Door.shut(log)
            _ = eventually { thread.finished.load(ordering: .acquiring) }
        }
        let answer = driver.change(to: other)
        #expect(answer.isOK, "\(answer.error)")
        #expect(answer.details["replaced"] == ["a"] && answer.details["missed"] == ["b"], "\(answer.details)")
        driver.waitForEvent { $0.name == "replace-missed" && $0.stage == "b" }
        let changed = driver.waitForEvent { $0.name == "structure-changed" }
        #expect(changed?.details["replaced"] == ["a"])
        let result = driver.finish()
        #expect(result.ledgerFaults.isEmpty && result.abandoned.isEmpty && result.failures.isEmpty, "\(result)")
        #expect(DoorSink.log("\(log)-b2").items == 0)
        for name in ["a", "a2", "b", "b2"] { #expect(DoorSink.log("\(log)-\(name)").stops == 1, "\(name)") }
    }

    /// A live source, a filter on its thread, a sink; and a filter on another thread, whose sink waits at a door.
    private func twoWays(_ log: String, level: Int = 0, inserted: Bool = false) throws -> ChainSketch {
        var sketch = ChainSketch()
        sketch.request.spare = 8
        try sketch.add(CountingSource.self, "src", options: #"{"count": 1000000, "everyMs": 1, "live": true}"#)
        if inserted {
            try sketch.add(
                DoorFilter.self, "late", options: #"{"log": "\#(log)-late"}"#, link: LinkRequest(queue: 0))
        }
        try sketch.add(DoorFilter.self, "mark", options: #"{"log": "\#(log)-mark"}"#, link: LinkRequest(queue: 0))
        try sketch.add(DoorSink.self, "end", options: #"{"log": "\#(log)-end"}"#, link: LinkRequest(queue: 2))
        try sketch.add(
            ProbeFilter.self, "slow", options: #"{"level": \#(level)}"#, from: ["mark"], link: LinkRequest(queue: 2))
        try sketch.add(DoorSink.self, "behind", options: #"{"log": "\#(log)-behind", "door": "\#(log)"}"#)
        return sketch
    }

    /// One thread would put a stage before another one and answers; the other thread does not answer.
    @Test func stopsWhatWasStartedForAThreadThatStaysWhereAChangeIsRefused() throws {
        let log = "errand-back"
        let driver = try RunningChainDriver(try twoWays(log))
        driver.waitForFrames(20)
        Door.shut(log)
        Door.waitForSomebody(log)
        let refused = driver.change(to: try twoWays(log, level: 4, inserted: true), isRepeating: false)
        #expect(!refused.isOK && refused.error.contains("has not returned"), "\(refused.error)")
        #expect(driver.chain.graph.leaving.isEmpty)
        #expect(DoorSink.log("\(log)-late").items == 0 && DoorSink.log("\(log)-late").stops == 1)
        Door.open(log)
        driver.waitForFrames(driver.chain.progress.captured + 20)
        let result = driver.finish()
        #expect(result.ledgerFaults.isEmpty && result.abandoned.isEmpty && result.failures.isEmpty, "\(result)")
        #expect(driver.chain.ledger.isBalanced)
        #expect(DoorSink.log("\(log)-late").stops == 1 && DoorSink.log("\(log)-mark").stops == 1)
    }

    /// A change that everybody has answered holds, and is complete once the thread returns.
    @Test func completesWhatWasAttachedToAThreadThatHangsAfterItsAnswer() throws {
        let log = "errand-attach-waits"
        let plain = try twoWays(log)
        let driver = try RunningChainDriver(plain)
        driver.waitForFrames(20)
        var more = try plain.setting("end", #"{"log": "\#(log)-end2"}"#)
        try more.add(
            DoorSink.self, "two", options: #"{"log": "\#(log)-two"}"#, from: ["slow"], link: LinkRequest(queue: 2))
        hangBeforePart(driver, log)
        let attached = driver.change(to: more)
        #expect(attached.isOK, "\(attached.error)")
        let event = driver.waitForEvent { $0.name == "attach-waits" }
        #expect(event?.stage == "slow", "\(event?.text ?? "")")
        waitUntil { DoorSink.log("\(log)-end2").items > 0 }
        #expect(DoorSink.log("\(log)-two").items == 0)
        let refused = driver.change(to: try plain.setting("slow", #"{"level": 7}"#), isRepeating: false)
        #expect(refused.error.contains("an earlier change still waits for that"), "\(refused.error)")
        Door.open(log)
        waitUntil { DoorSink.log("\(log)-two").items > 0 }
        #expect(driver.change(to: plain).isOK)
        let result = driver.finish()
        #expect(result.ledgerFaults.isEmpty && result.abandoned.isEmpty && result.failures.isEmpty, "\(result)")
        #expect(driver.chain.ledger.isBalanced)
        for name in ["two", "end2"] { #expect(DoorSink.log("\(log)-\(name)").stops == 1, "\(name)") }
    }

    /// All threads are asked at once and have a second together.
    @Test func answersForTwoThreadsThatHangAsSoonAsForOne() throws {
        let log = "errand-two-doors"
        let doors = ["\(log)-one", "\(log)-two"]
        let sketch = try LiveOptionTests.twoBranches(doors[0], doors[1])
        let driver = try RunningChainDriver(sketch)
        driver.waitForFrames(10)
        for door in doors {
            Door.shut(door)
            Door.waitForSomebody(door)
        }
        let changed = try sketch.setting("one", #"{"level": 9}"#).setting("two", #"{"level": 9}"#)
        var shortest = Int64.max
        // A machine that is too busy gets further attempts.
        for _ in 0..<20 where shortest > 1_200_000_000 {
            let begin = ChainClock.system.now()
            let refused = driver.change(to: changed, isRepeating: false)
            shortest = min(shortest, ChainClock.system.now() - begin)
            #expect(!refused.isOK && refused.error.contains("has not returned for 1 s"), "\(refused.error)")
        }
        #expect((900_000_000...1_200_000_000).contains(shortest), "\(shortest) ns")
        for door in doors { Door.open(door) }
        #expect(driver.finish().isSuccess)
    }

    /// The writer's thread does its part before it takes an item that is shared, though nobody waits for it.
    @Test func aWriterOnAnotherThreadChangesNothingOfABranchThatComes() throws {
        let log = "errand-writer"
        var plain = ChainSketch()
        plain.request.spare = 8
        try plain.add(CountingSource.self, "src", options: #"{"count": 100000000}"#)
        try plain.add(AddOne.self, "write", link: LinkRequest(queue: 2))
        try plain.add(RecordingSink.self, "end", options: #"{"log": "\#(log)-end"}"#, link: LinkRequest(queue: 0))
        var forked = plain
        try forked.add(
            RecordingSink.self, "branch", options: #"{"log": "\#(log)"}"#, from: ["src"], link: LinkRequest(queue: 2))
        let driver = try RunningChainDriver(plain)
        for _ in 0..<(RandomChainTests.isSoak ? 10_000 : 300) {
            for sketch in [forked, plain] {
                let answer = driver.change(to: sketch)
                #expect(answer.isOK, "\(answer.error)")
            }
        }
        #expect(driver.finish().isSuccess)
        let entries = RecordingSink.log(log).entries
        #expect(entries.count > 300 && entries.allSatisfy { $0.pixel == UInt8(truncatingIfNeeded: $0.sequence) })
        let written = RecordingSink.log("\(log)-end").entries
        #expect(written.allSatisfy { $0.pixel == UInt8(truncatingIfNeeded: $0.sequence + 1) })
    }

    /// The thread had nothing of the change; so it owes nothing.
    @Test func makesOtherChangesWhereOneWasRefusedForAThreadThatHangs() throws {
        let log = "errand-others"
        let plain = try twoWays(log)
        let driver = try RunningChainDriver(plain)
        driver.waitForFrames(20)
        Door.shut(log)
        Door.waitForSomebody(log)
        var more = plain
        try more.add(DoorSink.self, "more", options: #"{"log": "\#(log)-more"}"#, from: ["slow"])
        let refused = driver.change(to: more, isRepeating: false)
        #expect(!refused.isOK && refused.error.contains("has not returned"), "\(refused.error)")
        #expect(!refused.error.contains("an earlier change"), "\(refused.error)")
        var other = plain
        try other.add(DoorSink.self, "other", options: #"{"log": "\#(log)-other"}"#, from: ["mark"])
        let attached = driver.change(to: other)
        #expect(attached.isOK, "\(attached.error)")
        waitUntil { DoorSink.log("\(log)-other").items > 0 }
        Door.open(log)
        let result = driver.finish()
        #expect(result.ledgerFaults.isEmpty && result.abandoned.isEmpty && result.failures.isEmpty, "\(result)")
        #expect(driver.chain.ledger.isBalanced)
        #expect(DoorSink.log("\(log)-more").stops == 1)
    }

    /// A source that has ended before: what it fed goes, what is put there ends without an item, and the rest of the
    /// chain can be changed on.
    @Test func changesWhatASourceThatHasEndedFed() throws {
        let log = "errand-ended"
        var plain = ChainSketch()
        plain.request.spare = 8
        try plain.add(CountingSource.self, "short", options: #"{"count": 20}"#)
        for name in ["a", "b"] {
            try plain.add(
                DoorSink.self, name, options: #"{"log": "\#(log)-\#(name)"}"#, from: ["short"],
                link: LinkRequest(queue: 2))
        }
        try plain.add(CountingSource.self, "long", options: #"{"count": 1000000, "everyMs": 1}"#)
        try plain.add(DoorSink.self, "c", options: #"{"log": "\#(log)-c"}"#, from: ["long"])
        let driver = try RunningChainDriver(plain)
        driver.waitForFrames(200)
        let short = try #require(driver.chain.graph.stageThreads.first { $0.head.id == "short" })
        let hasEnded = short.state.finished.load(ordering: .acquiring)
        #expect(hasEnded)
        var other = plain.without("b")
        // The tap before `e` runs on the source's own thread.
        for (name, copies) in [("d", false), ("e", true)] {
            try other.add(
                DoorSink.self, name, options: #"{"log": "\#(log)-\#(name)"}"#, from: ["short"],
                link: LinkRequest(queue: 2, copies: copies))
        }
        let changed = driver.change(to: other)
        #expect(changed.isOK, "\(changed.error)")
        driver.waitForEvent { $0.name == "branch-ended" && $0.stage == "b" }
        var further = other
        try further.add(DoorSink.self, "f", options: #"{"log": "\#(log)-f"}"#, from: ["long"])
        let attached = driver.change(to: further)
        #expect(attached.isOK, "\(attached.error)")
        driver.waitForFrames(driver.chain.progress.captured + 30)
        let result = driver.finish()
        #expect(result.isSuccess, "\(result)")
        for (name, items) in [("a", 20), ("b", 20), ("d", 0), ("e", 0)] {
            #expect(DoorSink.log("\(log)-\(name)").items == items, "\(name)")
            #expect(DoorSink.log("\(log)-\(name)").stops == 1, "\(name)")
        }
        #expect(DoorSink.log("\(log)-f").items > 0)
    }

    /// Two sources come to feed a join; one of them is in a call that takes long, on the thread that a branch leaves in
    /// the same change. The other one does not wait for it at the join.
    @Test func holdsTheLinksOfAJoinBackUntilTheLastThreadHasThem() throws {
        let log = "errand-held"
        var plain = ChainSketch()
        plain.request.spare = 8
        try plain.add(CountingSource.self, "one", options: #"{"count": 1000000, "everyMs": 1}"#)
        try plain.add(RecordingSink.self, "end", options: #"{"log": "\#(log)-end"}"#, link: LinkRequest(queue: 2))
        try plain.add(CountingSource.self, "two", options: #"{"count": 1000000, "everyMs": 1}"#)
        try plain.add(DoorFilter.self, "slow", options: #"{"door": "\#(log)"}"#, link: LinkRequest(queue: 0))
        try plain.add(RecordingSink.self, "other", options: #"{"log": "\#(log)-other"}"#, link: LinkRequest(queue: 2))
        var joined = plain
        try plain.add(
            RecordingSink.self, "goes", options: #"{"log": "\#(log)-goes"}"#, from: ["slow"],
            link: LinkRequest(queue: 2))
        let driver = try RunningChainDriver(plain)
        driver.waitForFrames(20)
        Door.shut(log)
        Door.waitForSomebody(log)
        try joined.add(PairJoin.self, "pair", from: ["one", "slow"], link: LinkRequest(queue: 2))
        try joined.add(RecordingSink.self, "pairs", options: #"{"log": "\#(log)-pairs"}"#)
        let changed = driver.change(to: joined)
        #expect(changed.isOK, "\(changed.error)")
        let wanted = driver.chain.progress.captured + 50
        driver.waitForFrames(wanted)
        #expect(driver.chain.progress.captured >= wanted, "the source beside it stands still")
        #expect(RecordingSink.log("\(log)-pairs").entries.isEmpty)
        Door.open(log)
        waitUntil { RecordingSink.log("\(log)-pairs").entries.count >= 20 }
        let result = driver.finish()
        #expect(result.ledgerFaults.isEmpty && result.abandoned.isEmpty && result.failures.isEmpty, "\(result)")
        #expect(driver.chain.ledger.isBalanced)
    }

    @Test func doesWhatIsRequiredThoughTheMailboxIsFull() {
        let thread = ThreadState(name: "full")
        var read = 0
        for _ in 0..<ThreadState.mostMessages { #expect(thread.post(ThreadState.Message(open: { read += 1 }))) }
        #expect(!thread.post(ThreadState.Message(open: {})))
        let (done, refused) = (Locked(0), Locked(0))
        Errand {
            done.withLock { $0 += 1 }
        } refused: {
            refused.withLock { $0 += 1 }
        }.post(to: thread)
        #expect(refused.withLock { $0 } == 1)
        let required = Errand {
            done.withLock { $0 += 1 }
        } refused: {
            refused.withLock { $0 += 1 }
        }
        required.post(to: thread, isRequired: true)
        #expect(!required.isSettled)
        while thread.hasMail { thread.readMail() }
        #expect(read == ThreadState.mostMessages && done.withLock { $0 } == 1 && required.isSettled)
        thread.closeMail()
        Errand {
        } refused: {
            refused.withLock { $0 += 1 }
        }.post(to: thread, isRequired: true)
        #expect(refused.withLock { $0 } == 2)
    }

    /// However long a thread hangs, what nobody waits for any more takes no room.
    @Test func anErrandThatIsWithdrawnLeavesTheMailbox() throws {
        let thread = ThreadState(name: "hangs")
        for _ in 0...ThreadState.mostMessages {
            let errand = Errand { Issue.record("it was withdrawn") }
            errand.post(to: thread)
            #expect(errand.wait(0, stop: StopSignal()) == .withdrawn)
        }
        #expect(!thread.hasMail)
        #expect(thread.post(ThreadState.Message(open: {})))
        thread.readMail()
        #expect(!thread.hasMail)
    }

    /// The same change may succeed later; a program that repeats it must know that.
    @Test func tellsAFullMailboxFromAStageThatHasEnded() throws {
        var sketch = ChainSketch()
        try sketch.add(CountingSource.self, "src")
        try sketch.add(CountSink.self, "sink")
        let chain = try Chain(sketch.request)
        let runner = try #require(chain.graph.runner(id: "sink"))
        let thread: ThreadState = runner.thread
        while thread.post(ThreadState.Message(open: {})) {}
        let full = chain.ask(thread, for: runner) {}
        #expect(!full.hasBegun && full.fault?.isBusy == true)
        #expect(
            full.fault?.description
                == "sink (count-sink): 256 commands are already waiting, so nothing was changed. Send the command again when they are answered."
        )
        let answers = CommandAnswers()
        chain.set(stage: "sink", options: [], reply: answers.reply(1))
        #expect(answers.wait(for: 1)?.isBusy == true)
        thread.closeMail()
        chain.set(stage: "sink", options: [], reply: answers.reply(2))
        let late = answers.wait(for: 2)
        #expect(late?.isBusy == false && late?.isDone == false)
        let ended = chain.ask(thread, for: runner) {}
        #expect(!ended.hasBegun && ended.fault?.isBusy == false)
        #expect(
            ended.fault?.description
                == "sink (count-sink): the stage has ended. Start the chain again, and send the command while the stage runs."
        )
        withExtendedLifetime(chain) {}
    }

    /// The stage before it on the same thread is in a call that takes long: no failure of the one that is made anew.
    @Test func aRestartWaitsForAThreadThatHangsAndHasNotFailed() throws {
        let log = "errand-restart"
        var sketch = ChainSketch()
        sketch.request.spare = 4
        try sketch.add(CountingSource.self, "src", options: #"{"count": 1000000, "everyMs": 1}"#)
        try sketch.add(DoorFilter.self, "gate", options: #"{"door": "\#(log)"}"#, link: LinkRequest(queue: 0))
        try sketch.add(
            ProbeFilter.self, "odd", options: #"{"failAt": 20}"#, link: LinkRequest(queue: 0), onError: .restart)
        try sketch.add(RecordingSink.self, "file", options: #"{"log": "\#(log)"}"#)
        let driver = try RunningChainDriver(sketch)
        driver.waitForEvent { $0.name == "stage-failed" && $0.stage == "odd" }
        Door.shut(log)
        Door.waitForSomebody(log)
        // The desk makes one change after the other: once the next one is answered, the restart has been tried.
        driver.chain.restart(try #require(driver.chain.graph.runner(id: "odd")).number)
        let next = driver.answer(isRepeating: false) { driver.chain.pause(stage: "nobody", reply: $0) }
        #expect(!next.isOK)
        Door.open(log)
        driver.waitForEvent { $0.name == "stage-restarted" && $0.stage == "odd" }
        #expect(!driver.allEvents.contains { $0.name == "restart-failed" })
        driver.waitForFrames(driver.chain.progress.captured + 20)
        let result = driver.finish()
        #expect(result.ledgerFaults.isEmpty && result.abandoned.isEmpty && result.failures.isEmpty, "\(result)")
        #expect(driver.chain.ledger.isBalanced)
    }
}

/// Doors by name, which tests shut and open; stages wait where one is shut.
enum Door {
    private struct State {
        var isShut = false
        var waiting = 0
    }
    private static let doors = Locked<[String: State]>([:])

    static func shut(_ name: String) { doors.withLock { $0[name, default: State()].isShut = true } }
    static func open(_ name: String) { doors.withLock { $0[name, default: State()].isShut = false } }
    static func isShut(_ name: String) -> Bool { doors.withLock { $0[name]?.isShut == true } }

    static func pass(_ name: String) {
        guard doors.withLock({ $0[name]?.isShut == true }) else { return }
        doors.withLock { $0[name]!.waiting += 1 }
        while doors.withLock({ $0[name]!.isShut }) { usleep(500) }
        doors.withLock { $0[name]!.waiting -= 1 }
    }

    static func hasSomebody(_ name: String) -> Bool { doors.withLock { $0[name]?.waiting ?? 0 } > 0 }

    static func waitForSomebody(_ name: String) {
        let deadline = ChainClock.system.now() + 120_000_000_000
        while !hasSomebody(name), ChainClock.system.now() < deadline { usleep(500) }
    }
}

/// Gives a picture each millisecond until a door is shut.
private final class UntilShutSource: Source {
    static let info = StageInfo(id: "until-shut-source", summary: "Ends at a door.", output: .video(.gray8))
    struct Options: StageOptions { @Option(help: "The door.") var door = "" }

    var options: Options
    private let context: StageContext
    private var count = 0

    init(options: Options, context: StageContext) {
        self.options = options
        self.context = context
    }

    func negotiate() throws -> MediaFormat {
        .video(VideoFormat(.gray8, width: 16, height: 16, frameRate: Rational(1000)))
    }

    func produce(_ output: Output) throws -> SourceProgress {
        guard !Door.isShut(options.door), context.sleep(until: context.clock.now() + 1_000_000) else { return .ended }
        guard let frame = try output.makeFrame() else { return .more }
        frame.pts = MediaTime(nanoseconds: Int64(count) * 1_000_000)
        count += 1
        try output.emit(frame)
        return .more
    }
}

/// Counts what comes; waits at doors.
final class DoorSink: Sink {
    static let info = StageInfo(id: "door-sink", summary: "Waits.", input: .video(.gray8))

    struct Options: StageOptions {
        @Option(help: "Name under which the log is found.") var log = ""
        @Option(help: "A door before each item.") var door = ""
        @Option(help: "A door before the end.") var drainDoor = ""
    }

    struct Log: Sendable {
        var items = 0
        var stops = 0
    }

    fileprivate static let logs = Locked<[String: Log]>([:])
    static func log(_ name: String) -> Log { logs.withLock { $0[name] ?? Log() } }

    var options: Options

    init(options: Options, context: StageContext) { self.options = options }

    func consume(_ input: consuming Sample) throws -> SinkVerdict {
        Door.pass(options.door)
        Self.logs.withLock { $0[options.log, default: Log()].items += 1 }
        return .delivered
    }

    func drain() { Door.pass(options.drainDoor) }

    func stop() { Self.logs.withLock { $0[options.log, default: Log()].stops += 1 } }
}

/// Counts what comes, in the same logs; waits at a door.
final class DoorFilter: Filter {
    static let info = StageInfo(id: "door", summary: "Waits.", input: .anyVideo, output: .sameAsInput)

    struct Options: StageOptions {
        @Option(help: "Name under which the log is found.") var log = ""
        @Option(help: "A door before each frame.") var door = ""
    }

    var options: Options
    init(options: Options, context: StageContext) { self.options = options }

    func process(_ frame: inout Frame) throws -> Verdict {
        Door.pass(options.door)
        DoorSink.logs.withLock { $0[options.log, default: DoorSink.Log()].items += 1 }
        return .forward
    }

    func stop() { DoorSink.logs.withLock { $0[options.log, default: DoorSink.Log()].stops += 1 } }
}
