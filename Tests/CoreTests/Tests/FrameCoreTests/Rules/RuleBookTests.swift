// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import FrameCore

/// Rules on a simulated clock, in milliseconds.
@Suite struct RuleBookTests {
    private static func ns(_ ms: Int) -> Int64 { Int64(ms) * 1_000_000 }

    private static func rule(
        _ path: String = "on[0]", event: String = "faces", stage: Rule.Subject = .stage("face"),
        when: [RuleCondition] = [RuleCondition("count", .number, .above(0))], hold: Int? = nil, every: Int? = nil,
        otherwise: Int? = nil
    ) -> Rule {
        Rule(
            path: path, event: event, subject: stage, isOfInstance: true, conditions: when, holdNs: hold.map(ns),
            everyNs: every.map(ns), commands: [RuleCommand(path: "\(path).do", ["stage": "rec", "command": "start"])],
            otherwise: otherwise.map {
                Rule.Otherwise(
                    holdNs: ns($0),
                    commands: [RuleCommand(path: "\(path).otherwise.do", ["stage": "rec", "command": "stop"])])
            })
    }

    private static func event(_ name: String = "faces", stage: String? = "face", at ms: Int, _ details: JSONNode)
        -> Event
    {
        Event(name: name, stage: stage, text: "", details: details, time: ns(ms))
    }

    private static func faces(_ count: Int, at ms: Int) -> Event { event(at: ms, ["count": .number(count)]) }

    /// What `book` asks for when it is shown all events at once, at `end`.
    private static func kinds(_ book: inout RuleBook, _ events: [Event], until end: Int) -> [RuleBook.Action.Kind] {
        book.take(events, now: ns(end)).map(\.kind)
    }

    // MARK: Moments

    @Test func doesItForEachEventThatFitsWhereNothingMustHold() {
        var book = RuleBook([Self.rule()])
        let events = [Self.faces(1, at: 10), Self.faces(0, at: 20), Self.faces(2, at: 30), Self.faces(3, at: 40)]
        #expect(Self.kinds(&book, events, until: 50) == [.do, .do, .do])
        #expect(Self.kinds(&book, [], until: 100_000) == [])
    }

    @Test func needsNoConditions() {
        var book = RuleBook([Self.rule(event: "camera-lost", stage: .stage("cam"), when: [])])
        let events = [
            Self.event("camera-lost", stage: "cam", at: 10, [:]),
            Self.event("camera-lost", stage: "other", at: 20, [:]),
            Self.event("camera-back", stage: "cam", at: 30, [:]), Self.event("camera-lost", stage: "cam", at: 40, [:]),
        ]
        #expect(Self.kinds(&book, events, until: 50) == [.do, .do])
    }

    @Test func hearsTheChainAnyStageOrOne() {
        let events = [
            Self.event("state", stage: nil, at: 1, [:]), Self.event("state", stage: "a", at: 2, [:]),
            Self.event("state", stage: "b", at: 3, [:]),
        ]
        for (subject, count) in [(Rule.Subject.chain, 1), (.anyStage, 2), (.stage("b"), 1), (.stage("c"), 0)] {
            var book = RuleBook([Self.rule(event: "state", stage: subject, when: [])])
            #expect(book.take(events, now: 10).count == count)
        }
    }

    @Test func leavesOutWhatComesBeforeEveryHasPassed() {
        var book = RuleBook([Self.rule(every: 100)])
        let events = [0, 50, 99, 100, 150, 260].map { Self.faces(1, at: $0) }
        #expect(Self.kinds(&book, events, until: 1000) == [.do, .do, .do])
    }

    // MARK: States

    @Test func waitsUntilItHasHeld() {
        var book = RuleBook([Self.rule(hold: 1000)])
        #expect(Self.kinds(&book, [Self.faces(1, at: 0)], until: 999) == [])
        #expect(Self.kinds(&book, [], until: 1000) == [.do])
        #expect(Self.kinds(&book, [], until: 100_000) == [], "once")
    }

