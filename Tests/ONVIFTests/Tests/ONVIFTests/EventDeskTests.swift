// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import FrameCore
@testable import ONVIF

@Suite struct EventDeskTests {
    private let got = Locked<[EventDesk.Pulled?]>([])

    private func desk(_ stages: [String: String] = ["a": "cam"]) -> EventDesk {
        let desk = EventDesk()
        desk.setStages([.motion: stages], wall: 0, now: 0)
        return desk
    }

    @discardableResult private func pull(_ desk: EventDesk, _ id: String, seconds: Double = 10, now: Int64 = 0)
        -> UInt64
    {
        let got = got
        return desk.pull(id, most: 100, seconds: seconds, now: now) { pulled in got.withLock { $0.append(pulled) } }
    }

    private var count: Int { got.withLock(\.count) }
    private func messages(_ index: Int) -> [Bool] {
        got.withLock { $0.indices.contains(index) ? $0[index]?.messages.map(\.change.isTrue) ?? [] : [] }
    }

    @Test func aPullWaitsForAChange() throws {
        let desk = desk()
        let id = try #require(desk.subscribe(.all, seconds: nil, wall: 0, now: 0)).id
        pull(desk, id)
        #expect(messages(0) == [false])
        pull(desk, id)
        #expect(count == 1)
        desk.note(.motion, stage: "a", isTrue: true, wall: 1, now: 1)
        #expect(messages(1) == [true])
        desk.note(.motion, stage: "a", isTrue: true, wall: 2, now: 2)
        pull(desk, id, now: 2)
        #expect(count == 2)
        desk.tick(now: 11_000_000_000)
        #expect(count == 3 && messages(2).isEmpty)
    }

    @Test func whatAClientDidNotGetStaysForTheNext() throws {
        let desk = desk()
        let id = try #require(desk.subscribe(.all, seconds: nil, wall: 0, now: 0)).id
        pull(desk, id)
        let number = pull(desk, id)
        desk.withdraw(id, number)
        desk.note(.motion, stage: "a", isTrue: true, wall: 1, now: 1)
        #expect(count == 1)
        pull(desk, id, now: 2)
        #expect(messages(1) == [true])
    }

    @Test func aSourceMovesAsLongAsAnyStageSaysSo() throws {
        let desk = desk(["a": "cam", "b": "cam", "c": "other"])
        let id = try #require(desk.subscribe(.all, seconds: nil, wall: 0, now: 0)).id
        pull(desk, id)
        #expect(messages(0).count == 2)
        desk.note(.motion, stage: "a", isTrue: true, wall: 1, now: 1)
        desk.note(.motion, stage: "b", isTrue: true, wall: 1, now: 1)
        desk.note(.motion, stage: "a", isTrue: false, wall: 1, now: 1)
        desk.note(.motion, stage: "unknown", isTrue: true, wall: 1, now: 1)
        // The stage that sees something goes.
        desk.setStages([.motion: ["a": "cam", "c": "other"]], wall: 2, now: 2)
        pull(desk, id, now: 2)
        #expect(messages(1) == [true, false])
    }

    @Test func nothingGrowsWithoutBound() throws {
        let desk = desk()
        let id = try #require(desk.subscribe(.all, seconds: nil, wall: 0, now: 0)).id
        for number in 0..<1000 {
            desk.note(.motion, stage: "a", isTrue: number % 2 == 0, wall: 1, now: 1)
        }
        #expect(desk.counts.lost == 1001 - EventDesk.mostMessages)
        pull(desk, id)
        #expect(messages(0).count == EventDesk.mostMessages && messages(0).last == false)
        for _ in 1..<EventDesk.mostSubscriptions {
            #expect(desk.subscribe(.all, seconds: 10, wall: 0, now: 0) != nil)
        }
        #expect(desk.subscribe(.all, seconds: 10, wall: 0, now: 0) == nil)
        desk.tick(now: 11_000_000_000)
        #expect(desk.counts.subscriptions == 1)
        #expect(desk.renew(id, seconds: 1e300, now: 0) == EventDesk.longestLife)
        #expect(desk.renew("other", seconds: 1, now: 0) == nil)
    }

    @Test func theEndAnswersEverybody() throws {
        let desk = desk()
        let id = try #require(desk.subscribe(.all, seconds: nil, wall: 0, now: 0)).id
        pull(desk, id)
        pull(desk, id)
        desk.close()
        #expect(count == 2)
        #expect(desk.subscribe(.all, seconds: nil, wall: 0, now: 0) == nil)
    }

    @Test func filtersByTopic() {
        #expect(TopicFilter("tns1:VideoSource/MotionAlarm").takes(.motion))
        #expect(!TopicFilter("tns1:VideoSource/MotionAlarm").takes(.faces))
        #expect(TopicFilter("tns1:RuleEngine//.").takes(.faces))
        #expect(TopicFilter("x:Other | y:RuleEngine//.").takes(.motion))
        #expect(!TopicFilter("tns1:Device//.").takes(.motion))
        #expect(TopicFilter.all.takes(.faces))
    }
}
