// SPDX-License-Identifier: Apache-2.0

import Glibc
import Testing

@testable import FrameCore

/// Live options and changes that meet: what a stage has, what it was told, and what the chain knows of it.
@Suite struct LiveOptionTests {
    /// Two stages on threads of their own, each before a door.
    static func twoBranches(_ first: String, _ second: String) throws -> ChainSketch {
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
        return sketch
    }

    private func set(_ level: Int, of id: String, _ driver: RunningChainDriver) -> RunningChainDriver.Answer {
        let options = [JSONNode.Member(key: "level", value: JSONNode(.number(String(level))))]
        return driver.answer { driver.chain.set(stage: id, options: options, reply: $0) }
    }

    /// Until a change has set it, or for as long as most machines need for that.
    private func waitForLevel(_ level: Int, of id: String, _ driver: RunningChainDriver) {
        let deadline = ChainClock.system.now() + 600_000_000
        while (try? driver.level(of: id)) != level, ChainClock.system.now() < deadline { usleep(200) }
    }

    @Test func forgetsByKeyAndByAge() {
        func member(_ key: String, _ value: JSONNode) -> JSONNode.Member { JSONNode.Member(key: key, value: value) }
        var options = LiveOptions()
        options.set(1, [member("level", 1), member("text", "x")])
        let before = options.count
        // The same value again is a later one.
        options.set(1, [member("level", 1)])
        #expect(options.options(of: 1, setAfter: before).map(\.key) == ["level"])
        options.forget(1, keys: ["level", "text"], setBefore: before)
        #expect(options[1].map(\.key) == ["level"])
        options.set(1, [member("text", "x"), member("level", 1)])
        options.forget(1, keys: ["text", "none"])
        #expect(options[1].map(\.key) == ["level"])
        options.set(1, [member("text", "y")])
        options.set(2, [member("level", 2)])
        options.move(from: 1, to: 2)
        #expect(options[1].isEmpty && Set(options[2].map(\.key)) == ["level", "text"])
        #expect(options[2].first { $0.key == "level" }?.value.asInt == 2, "what was set there stays")
        let later = options.count
        options.set(2, [member("level", 3)])
        options.forget(2, setBefore: later)
        #expect(options[2].map(\.key) == ["level"])
        options.forget(2, setBefore: options.count)
        #expect(options[2].isEmpty)
        options.set(1, [member("level", 1)])
        options.set(3, [member("level", 1)])
        options.keep(stages: [3, 4])
        #expect(options[1].isEmpty && options[3].count == 1)
        options.forget(3)
        #expect(options[3].isEmpty)
    }

