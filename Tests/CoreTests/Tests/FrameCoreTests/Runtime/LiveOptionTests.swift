// SPDX-License-Identifier: Apache-2.0

import Glibc
import Testing

@testable import FrameCore

/// Live options and changes that meet: what a stage has, what it was told, and what the chain knows of it.
@Suite struct LiveOptionTests {
    private func level(_ id: String, _ driver: RunningChainDriver) throws -> Int {
        let runner = try #require(driver.chain.graph.runner(id: id))
        let level = Locked(-1)
        let deadline = ChainClock.system.now() + 120_000_000_000
        while true {
            let (_, fault) = driver.chain.ask(runner.thread, for: runner) {
                level.withLock { $0 = (runner.instance.stage as? ProbeFilter)?.options.level ?? -1 }
            }
            guard let fault else { return level.withLock { $0 } }
            let isLate = RunningChainDriver.isOfLateThread(fault.description)
            guard isLate, ChainClock.system.now() < deadline else { throw fault }
        }
    }

    /// The first thread is late when its option is to be taken back.
    @Test func aRefusedChangeLeavesNoOptionSet() throws {
        let (first, second) = ("live-first", "live-second")
        var sketch = ChainSketch()
        sketch.request.spare = 4
        try sketch.add(CountingSource.self, "src", options: #"{"count": 1000000, "everyMs": 1}"#)
        for (id, door) in [("one", first), ("two", second)] {
            try sketch.add(
                ProbeFilter.self, id, options: #"{"level": 3}"#, from: ["src"],
                link: LinkRequest(queue: 2, whenFull: .dropNewest))
            try sketch.add(
                DoorSink.self, "sink-\(id)", options: #"{"door": "\#(door)"}"#, link: LinkRequest(queue: 0))
        }
        let driver = try RunningChainDriver(sketch)
        driver.waitForFrames(10)
        Door.shut(second)
        Door.waitForSomebody(second)
        let changed = try sketch.setting("one", #"{"level": 9}"#).setting("two", #"{"level": 9}"#)
        let answers = CommandAnswers()
        driver.chain.change(stage: nil, to: { _ in changed.request }, reply: answers.reply(1))
        // The first option is set long before the second thread is given up.
        usleep(300_000)
        Door.shut(first)
        let answer = try #require(answers.wait(for: 1))
        #expect(!answer.isDone, "\(answer)")
        Door.open(first)
        Door.open(second)
        #expect(try level("one", driver) == 3)
        #expect(try level("two", driver) == 3)
        let later = driver.change(to: changed)
        #expect(later.isOK, "\(later)")
        #expect(try level("one", driver) == 9)
        #expect(try level("two", driver) == 9)
        #expect(driver.finish().isSuccess)
    }

    /// While a new stage starts, which takes long, a command sets an option of a stage that stays, or that is made
    /// anew.
    @Test(arguments: [false, true]) func anOptionThatIsSetDuringAChangeHoldsAndIsKnown(isRemade: Bool) throws {
        let door = "live-during-\(isRemade)"
        var sketch = ChainSketch()
        sketch.request.spare = 4
        try sketch.add(CountingSource.self, "src", options: #"{"count": 1000000, "everyMs": 1}"#)
        try sketch.add(ProbeFilter.self, "mark", options: #"{"level": 3}"#)
        try sketch.add(CountSink.self, "sink")
        let driver = try RunningChainDriver(sketch)
        var longer = isRemade ? try sketch.setting("mark", #"{"level": 3, "keep": 1}"#) : sketch
        try longer.add(SlowlyStartingSink.self, "late", options: #"{"door": "\#(door)"}"#, from: ["mark"])
        Door.shut(door)
        let answers = CommandAnswers()
        driver.chain.change(stage: nil, resetting: .all, to: { _ in longer.request }, reply: answers.reply(1))
        Door.waitForSomebody(door)
        let nine = [JSONNode.Member(key: "level", value: 9)]
        #expect(driver.answer { driver.chain.set(stage: "mark", options: nine, reply: $0) }.isOK)
        Door.open(door)
        let answer = try #require(answers.wait(for: 1))
        #expect(answer.isDone, "\(answer)")
        #expect(try level("mark", driver) == 9)
        #expect(driver.chain.setOptions["mark"]?.first?.value.asInt == 9)
        // The chain file read again undoes it.
        let reset = driver.answer {
            driver.chain.change(stage: nil, resetting: .all, to: { _ in longer.request }, reply: $0)
        }
        #expect(reset.isOK, "\(reset)")
        #expect(try level("mark", driver) == 3)
        #expect(driver.chain.setOptions["mark"]?.isEmpty ?? true)
        #expect(driver.finish().isSuccess)
    }
}

/// Waits at a door when it starts.
private final class SlowlyStartingSink: Sink {
    static let info = StageInfo(id: "slowly-starting", summary: "Starts slowly.", input: .video(.gray8))

    struct Options: StageOptions { @Option(help: "A door before the start.") var door = "" }

    var options: Options

    init(options: Options, context: StageContext) { self.options = options }

    func start() throws { Door.pass(options.door) }

    func consume(_ input: consuming Sample) throws -> SinkVerdict { .delivered }
}
