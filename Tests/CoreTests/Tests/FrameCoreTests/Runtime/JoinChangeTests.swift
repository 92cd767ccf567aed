// SPDX-License-Identifier: Apache-2.0

import Glibc
import Testing

@testable import FrameCore

/// Changes around a join, which has to be told what does not come any more.
@Suite struct JoinChangeTests {
    /// source → a stage that is `delay` late → join, source → join, with queues just as long as the stage is late.
    private func diamond(_ log: String, _ match: JoinMatch, delay: Int) throws -> ChainSketch {
        var sketch = ChainSketch()
        let link = LinkRequest(queue: delay)
        try sketch.add(CountingSource.self, "src", options: #"{"count": 1000000, "everyMs": 1}"#)
        try sketch.add(CopyTransform.self, "copy", options: #"{"delay": \#(delay)}"#, link: LinkRequest(queue: 1))
        try sketch.add(PairJoin.self, "pair", from: ["copy", "src"], link: link)
        sketch.request.stages[2].join = JoinRequest(match: match)
        try sketch.add(RecordingSink.self, "file", options: #"{"log": "\#(log)"}"#)
        return sketch
    }

    private func goesOn(_ driver: RunningChainDriver) throws {
        let wanted = driver.chain.progress.captured + 20
        driver.waitForFrames(wanted)
        try #require(driver.chain.progress.captured >= wanted, "the chain stands still")
    }

    private func rises(_ log: String) -> Bool {
        let times = RecordingSink.log(log).milliseconds
        return times.count > 20 && times.indices.dropFirst().allSatisfy { times[$0] > times[$0 - 1] }
    }

    @Test(arguments: JoinMatch.allCases, [1, 2])
    func goesOnWhereADelayingStageIsReplacedWithoutDraining(match: JoinMatch, delay: Int) throws {
        let log = "join-replace-\(match)-\(delay)"
        let sketch = try diamond(log, match, delay: delay)
        let driver = try RunningChainDriver(sketch)
        driver.waitForFrames(20)
        for never in 90_000..<90_004 {
            let options = #"{"delay": \#(delay), "swallow": \#(never)}"#
            let answer = driver.change(to: try sketch.setting("copy", options), isDraining: false)
            #expect(answer.isOK, "\(answer.error)")
            try goesOn(driver)
        }
        let result = driver.finish()
        #expect(result.isSuccess, "\(result)")
        #expect(driver.chain.graph.runner(id: "copy")!.dropCount(.detached) > 0)
        #expect(rises(log))
    }

    /// What the stage held when it was paused cannot come any more: the join has been told so.
    @Test(arguments: JoinMatch.allCases, [1, 2])
    func goesOnWhereADelayingStageIsPaused(match: JoinMatch, delay: Int) throws {
        let log = "join-pause-\(match)-\(delay)"
        let driver = try RunningChainDriver(try diamond(log, match, delay: delay))
        driver.waitForFrames(20)
        for _ in 0..<4 {
            #expect(driver.answer { driver.chain.pause(stage: "copy", reply: $0) }.isOK)
            try goesOn(driver)
            #expect(driver.answer { driver.chain.resume(stage: "copy", reply: $0) }.isOK)
            try goesOn(driver)
        }
        let result = driver.finish()
        #expect(result.isSuccess, "\(result)")
        #expect(driver.chain.graph.runner(id: "copy")!.dropCount(.paused) >= 4 * 15)
        #expect(rises(log))
        #expect(driver.chain.ledger.isBalanced)
    }

    /// Each of two threads opens its link to the join in its own time. One that waits there meanwhile would keep the other
    /// from its own.
    @Test func attachesAJoinThatSeveralThreadsFeed() throws {
        var plain = ChainSketch()
        plain.request.spare = 24
        let one = LinkRequest(queue: 1)
        try plain.add(CountingSource.self, "src", options: #"{"count": 100000000}"#)
        try plain.add(CopyTransform.self, "a", options: #"{"delay": 1}"#, from: ["src"], link: one)
        try plain.add(CopyTransform.self, "b", options: #"{"delay": 1}"#, from: ["a"], link: one)
        try plain.add(RecordingSink.self, "file", options: #"{"log": "join-attach"}"#, from: ["b"], link: one)
        try plain.add(RecordingSink.self, "other", options: #"{"log": "join-attach-2"}"#, from: ["src"], link: one)
        let driver = try RunningChainDriver(plain)
        driver.waitForFrames(20)
        var longer = plain
        try longer.add(PairJoin.self, "pair", from: ["src", "a", "b"], link: LinkRequest(queue: 4))
        try longer.add(RecordingSink.self, "late", options: #"{"log": "join-attach-late"}"#, from: ["pair"], link: one)
        for round in 0..<20 {
            let attached = driver.change(to: longer)
            #expect(attached.isOK, "round \(round): \(attached.error)")
            try goesOn(driver)
            let detached = driver.change(to: plain)
            #expect(detached.isOK, "round \(round): \(detached.error)")
            try goesOn(driver)
        }
        let result = driver.finish()
        #expect(result.isSuccess, "\(result)")
        #expect(driver.chain.ledger.isBalanced)
    }
}
