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
    /// What the messages of one of the two topics of motion say.
    private func messages(_ index: Int) -> [Bool] {
        let all = got.withLock { $0.indices.contains(index) ? $0[index]?.messages ?? [] : [] }
        return all.filter { $0.topic == "tns1:VideoSource/MotionAlarm" }.map(\.change.isTrue)
    }

    @Test func aPullWaitsForAChange() throws {
        let desk = desk()
        let id = try #require(desk.subscribe(.all, from: "a", seconds: nil, wall: 0, now: 0)).id
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
        let id = try #require(desk.subscribe(.all, from: "a", seconds: nil, wall: 0, now: 0)).id
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
        let id = try #require(desk.subscribe(.all, from: "a", seconds: nil, wall: 0, now: 0)).id
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
        let id = try #require(desk.subscribe(.all, from: "a", seconds: nil, wall: 0, now: 0)).id
        for number in 0..<1000 {
            desk.note(.motion, stage: "a", isTrue: number % 2 == 0, wall: 1, now: 1)
        }
        // Motion has two topics.
        #expect(desk.counts.lost == 2002 - EventDesk.mostMessages)
        pull(desk, id)
        #expect(messages(0).count == EventDesk.mostMessages / 2 && messages(0).last == false)
        for number in 1..<EventDesk.mostSubscriptions {
            #expect(desk.subscribe(.all, from: "\(number)", seconds: 10, wall: 0, now: 0) != nil)
        }
        #expect(desk.subscribe(.all, from: "more", seconds: 10, wall: 0, now: 0) == nil)
        desk.tick(now: 11_000_000_000)
        #expect(desk.counts.subscriptions == 1)
        #expect(desk.renew(id, seconds: 1e300, now: 0) == EventDesk.longestLife)
        #expect(desk.renew("other", seconds: 1, now: 0) == nil)
    }

    @Test func theEndAnswersEverybody() throws {
        let desk = desk()
        let id = try #require(desk.subscribe(.all, from: "a", seconds: nil, wall: 0, now: 0)).id
        pull(desk, id)
        pull(desk, id)
        desk.close()
        #expect(count == 2)
        #expect(desk.subscribe(.all, from: "a", seconds: nil, wall: 0, now: 0) == nil)
    }

    @Test func filtersByTopic() {
        let cells = "tns1:RuleEngine/CellMotionDetector/Motion"
        #expect(TopicFilter("tns1:VideoSource/MotionAlarm").topics(of: .motion) == ["tns1:VideoSource/MotionAlarm"])
        #expect(TopicFilter("tns1:VideoSource/MotionAlarm").topics(of: .faces).isEmpty)
        #expect(TopicFilter("tns1:RuleEngine//.").topics(of: .faces).count == 1)
        #expect(TopicFilter("x:Other | y:RuleEngine//.").topics(of: .motion) == [cells])
        #expect(TopicFilter("tns1:Device//.").topics(of: .motion).isEmpty)
        #expect(TopicFilter.all.topics(of: .motion).count == 2)
    }

    // MARK: What a client asked for

    private static let topics = EventProperty.Kind.allCases.flatMap { TopicFilter.topics[$0, default: []] }

    /// Expressions, with the topics that each takes.
    private static let expressions: [(text: String, takes: Set<String>)] =
        topics.map { ($0, [$0]) } + [
            ("tns1:RuleEngine//.", Set(topics.filter { $0.contains("RuleEngine") })),
            ("tns1:VideoSource//.", Set(topics.filter { $0.contains("VideoSource") })), ("tns1:Device//.", []),
        ]

    /// Whatever a client's filter and limit are: it gets each message of its topics once, in order, and no other, and
    /// no answer has more than its limit.
    @Test(arguments: 0..<100) func keepsFilterAndLimit(round: Int) throws {
        let desk = EventDesk()
        desk.setStages([.motion: ["m": "cam"], .faces: ["f": "cam"]], wall: 0, now: 0)
        let chosen = Self.expressions.filter { _ in Bool.random() }
        let wanted = chosen.isEmpty ? Set(Self.topics) : chosen.reduce(into: []) { $0.formUnion($1.takes) }
        let filter = chosen.isEmpty ? TopicFilter.all : TopicFilter(chosen.map(\.text).joined(separator: "|"))
        let id = try #require(desk.subscribe(filter, from: "a", seconds: nil, wall: 0, now: 0)).id
        var expected = ["faces", "motion"].flatMap { name in
            TopicFilter.topics[EventProperty.Kind(rawValue: name)!, default: []].map { "\($0) false true" }
        }
        var state: [EventProperty.Kind: Bool] = [:]
        for _ in 0..<Int.random(in: 0..<20) {
            let (kind, isTrue) = (EventProperty.Kind.allCases.randomElement()!, Bool.random())
            desk.note(kind, stage: kind == .motion ? "m" : "f", isTrue: isTrue, wall: 1, now: 1)
            guard state.updateValue(isTrue, forKey: kind) ?? false != isTrue else { continue }
            expected += TopicFilter.topics[kind, default: []].map { "\($0) \(isTrue) false" }
        }
        expected = expected.filter { text in wanted.contains { text.hasPrefix("\($0) ") } }
        let limit = Int.random(in: 1...5)
        var all: [String] = []
        for _ in 0...expected.count {
            let got = got
            _ = desk.pull(id, most: limit, seconds: 0, now: 2) { pulled in got.withLock { $0 = [pulled] } }
            let messages = got.withLock { $0.first??.messages ?? [] }
            #expect(messages.count == min(limit, expected.count - all.count))
            all += messages.map { "\($0.topic) \($0.change.isTrue) \($0.isFirst)" }
        }
        #expect(all == expected, "\(chosen.map(\.text))")
    }

    // MARK: Room

    /// Whatever clients do, an address has at most four, no more than sixteen are there, and nobody loses one that it
    /// uses to somebody else.
    @Test(arguments: 0..<50) func anAddressHoldsFew(round: Int) {
        let desk = desk()
        var made: [(client: String, id: String)] = []
        /// When each was made or pulled.
        var used: [String: Int64] = [:]
        for step in 0..<200 {
            let now = Int64(step) * 1_000_000_000
            if Int.random(in: 0..<3) > 0, let one = made.randomElement() {
                _ = desk.pull(one.id, most: 1, seconds: 0, now: now) { _ in }
                used[one.id] = now
                continue
            }
            let client = "\(Int.random(in: 0..<8))"
            let new = desk.subscribe(.all, from: client, seconds: 3600, wall: 0, now: now)
            let gone = made.filter { !desk.has($0.id) }
            made.removeAll { one in gone.contains { $0.id == one.id } }
            #expect(gone.count <= 1)
            for one in gone where one.client != client {
                #expect(now - used[one.id, default: 0] >= 30_000_000_000)
                #expect(made.count == EventDesk.mostSubscriptions - 1)
            }
            guard let new else {
                #expect(made.count == EventDesk.mostSubscriptions && gone.isEmpty)
                continue
            }
            made.append((client, new.id))
            used[new.id] = now
            #expect(made.filter { $0.client == client }.count <= EventDesk.mostOfAnAddress)
            #expect(desk.counts.subscriptions == made.count && made.count <= EventDesk.mostSubscriptions)
        }
    }

    @Test func aRecorderThatComesAgainTakesItsOwnPlace() throws {
        let desk = desk()
        let ids = try (0..<EventDesk.mostOfAnAddress).map { number in
            try #require(desk.subscribe(.all, from: "a", seconds: 3600, wall: 0, now: Int64(number))).id
        }
        // Its client waits. What it has waited for so far is empty.
        pull(desk, ids[0], seconds: 0, now: 5)
        pull(desk, ids[0], seconds: 60, now: 6)
        let other = try #require(desk.subscribe(.all, from: "b", seconds: 3600, wall: 0, now: 6)).id
        #expect(desk.subscribe(.all, from: "a", seconds: 3600, wall: 0, now: 7) != nil)
        #expect(desk.has(ids[0]) && !desk.has(ids[1]) && desk.has(ids[2]) && desk.has(other))
    }

    @Test func whoWaitsOnTheOneThatGoesIsAnswered() throws {
        let desk = desk()
        for number in 0..<EventDesk.mostOfAnAddress {
            let id = try #require(desk.subscribe(.all, from: "a", seconds: 3600, wall: 0, now: Int64(number))).id
            pull(desk, id, seconds: 0, now: Int64(number))
            pull(desk, id, seconds: 60, now: Int64(number))
        }
        let before = count
        #expect(desk.subscribe(.all, from: "a", seconds: 3600, wall: 0, now: 9) != nil)
        #expect(count == before + 1 && got.withLock { $0.last.map { $0 == nil } } == true)
    }

    @Test func theServiceCountsByTheClientsAddress() throws {
        let service = EventService(desk: desk())
        let text = "<CreatePullPointSubscription xmlns='\(Namespaces.events)'/>"
        var call = Call(
            request: try SOAPRequest(Array(FakeDevice.envelope(text).utf8)), facts: try FakeChain().facts().facts,
            base: "http://192.0.2.7:8000", host: "192.0.2.7", wall: 0)
        for number in 0..<40 {
            call.client = "192.0.2.\(number % 3)"
            _ = try service.answer(call, subscription: nil, now: Int64(number))
        }
        #expect(service.desk.counts.subscriptions == 3 * EventDesk.mostOfAnAddress)
    }
}
