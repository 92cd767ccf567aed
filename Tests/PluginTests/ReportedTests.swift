// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Testing

@testable import Reports

/// What is reported, and when again.
@Suite struct ReportedTests {
    @Test func reportsOnce() {
        var reported = Reported()
        let answers = ["a", "a", "b", "a", "b"].map { reported.isFirst($0) }
        #expect(answers == [true, false, true, false, false])
        reported.forget("a")
        let later = ["a", "b", "a"].map { reported.isFirst($0) }
        #expect(later == [true, false, false])
    }

    @Test func reportsAtMostOnceInAWhile() {
        var reported = Reported()
        // From the last report on, not from the last call; an earlier time begins anew.
        let times: [Int64] = [-5, 0, 4, 5, 6, 14, 15, 3, 12, 13]
        let answers = times.map { reported.isDue("a", now: $0, every: 10) }
        #expect(answers == [true, false, false, true, false, false, true, true, false, true])
        let other = reported.isDue("b", now: 14, every: 10)
        #expect(other)
        reported.forget("a")
        let forgotten = reported.isDue("a", now: 14, every: 10)
        #expect(forgotten)
    }

    @Test func reportsAtPowersOfTen() {
        var reported = Reported()
        let counts = (0...1000).filter { reported.isNextPower("a", of: $0) }
        #expect(counts == [1, 10, 100, 1000])
        // A count that leaps is reported once, and next at the power above it.
        let leaps = [7, 7, 9, 10, 250, 999, 1000, 1_000_000, 9_999_999].filter { reported.isNextPower("b", of: $0) }
        #expect(leaps == [7, 10, 250, 1000, 1_000_000])
    }

    @Test func makesTheTextOfAnEventThatIsPostedOnly() {
        let context = StageContext(stageID: "a")
        let events = context.followEvents()
        var (reported, texts) = (Reported(), 0)
        func text() -> String {
            texts += 1
            return "text \(texts)"
        }
        for _ in 0..<3 {
            context.post("gap", once: &reported, level: .warning, text: text(), details: ["seconds": .number(1)])
            context.post("gap", once: &reported, as: "other", text: text())
        }
        let posted = events.take().events
        #expect(texts == 2)
        #expect(posted.map(\.name) == ["gap", "gap"] && posted.map(\.text) == ["text 1", "text 2"])
        #expect(posted.map(\.level) == [.warning, .info])
        #expect(posted.first?.details == ["seconds": .number(1)])
    }
}