    @Test func anotherEventThatFitsDoesNotBeginAnew() {
        var book = RuleBook([Self.rule(hold: 1000)])
        #expect(Self.kinds(&book, [Self.faces(1, at: 0), Self.faces(2, at: 900)], until: 1000) == [.do])
        #expect(Self.kinds(&book, [Self.faces(3, at: 1100)], until: 5000) == [])
    }

    @Test func beginsAnewWhenItDidNotHold() {
        var book = RuleBook([Self.rule(hold: 1000)])
        let events = [Self.faces(1, at: 0), Self.faces(0, at: 999), Self.faces(1, at: 1500)]
        #expect(Self.kinds(&book, events, until: 2499) == [])
        #expect(Self.kinds(&book, [], until: 2500) == [.do])
    }

    /// However seldom somebody looks.
    @Test func goesByTheTimesOfTheEvents() {
        var late = RuleBook([Self.rule(hold: 1000, otherwise: 500)])
        let events = [
            Self.faces(1, at: 0), Self.faces(0, at: 1001), Self.faces(1, at: 1500), Self.faces(0, at: 3000),
            Self.faces(1, at: 3500), Self.faces(0, at: 3600),
        ]
        // Held until 1001; not held for 499 ms only; from 3000 to 3500 not held for 500, and not again for 1 s.
        #expect(Self.kinds(&late, events, until: 10_000) == [.do, .otherwise])
        var often = RuleBook([Self.rule(hold: 1000, otherwise: 500)])
        var kinds: [RuleBook.Action.Kind] = []
        for now in stride(from: 0, through: 10_000, by: 50) {
            let new = events.filter { $0.time > Self.ns(now - 50) && $0.time <= Self.ns(now) }
            kinds += Self.kinds(&often, new, until: now)
        }
        #expect(kinds == [.do, .otherwise])
    }

    @Test func goesBackOnlyAfterItWasDone() {
        var book = RuleBook([Self.rule(hold: 1000, otherwise: 2000)])
        #expect(Self.kinds(&book, [Self.faces(0, at: 0)], until: 10_000) == [])
        #expect(Self.kinds(&book, [Self.faces(1, at: 10_000), Self.faces(0, at: 10_500)], until: 20_000) == [])
        #expect(Self.kinds(&book, [Self.faces(1, at: 20_000)], until: 21_000) == [.do])
        #expect(Self.kinds(&book, [Self.faces(0, at: 22_000), Self.faces(1, at: 23_999)], until: 30_000) == [])
        #expect(Self.kinds(&book, [Self.faces(0, at: 30_000)], until: 31_999) == [])
        #expect(Self.kinds(&book, [], until: 32_000) == [.otherwise])
        #expect(Self.kinds(&book, [Self.faces(1, at: 33_000)], until: 34_000) == [.do])
    }

    @Test func followsAStateWithoutTimes() {
        var book = RuleBook([Self.rule(otherwise: 0)])
        let events = [Self.faces(1, at: 0), Self.faces(2, at: 1), Self.faces(0, at: 2), Self.faces(0, at: 3)]
        #expect(Self.kinds(&book, events, until: 4) == [.do, .otherwise])
    }

