// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import Testing

/// `nats-events` with three real servers. Tests/Soak/events.py is the long version.
@Suite(.serialized, .needs(NATSCluster.server), .needs(.python)) struct NATSEventsTests {
    private let workspace: Workspace
    private let cluster: NATSCluster

    init() throws {
        workspace = try Workspace()
        cluster = try NATSCluster(workspace)
    }

    /// A chain that posts an event for each `set` of its text.
    private func writeChain(_ more: String = "") throws {
        try workspace.write(
            "door.json",
            """
            {
              "nats": {
                "servers": [\(cluster.addresses)], "replicas": 3, "host": "porch", "level": "debug",
                "events": ["option-changed", "state", "publisher-*", "events-lost", "spool-*"]\(more)
              },
              "stages": [
                { "id": "cam", "use": "test-source", "size": "160x120", "rate": 10, "live": true },
                { "id": "text", "use": "text", "text": "0", "link": { "queue": 64 } },
                { "id": "sink", "use": "null-sink" }
              ]
            }
            """)
    }

    private func startHost() throws -> RunningProgram {
        try Program.framehost.start(
            ["door.json", "--commands"],
            environment: ["XDG_STATE_HOME": workspace.path("state"), "STATE_DIRECTORY": ""],
            folder: workspace.folder.path)
    }

    private func endCleanly(_ host: RunningProgram) throws {
        kill(host.pid, SIGINT)
        let outcome = try host.finish()
        #expect(outcome.isDoneOrBusy, "\(outcome.status): \(outcome.error)")
    }

    /// Posts events until each has its answer.
    private func post(_ numbers: ClosedRange<Int>, _ host: RunningProgram) throws {
        for number in numbers {
            try host.write(#"{"stage":"text","set":{"text":"\#(number)"},"tag":"n\#(number)"}"# + "\n")
            // No more than the mailbox of a stage takes, on a busy machine too.
            if number % 20 == 0 { try host.waitForOutput(#""tag":"n\#(number)""#) }
        }
        try host.waitForOutput(#""tag":"n\#(numbers.upperBound)""#)
    }

    /// How many events of `set` are on the disk.
    private var spooled: Int {
        workspace.names(below: "state").filter { $0.hasSuffix(".events") }.reduce(0) { sum, name in
            let text = String(decoding: (try? workspace.data("state/" + name)) ?? Data(), as: UTF8.self)
            return sum + text.split(separator: "\n").count { $0.contains(" option-changed ") }
        }
    }

    private func waitForSpool(_ count: Int) throws {
        let deadline = Date() + 180
        while spooled < count {
            guard Date() < deadline else { throw TestFault("\(spooled) of \(count) events are on the disk") }
            Thread.sleep(forTimeInterval: 0.05)
        }
    }

    private func numbers(_ messages: [(subject: String, id: String, event: JSON)]) -> [Int] {
        messages.filter { $0.subject == "framehost.porch.door.option-changed" }
            .compactMap { $0.event["options"]["text"].string.flatMap { Int($0) } }
    }

    /// Waits until the stream has so many events of `set`, as long as more of them come.
    private func wait(for count: Int, seconds: Double = 60) throws -> [(subject: String, id: String, event: JSON)] {
        var deadline = Date() + seconds
        var found = 0
        while Date() < deadline {
            let messages = try cluster.messages("FRAMEHOST")
            let now = numbers(messages).count
            if now >= count { return messages }
            if now > found { (found, deadline) = (now, Date() + seconds) }
            Thread.sleep(forTimeInterval: 0.2)
        }
        throw TestFault("\(found) of \(count) events came, and no more within \(seconds) s")
    }

    @Test(.timeLimit(.minutes(60))) func storesEachEventOnceWhileLeadersAreKilledAndAllServersAreAway() throws {
        try cluster.start()
        try writeChain()
        let host = try startHost()
        try host.waitForError("Events go to the NATS server")
        try post(1...500, host)
        try cluster.killLeader(of: "FRAMEHOST", away: 1)
        try post(501...1000, host)
        try cluster.killLeader(of: "FRAMEHOST", away: 1)
        try post(1001...1500, host)
        try cluster.end()
        try post(1501...2000, host)
        try host.waitForError("take no events")
        try cluster.start()
        let messages = try wait(for: 2000)
        try host.waitForError(" again.")
        #expect(numbers(messages) == Array(1...2000))
        #expect(Set(messages.map(\.id)).count == messages.count)
        let event = try #require(messages.first { $0.subject.hasSuffix("option-changed") }?.event)
        #expect(event["host"].string == "porch")
        #expect(event["chain"].string == "door")
        #expect(event["id"].string?.hasPrefix("porch.") == true)
        kill(host.pid, SIGINT)
        let outcome = try host.finish()
        #expect(outcome.isDoneOrBusy, "\(outcome.error)")
        // The last word of the run is there too. A busy machine may have no time for it; then the next run sends it.
        func hasLastWord() throws -> Bool {
            try cluster.messages("FRAMEHOST").contains {
                $0.subject == "framehost.porch.door.state" && $0.event["state"].string == "draining"
            }
        }
        if try hasLastWord() { return }
        let next = try startHost()
        let deadline = Date() + 180
        while try !hasLastWord(), Date() < deadline { next.listen(seconds: 0.2) }
        #expect(try hasLastWord())
        try endCleanly(next)
    }

    @Test(.timeLimit(.minutes(60))) func theNextRunSendsWhatAKilledOneHasLeft() throws {
        try writeChain()
        // Nobody is there: the chain runs all the same.
        let first = try startHost()
        try first.waitForError("take no events")
        try post(1...200, first)
        try waitForSpool(200)
        kill(first.pid, SIGKILL)
        _ = try first.finish()
        // As a loss of power may leave it.
        let segment = try #require(workspace.names(below: "state").first { $0.hasSuffix(".events") })
        let handle = try FileHandle(forWritingTo: URL(fileURLWithPath: workspace.path("state/" + segment)))
        try handle.seekToEnd()
        try handle.write(contentsOf: Data("1b2c3d4e 999 half a li".utf8))
        try handle.close()
        try cluster.start()
        let second = try startHost()
        try second.waitForError("Events go to the NATS server")
        try post(201...250, second)
        var messages = try wait(for: 250)
        #expect(numbers(messages) == Array(1...250))
        kill(second.pid, SIGKILL)
        _ = try second.finish()
        // What was sent is not sent again, though the stream forgets ids.
        let third = try startHost()
        try post(251...251, third)
        messages = try wait(for: 251)
        #expect(numbers(messages) == Array(1...251))
        #expect(Set(messages.map(\.id)).count == messages.count)
        let order = messages.compactMap { $0.event["number"].int }
        #expect(order == order.sorted())
        try endCleanly(third)
    }

    /// The first of them wait on the disk, the rest in memory; all are sent, and the disk is used again.
    @Test(.enabled(if: getuid() == 0, "only root may mount a small disk"), .timeLimit(.minutes(60)))
    func sendsFromMemoryWhatAFullDiskDoesNotTake() throws {
        let folder = workspace.path("small")
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        let disk = try SmallDisk(at: folder)
        try disk.empty(room: 65_536)
        try writeChain(#", "spool": "small/spool""#)
        let host = try startHost()
        try host.waitForError("take no events")
        try post(1...600, host)
        try host.waitForError("cannot be written: \(disk.reason).")
        try cluster.start()
        #expect(numbers(try wait(for: 600)) == Array(1...600))
        try host.waitForError(" again.")
        kill(host.pid, SIGKILL)
        _ = try host.finish()
        // A run after it finds a spool that is whole.
        let next = try startHost()
        try post(601...610, next)
        let messages = try wait(for: 610)
        #expect(numbers(messages) == Array(1...610))
        #expect(Set(messages.map(\.id)).count == messages.count)
        try endCleanly(next)
    }

    @Test func refusesASecondRunWithTheSameSpool() throws {
        try writeChain()
        let first = try startHost()
        try first.waitForError("take no events")
        let second = try startHost()
        let outcome = try second.finish()
        #expect(outcome.status == 1)
        #expect(
            outcome.error.contains(
                "door.json: nats.spool: the folder '\(workspace.path("state/framehost/events/door.nats"))' is in use by another run, or by another service of this run. End that run, or name another folder with 'spool'."
            ), "\(outcome.error)")
        kill(first.pid, SIGINT)
        let ended = try first.finish()
        #expect(ended.status == 0)
    }

    @Test func endsWithinASecondWhereNobodyAnswers() throws {
        try writeChain()
        func ended() throws -> (seconds: Double, events: Int) {
            try? FileManager.default.removeItem(atPath: workspace.path("state"))
            let host = try startHost()
            try host.waitForError("take no events")
            try post(1...100, host)
            try waitForSpool(100)
            try host.write(#"{"stage":"text","set":{"text":"last"},"tag":"end"}"# + "\n")
            try host.waitForOutput(#""tag":"end""#)
            let begin = Date()
            kill(host.pid, SIGINT)
            _ = try host.finish()
            return (Date().timeIntervalSince(begin), spooled)
        }
        var end = try ended()
        // A busy machine may have no time to write the last one within the second, or take longer.
        for _ in 0..<2 where end.events == 100 || end.seconds >= 10 { end = try ended() }
        #expect(end.seconds < 10)
        #expect(end.events == 101)
    }

    @Test func readsItsLoginFromTheEnvironmentAndNeverShowsIt() throws {
        try writeChain(#", "login": "env:TEST_NATS_LOGIN""#)
        let missing = try Program.framehost.run(
            ["door.json"], environment: ["XDG_STATE_HOME": workspace.path("state"), "STATE_DIRECTORY": ""],
            folder: workspace.folder.path)
        #expect(missing.status == 2)
        #expect(
            missing.error.contains(
                "nats.login: the environment variable 'TEST_NATS_LOGIN' is not set. Set it to name:password, or name a file."
            ), "\(missing.error)")
    }
}
