// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import RTSPSink
import ServerAccess

private let second: Int64 = 1_000_000_000

/// Two connections of one client, each on an event loop of its own or both on one, and the server between them: what it
/// does is cut into the steps in which the server takes its lock, does something on a loop, or hands a loop a task.
private struct TwoConnections {
    /// What a connection may say next. The session's id is known to both.
    enum Say: CaseIterable { case setUp, setUpAnew, play, pause, tearDown, hangUp }

    /// A loop's task under way or in its queue.
    enum Step {
        case say(ConnectionID, Say)
        /// The answer to PLAY is being made: the reader's place in the books, then its packets.
        case begin(PlayOrder)
        case feed(UInt64)
        /// Another loop, or a timer, wants a reader gone.
        case remove(UInt64)
    }

    var readership: Readership<Int>
    /// The numbers of the readers that are fed, by loop.
    var fed: [Set<UInt64>]
    /// What each loop has begun and must finish before anything else, and what waits for it.
    var current: [[Step]]
    var waiting: [[Step]]
    var saidCount: [Int]
    var hasTimedOut = false
    let loopOf: [Int]
    /// False for how it was: the reader was added whether or not its session was still there.
    let checks: Bool
    var trace: [String] = []

    static let client = IPAddress("10.0.0.7")!

    init(loops: [Int], checks: Bool = true) {
        var policy = SessionPolicy(serverPorts: .init(8000, 8001))
        policy.requestsPerSecond = 1000
        var signalling = Signalling(policy: policy, random: { 7 })
        let description = SessionDescription(
            sessionID: 1, address: "", name: "live", sps: RTSPHeaderTests.sps, pps: RTSPHeaderTests.pps)
        signalling.setPath("/live", ServedPath(description: description, ssrc: 1))
        for id in 1...ConnectionID(2) {
            _ = signalling.open(id, peer: Self.client, local: .loopback, isSecure: false, now: 0)
        }
        _ = signalling.handle(Self.request(.setUp, session: nil), from: 1, now: 0)
        readership = Readership(signalling)
        loopOf = loops
        let count = loops.max()! + 1
        fed = Array(repeating: [], count: count)
        current = Array(repeating: [], count: count)
        waiting = Array(repeating: [], count: count)
        saidCount = [0, 0]
        self.checks = checks
    }

    static func request(_ say: Say, session: String?) -> RTSPRequest {
        let headers = HeaderFields(
            [("CSeq", "1")] + (session.map { [("Session", $0)] } ?? [])
                + (say == .setUp || say == .setUpAnew ? [("Transport", "RTP/AVP;unicast;client_port=5000-5001")] : []))
        let method =
            switch say {
            case .setUp, .setUpAnew: "SETUP";
            case .play: "PLAY";
            case .pause: "PAUSE";
            default: "TEARDOWN"
            }
        return RTSPRequest(method, "rtsp://h/live", headers: headers)
    }

    /// The one session there ever is: ids are made of the same random number.
    var session: String? { readership.signalling.sessions.keys.first }

    // MARK: Steps

    /// All states one step away.
    func successors(mostSaid: Int) -> [TwoConnections] {
        var next: [TwoConnections] = []
        for loop in current.indices {
            var state = self
            if !current[loop].isEmpty {
                state.run(state.current[loop].removeFirst(), on: loop)
                next.append(state)
                continue
            }
            if !waiting[loop].isEmpty {
                state.run(state.waiting[loop].removeFirst(), on: loop)
                next.append(state)
                state = self
            }
            // A socket may be read before a task that waits, or after.
            for id in 1...ConnectionID(2) where loopOf[Int(id) - 1] == loop && saidCount[Int(id) - 1] < mostSaid {
                guard readership.signalling.connections[id] != nil else { continue }
                for say in Say.allCases {
                    var state = self
                    state.saidCount[Int(id) - 1] += 1
                    state.run(.say(id, say), on: loop)
                    next.append(state)
                }
            }
        }
        if !hasTimedOut {
            var state = self
            state.hasTimedOut = true
            state.trace.append("timeout")
            state.leave(state.readership.change { $0.expireSessions(now: 1000 * second) }.stoppedReaders, from: nil)
            next.append(state)
        }
        return next
    }

    private mutating func run(_ step: Step, on loop: Int) {
        trace.append("\(loop): \(step)")
        switch step {
        case .say(let id, .hangUp): leave(readership.change { $0.closed(id, now: 0) }.stoppedReaders, from: nil)
        case .say(let id, let say):
            let request = Self.request(say, session: say == .setUpAnew ? nil : session ?? "gone")
            let outcome = readership.change { $0.handle(request, from: id, now: 0) }
            leave(outcome.stoppedReaders, from: loop)
            for case .play(let order, _) in outcome.actions { current[loop].append(.begin(order)) }
        case .begin(let order):
            let beginning = readership.begin(order, on: loop, now: 0)
            if !checks || beginning == .joined || beginning == .resumed { current[loop].append(.feed(order.number)) }
        case .feed(let number): fed[loop].insert(number)
        case .remove(let number): fed[loop].remove(number)
        }
    }

    private mutating func leave(_ stoppedReaders: [Readership<Int>.StoppedReader], from loop: Int?) {
        for stopped in stoppedReaders {
            let (fan, number) = (stopped.reader.fan, stopped.reader.order.number)
            if fan == loop { fed[fan].remove(number) } else { waiting[fan].append(.remove(number)) }
        }
    }