    @Test func aStateThatStillHoldsWaitsForEvery() {
        var book = RuleBook([Self.rule(hold: 0, every: 1000)])
        let events = [Self.faces(1, at: 0), Self.faces(0, at: 100), Self.faces(1, at: 200)]
        #expect(Self.kinds(&book, events, until: 999) == [.do])
        #expect(Self.kinds(&book, [], until: 1000) == [.do])
        #expect(
            Self.kinds(&book, [Self.faces(0, at: 1100), Self.faces(1, at: 1200), Self.faces(0, at: 1300)], until: 9000)
                == [])
    }

    @Test(arguments: ["stage-failed", "stage-replaced", "stage-restarted", "stage-attached"])
    func knowsNothingOfAStageThatBeginsAnew(beginning: String) {
        var book = RuleBook([Self.rule(hold: 0, otherwise: 100)])
        #expect(Self.kinds(&book, [Self.faces(1, at: 0)], until: 10) == [.do])
        #expect(Self.kinds(&book, [Self.event(beginning, stage: "other", at: 20, [:])], until: 1000) == [])
        #expect(Self.kinds(&book, [Self.event(beginning, at: 1000, [:])], until: 1100) == [.otherwise])
    }

    @Test func doesWhatSeveralRulesAskForInTheOrderOfTime() {
        var book = RuleBook([
            Self.rule("on[0]", hold: 500), Self.rule("on[1]", hold: 200), Self.rule("on[2]", event: "x", when: []),
        ])
        let events = [Self.faces(1, at: 0), Self.event("x", at: 300, [:]), Self.faces(0, at: 600)]
        #expect(book.take(events, now: Self.ns(1000)).map(\.rule.path) == ["on[1]", "on[2]", "on[0]"])
    }

    @Test func anEventWhoseTimeLiesBackIsSeenNow() {
        var book = RuleBook([Self.rule(hold: 100)])
        #expect(Self.kinds(&book, [Self.faces(0, at: 1000), Self.faces(1, at: 900)], until: 1050) == [])
        #expect(Self.kinds(&book, [], until: 1099) == [])
        #expect(Self.kinds(&book, [], until: 1100) == [.do])
    }

    // MARK: Loops

    @Test func restsWhereItIsDoneAgainAndAgain() {
        var book = RuleBook([Self.rule()])
        let first = Self.kinds(&book, (0..<100).map { Self.faces(1, at: $0) }, until: 100)
        #expect(first == Array(repeating: .do, count: 20) + [.rest], "said once")
        #expect(Self.kinds(&book, [Self.faces(1, at: 10_019)], until: 10_019) == [])
        #expect(Self.kinds(&book, [Self.faces(1, at: 10_020)], until: 10_020) == [.do])
    }

    @Test func aStateRestsToo() {
        var book = RuleBook([Self.rule(otherwise: 0)])
        let events = (0..<100).map { Self.faces($0 % 2, at: $0) }
        let kinds = Self.kinds(&book, events, until: 100)
        #expect(kinds.count { $0 == .do } == 20 && kinds.count { $0 == .otherwise } == 20)
        #expect(kinds.count { $0 == .rest } == 1)
        // What holds then is done then: the last event said 1.
        #expect(Self.kinds(&book, [], until: 20_000) == [.do])
    }

    @Test func twoADoSecondsAreNoLoop() {
        var book = RuleBook([Self.rule()])
        let kinds = Self.kinds(&book, (0..<100).map { Self.faces(1, at: $0 * 500) }, until: 100_000)
        #expect(kinds == Array(repeating: .do, count: 100))
    }

    @Test func everyIsABoundOfItsOwn() {
        var book = RuleBook([Self.rule(every: 100)])
        let kinds = Self.kinds(&book, (0..<1000).map { Self.faces(1, at: $0 * 10) }, until: 10_000)
        #expect(kinds == Array(repeating: .do, count: 100))
    }

    // MARK: Reload

    @Test func keepsTheStateOfARuleThatSaysTheSame() {
        let held = Self.rule("on[0]", hold: 1000, otherwise: 0)
        var book = RuleBook([held])
        #expect(Self.kinds(&book, [Self.faces(1, at: 0)], until: 500) == [])
        var moved = Self.rule("on[1]", hold: 1000, otherwise: 0)
        moved.commands[0].node.place = TextPlace(line: 9, column: 3)
        #expect(book.replace(with: [Self.rule("on[0]", hold: 2000, otherwise: 0), moved]) == 1)
        let actions = book.take([], now: Self.ns(5000))
        #expect(actions.map(\.rule.path) == ["on[1]"], "the other knows nothing yet")
        #expect(actions.first?.commands.first?.path == "on[1].do")
        #expect(book.replace(with: []) == 0 && book.isEmpty)
    }

    @Test func twoRulesThatSayTheSameKeepAStateEach() {
        var book = RuleBook([Self.rule("on[0]", hold: 0), Self.rule("on[1]", hold: 0)])
        #expect(Self.kinds(&book, [Self.faces(1, at: 0)], until: 0) == [.do, .do])
        #expect(
            book.replace(with: [Self.rule("on[0]", hold: 0), Self.rule("on[1]", hold: 0), Self.rule("on[2]", hold: 0)])
                == 2)
        #expect(book.take([Self.faces(2, at: 10)], now: Self.ns(10)).map(\.rule.path) == ["on[2]"])
    }

    @Test func tellsWhatBecameOfThem() {
        var book = RuleBook([Self.rule(hold: 0, otherwise: 0), Self.rule("on[1]", every: 100)])
        _ = book.take([Self.faces(1, at: 0), Self.faces(0, at: 1), Self.faces(1, at: 2)], now: Self.ns(2))
        #expect(
            book.figures.text()
                == #"[{"rule":"on[0]","event":"faces","done":2,"holds":true,"otherwise":1},{"rule":"on[1]","event":"faces","done":1}]"#
        )
    }
}