    /// A stage that is new has its thread, and takes commands, before the change is answered.
    @Test(arguments: [false, true]) func anOptionOfANewStageIsKnownWhereTheStageStays(isRefused: Bool) throws {
        let (door, drainDoor) = ("live-new-\(isRefused)", "live-new-drain-\(isRefused)")
        let sketch = try Self.twoBranches(door, "live-new-none")
            .setting("sink-two", #"{"drainDoor": "\#(drainDoor)"}"#)
        let driver = try RunningChainDriver(sketch)
        driver.waitForFrames(10)
        if isRefused {
            Door.shut(door)
            Door.waitForSomebody(door)
        }
        // The instance that is replaced drains until the door opens.
        Door.shut(drainDoor)
        var longer = try sketch.setting("one", #"{"level": 9}"#).setting("sink-two", "{}")
        try longer.add(
            ProbeFilter.self, "new", from: ["src"], link: LinkRequest(queue: 2, whenFull: .dropNewest))
        try longer.add(CountSink.self, "sink-new", link: LinkRequest(queue: 0))
        let answers = CommandAnswers()
        driver.chain.change(stage: nil, to: { [longer] _ in longer.request }, reply: answers.reply(1))
        let deadline = ChainClock.system.now() + 60_000_000_000
        while driver.chain.graph.runner(id: "new") == nil, answers[1] == nil, ChainClock.system.now() < deadline {
            usleep(200)
        }
        let wasSet = set(5, of: "new", driver).isOK
        Door.open(drainDoor)
        let answer = try #require(answers.wait(for: 1))
        Door.open(door)
        #expect(!answer.isDone || !isRefused, "\(answer)")
        #expect(!wasSet || !isRefused)
        // On a machine that is too busy the door is opened too late, or the command comes too late.
        #expect(driver.chain.setOptions["new"]?.first?.value.asInt == (answer.isDone && wasSet ? 5 : nil))
        #expect(driver.finish().isSuccess)
    }

    /// The first thread is late when its option is to be taken back.
    @Test func aRefusedChangeLeavesNoOptionSet() throws {
        let (first, second) = ("live-first", "live-second")
        let sketch = try Self.twoBranches(first, second)
        let driver = try RunningChainDriver(sketch)
        driver.waitForFrames(10)
        Door.shut(second)
        Door.waitForSomebody(second)
        let changed = try sketch.setting("one", #"{"level": 9}"#).setting("two", #"{"level": 9}"#)
        let answers = CommandAnswers()
        driver.chain.change(stage: nil, to: { _ in changed.request }, reply: answers.reply(1))
        // The first option is set long before the second thread is given up.
        waitForLevel(9, of: "one", driver)
        Door.shut(first)
        let answer = try #require(answers.wait(for: 1))
        #expect(!answer.isDone, "\(answer)")
        Door.open(first)
        Door.open(second)
        #expect(try driver.level(of: "one") == 3)
        #expect(try driver.level(of: "two") == 3)
        let later = driver.change(to: changed)
        #expect(later.isOK, "\(later)")
        #expect(try driver.level(of: "one") == 9)
        #expect(try driver.level(of: "two") == 9)
        #expect(driver.finish().isSuccess)
    }

    /// A command was answered, so what it has set holds.
    @Test func aRefusedChangeLeavesWhatACommandHasSetMeanwhile() throws {
        let door = "live-refused-command"
        let sketch = try Self.twoBranches("live-refused-none", door)
        let driver = try RunningChainDriver(sketch)
        driver.waitForFrames(10)
        #expect(set(4, of: "one", driver).isOK)
        Door.shut(door)
        Door.waitForSomebody(door)
        let changed = try sketch.setting("one", #"{"level": 9}"#).setting("two", #"{"level": 9}"#)
        let answers = CommandAnswers()
        driver.chain.change(stage: nil, to: { _ in changed.request }, reply: answers.reply(1))
        waitForLevel(9, of: "one", driver)
        #expect(set(5, of: "one", driver).isOK)
        let answer = try #require(answers.wait(for: 1))
        #expect(!answer.isDone, "\(answer)")
        Door.open(door)
        #expect(try driver.level(of: "one") == 5)
        #expect(driver.chain.setOptions["one"]?.first?.value.asInt == 5)
        // Without such a command, it is what the one before has set.
        Door.shut(door)
        Door.waitForSomebody(door)
        #expect(!driver.change(to: changed, isRepeating: false).isOK)
        Door.open(door)
        #expect(try driver.level(of: "one") == 5)
        #expect(driver.chain.setOptions["one"]?.first?.value.asInt == 5)
        #expect(driver.finish().isSuccess)
    }

    /// A command that was answered while the stage was made anew holds where the change is refused.
    @Test func anOptionOfAStageThatIsMadeAnewInVainHolds() throws {
        let door = "live-taken-back"
        let sketch = try Self.twoBranches("live-taken-back-none", door)
        let driver = try RunningChainDriver(sketch)
        driver.waitForFrames(10)
        #expect(set(4, of: "one", driver).isOK)
        let earlier = try #require(driver.chain.graph.runner(id: "one"))
        Door.shut(door)
        Door.waitForSomebody(door)
        // Behind another stage it is made anew.
        var moved = try sketch.setting("two", #"{"level": 9}"#)
        try moved.add(ProbeFilter.self, "mid", from: ["src"], link: LinkRequest(queue: 2, whenFull: .dropNewest))
        let index = try #require(moved.request.stages.firstIndex { $0.id == "one" })
        moved.request.stages[index].from = [moved.request.stages.count - 1]
        let answers = CommandAnswers()
        driver.chain.change(stage: nil, to: { [moved] _ in moved.request }, reply: answers.reply(1))
        let deadline = ChainClock.system.now() + 60_000_000_000
        while driver.chain.starting.withLock({ $0.runners.isEmpty }), answers[1] == nil,
            ChainClock.system.now() < deadline
        {
            usleep(200)
        }
        #expect(set(5, of: "one", driver).isOK)
        let answer = try #require(answers.wait(for: 1))
        Door.open(door)
        #expect(!answer.isDone && driver.chain.graph.runner(id: "one") === earlier, "\(answer)")
        #expect(driver.chain.setOptions["one"]?.first?.value.asInt == 5)
        #expect(try driver.level(of: "one") == 5)
        #expect(driver.finish().isSuccess)
    }

    /// While a new stage starts, which takes long, a command sets an option of a stage that stays, or that is made
    /// anew.
    @Test(arguments: [false, true], [false, true])
    func anOptionThatIsSetDuringAChangeHoldsAndIsKnown(isRemade: Bool, wasSet: Bool) throws {
        let door = "live-during-\(isRemade)-\(wasSet)"
        var sketch = ChainSketch()
        sketch.request.spare = 4
        try sketch.add(CountingSource.self, "src", options: #"{"count": 1000000, "everyMs": 1}"#)
        try sketch.add(ProbeFilter.self, "mark", options: #"{"level": 3}"#)
        try sketch.add(CountSink.self, "sink")
        let driver = try RunningChainDriver(sketch)
        if wasSet { #expect(set(9, of: "mark", driver).isOK) }
        var longer = isRemade ? try sketch.setting("mark", #"{"level": 3, "keep": 1}"#) : sketch
        try longer.add(SlowlyStartingSink.self, "late", options: #"{"door": "\#(door)"}"#, from: ["mark"])
        Door.shut(door)
        let answers = CommandAnswers()
        driver.chain.change(stage: nil, resetting: .all, to: { _ in longer.request }, reply: answers.reply(1))
        Door.waitForSomebody(door)
        #expect(set(9, of: "mark", driver).isOK)
        Door.open(door)
        let answer = try #require(answers.wait(for: 1))
        #expect(answer.isDone, "\(answer)")
        #expect(try driver.level(of: "mark") == 9)
        #expect(driver.chain.setOptions["mark"]?.first?.value.asInt == 9)
        // The chain file read again undoes it.
        let reset = driver.answer {
            driver.chain.change(stage: nil, resetting: .all, to: { _ in longer.request }, reply: $0)
        }
        #expect(reset.isOK, "\(reset)")
        #expect(try driver.level(of: "mark") == 3)
        #expect(driver.chain.setOptions["mark"]?.isEmpty ?? true)
        #expect(driver.finish().isSuccess)
    }
}

/// Waits at a door when it starts.
final class SlowlyStartingSink: Sink {
    static let info = StageInfo(id: "slowly-starting", summary: "Starts slowly.", input: .video(.gray8))

    struct Options: StageOptions { @Option(help: "A door before the start.") var door = "" }

    var options: Options

    init(options: Options, context: StageContext) { self.options = options }

    func start() throws { Door.pass(options.door) }

    func consume(_ input: consuming Sample) throws -> SinkVerdict { .delivered }
}