    // MARK: The rule

    /// What is wrong in this state.
    var fault: String? {
        if (readership.counts["/live"]?.all ?? 0) != readership.readers.count { return "the count of readers is wrong" }
        if let orphan = readership.orphan { return "the books have a reader of \(orphan), which does not play" }
        for loop in fed.indices {
            let leaving = (current[loop] + waiting[loop]).compactMap {
                if case .remove(let number) = $0 { number } else { nil }
            }
            for number in fed[loop] where !leaving.contains(number) {
                let owner = readership.readers.values.first {
                    $0.order.number == number && $0.fan == loop && $0.isPlaying
                }
                if owner == nil { return "reader \(number) on loop \(loop) belongs to no session" }
            }
        }
        // And the other way: a session that plays, with nothing under way for it, is fed.
        if current.allSatisfy(\.isEmpty), waiting.allSatisfy(\.isEmpty) {
            for session in readership.signalling.sessions.values {
                if let number = session.reader, !fed.contains(where: { $0.contains(number) }) {
                    return "reader \(number) is not fed"
                }
            }
        }
        return nil
    }

    /// What tells two states apart; numbers of readers as they rank, or the states would never end.
    var key: String {
        var ranks: [UInt64: Int] = [:]
        func rank(_ number: UInt64?) -> String {
            guard let number else { return "-" }
            if ranks[number] == nil { ranks[number] = ranks.count }
            return "\(ranks[number]!)"
        }
        let sessions = readership.signalling.sessions.sorted { $0.key < $1.key }.map { id, session in
            "\(id.prefix(4)) \(rank(session.reader)) \(rank(session.lastReader)) \(session.owner ?? 0)"
        }
        let readers = readership.readers.sorted { $0.key < $1.key }.map {
            "\($0.key.prefix(4)) \(rank($0.value.order.number)) \($0.value.fan) \($0.value.isPlaying)"
        }
        func text(_ step: Step) -> String {
            switch step {
            case .say: "s"
            case .begin(let order): "b\(rank(order.number))"
            case .feed(let number): "f\(rank(number))"
            case .remove(let number): "r\(rank(number))"
            }
        }
        let steps = (current + waiting).map { $0.map(text).joined(separator: " ") }
        let fed = fed.map { $0.sorted().map { rank($0) }.joined(separator: " ") }
        return
            "\(sessions)\(readers)\(steps)\(fed)\(saidCount)\(hasTimedOut)\(readership.signalling.connections.keys.sorted())"
    }
}

/// Every order of what two connections can ask, at every step at which the server's lock is free.
@Suite struct ReadershipTests {
    private struct Report {
        var states = 0
        var ends = 0
        var fault: String?
    }

    private static func explore(_ initial: TwoConnections, mostSaid: Int) -> Report {
        var report = Report()
        var seen: Set<String> = [initial.key]
        var open = [initial]
        while let state = open.popLast() {
            report.states += 1
            if let fault = state.fault {
                report.fault = "\(fault), after \(state.trace.joined(separator: "; "))"
                return report
            }
            let next = state.successors(mostSaid: mostSaid)
            if next.isEmpty { report.ends += 1 }
            // Whatever happened: when both have hung up and time has passed, nothing is left.
            if state.current.allSatisfy(\.isEmpty), state.waiting.allSatisfy(\.isEmpty), let left = leftover(state) {
                report.fault = "\(left), after \(state.trace.joined(separator: "; "))"
                return report
            }
            for one in next where seen.insert(one.key).inserted { open.append(one) }
        }
        return report
    }

    private static func leftover(_ state: TwoConnections) -> String? {
        var state = state
        for id in 1...ConnectionID(2) { _ = state.finish(id) }
        return state.finishAll()
    }

    @Test(arguments: [[0, 1], [0, 0]]) func everyReaderBelongsToASessionInAllOrders(loops: [Int]) {
        let report = Self.explore(TwoConnections(loops: loops), mostSaid: 3)
        print("two connections on loops \(loops): \(report.states) states, \(report.ends) ends")
        #expect(report.fault == nil)
        #expect(report.states > 1000)
    }

    /// The checker finds what it is for: without the check in the step that adds the reader, one is left that nobody
    /// knows.
    @Test func theCheckerFindsAReaderWithoutASessionWhereTheCheckIsLeftOut() {
        let report = Self.explore(TwoConnections(loops: [0, 1], checks: false), mostSaid: 2)
        #expect(report.fault?.contains("belongs to no session") == true)
    }
}

extension TwoConnections {
    mutating func finish(_ id: ConnectionID) -> Bool {
        let stoppedReaders = readership.change { $0.closed(id, now: 0) }.stoppedReaders
        for stopped in stoppedReaders { fed[stopped.reader.fan].remove(stopped.reader.order.number) }
        return stoppedReaders.isEmpty
    }

    /// What is left of anybody once all have gone.
    mutating func finishAll() -> String? {
        for stopped in readership.change({ $0.expire(now: 10_000 * second) }).stoppedReaders {
            fed[stopped.reader.fan].remove(stopped.reader.order.number)
        }
        if !readership.readers.isEmpty { return "readers are left in the books" }
        if !fed.allSatisfy(\.isEmpty) { return "readers are left on their loops" }
        return readership.signalling.isEmpty ? nil : "something is left of a client"
    }
}