@Suite struct RuleConditionTests {
    private static func fits(_ value: JSONNode?, _ kind: MemberDeclaration.Kind, _ test: RuleCondition.Test) -> Bool {
        RuleCondition("x", kind, test).fits(value.map { ["x": $0] } ?? [:])
    }

    @Test(arguments: [
        ("3", RuleCondition.Test.above(2), true), ("2", .above(2), false), ("1.5", .below(2), true),
        ("2", .below(2), false), ("2", .atLeast(2), true), ("1.9", .atLeast(2), false), ("2.0", .atMost(2), true),
        ("2.1", .atMost(2), false), ("2.0", .equals(.number(2)), true), ("2", .not(.number(2)), false),
        ("3", .not(.number(2)), true), ("3", .among([.number(1), .number(3)]), true),
        ("2", .among([.number(1)]), false),
        ("1e999", .above(0), false),
    ]) func comparesNumbers(text: String, test: RuleCondition.Test, fits: Bool) {
        #expect(Self.fits(JSONNode(.number(text)), .number, test) == fits)
    }

    @Test func comparesWordsAndTruth() {
        #expect(Self.fits("lost", .string, .equals(.string("lost"))))
        #expect(!Self.fits("Lost", .string, .equals(.string("lost"))))
        #expect(Self.fits("back", .string, .not(.string("lost"))))
        #expect(Self.fits(.bool(true), .bool, .equals(.bool(true))))
        #expect(!Self.fits(.bool(false), .bool, .among([.bool(true)])))
    }

    /// A member that the event lacks, or that is of another type than declared, fits nothing.
    @Test(arguments: [nil, JSONNode.null, "3", .bool(true), [3], ["a": 3]] as [JSONNode?])
    func aValueOfAnotherTypeFitsNothing(value: JSONNode?) {
        for test in [
            RuleCondition.Test.above(-1e9), .below(1e9), .equals(.number(3)), .not(.number(7)), .among([.number(3)]),
        ] {
            #expect(!Self.fits(value, .number, test))
        }
    }

    @Test func allMustFit() {
        let rule = Rule(
            path: "on[0]", event: "e",
            conditions: [RuleCondition("a", .number, .above(0)), RuleCondition("b", .string, .equals(.string("x")))],
            commands: [])
        let event = Event(name: "e", text: "", time: 0)
        #expect(!rule.fits(event))
        var both = event
        both.details = ["a": 1, "b": "x"]
        #expect(rule.fits(both))
        both.details = ["a": 1, "b": "y"]
        #expect(!rule.fits(both))
    }
}
