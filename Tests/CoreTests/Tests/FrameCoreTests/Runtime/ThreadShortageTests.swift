// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import FrameCore

/// Changes where the system gives few threads, or none: refused, with nothing changed.
@Suite struct ThreadShortageTests {
    /// How many more threads there are; nil for as many as are asked for.
    private final class Supply: Sendable {
        let left = Locked<Int?>(nil)

        func start(_ chain: Chain) {
            let usual = chain.startThread
            chain.startThread = { [left] name, isBatch, body, ended in
                let hasOne = left.withLock { left -> Bool in
                    guard let count = left else { return true }
                    left = max(count - 1, 0)
                    return count > 0
                }
                guard hasOne else {
                    throw FrameHostError(
                        .exhausted, place: FaultPlace(name),
                        what: "no thread could be started: Resource temporarily unavailable")
                }
                try usual(name, isBatch, body, ended)
            }
        }
    }

    /// - Parameter isLonger: Whether a further stage runs on the thread of `mark`.
    private func base(_ log: String, isLonger: Bool = false) throws -> ChainSketch {
        var sketch = ChainSketch()
        try sketch.add(CountingSource.self, "src", options: #"{"count": 1000000000}"#)
        try sketch.add(ProbeFilter.self, "mark", link: LinkRequest(queue: 4))
        if isLonger { try sketch.add(ProbeFilter.self, "inline", link: LinkRequest(queue: 0)) }
        try sketch.add(RecordingSink.self, "file", options: #"{"log": "\#(log)"}"#)
        sketch.request.spare = 16
        return sketch
    }

    private func isGapless(_ log: String) -> Bool {
        let numbers = RecordingSink.log(log).entries.map(\.sequence)
        return numbers.indices.dropFirst().allSatisfy { numbers[$0] == numbers[$0 - 1] + 1 }
    }

    /// The thread of the change itself, those of new stages, and those on which replaced and removed ones end.
    @Test func aChangeWithoutAThreadIsRefusedAndTheRunGoesOn() throws {
        let plain = try base("few-threads")
        let supply = Supply()
        let driver = try RunningChainDriver(plain, prepare: supply.start)
        driver.waitForFrames(20)
        var longer = plain
        try longer.add(
            RecordingSink.self, "late", options: #"{"log": "few-threads-late"}"#, from: ["mark"],
            link: LinkRequest(queue: 4))
        supply.left.withLock { $0 = 0 }
        let pause = driver.answer { driver.chain.pause(stage: "mark", reply: $0) }
        #expect(
            pause.error
                == "mark: no thread could be started: Resource temporarily unavailable, so nothing was changed. Raise the limit of processes (ulimit -u, TasksMax= of a service, or the pids limit of a container), or detach a branch that has a thread of its own, then send the command again."
        )
        // First one for the change and none for the stage. The change's thread may still be there for the next one.
        for count in [1, 0] {
            supply.left.withLock { $0 = count }
            let attached = driver.change(to: longer)
            #expect(attached.error.contains("no thread could be started"), "\(count): \(attached.error)")
            #expect(driver.chain.graph.runner(id: "late") == nil)
        }
        #expect(RecordingSink.log("few-threads-late").stops == 0, "nothing was begun")
        supply.left.withLock { $0 = nil }
        let attached = driver.change(to: longer)
        #expect(attached.isOK, "\(attached.error)")
        // To remove it takes the change's thread only: the branch has its own.
        supply.left.withLock { $0 = 1 }
        let detached = driver.change(to: plain)
        #expect(detached.isOK, "\(detached.error)")
        driver.waitForEvent { $0.name == "branch-ended" }
        // To remove a stage from a thread that stays takes another one, on which it ends.
        supply.left.withLock { $0 = nil }
        let inline = try base("few-threads", isLonger: true)
        #expect(driver.change(to: inline).isOK)
        supply.left.withLock { $0 = 0 }
        let removed = driver.change(to: plain)
        #expect(removed.error.contains("no thread could be started"), "\(removed.isOK) \(removed.error)")
        supply.left.withLock { $0 = nil }
        #expect(driver.change(to: plain).isOK)
        let result = driver.finish()
        #expect(result.isSuccess, "\(result)")
        #expect(isGapless("few-threads"))
        #expect(driver.chain.ledger.isBalanced)
    }

    /// A reserve for more threads than there are leaves none behind.
    @Test func aReserveIsWholeOrNothing() {
        let (started, ended) = (Locked(0), Locked(0))
        let start: ThreadStart = { name, isBatch, body, done in
            guard started.withLock({ $0 }) < 3 else { throw FrameHostError(.exhausted, what: "no thread") }
            started.withLock { $0 += 1 }
            try CountedThread.start(name: name, isBatch: isBatch, body: body) {
                done()
                ended.withLock { $0 += 1 }
            }
        }
        #expect(throws: FrameHostError.self) { try ThreadReserve(4, start: start) }
        let deadline = ChainClock.system.now() + 60_000_000_000
        while ended.withLock({ $0 }) < 3, ChainClock.system.now() < deadline {}
        #expect(ended.withLock { $0 } == 3)
    }

    @Test func givesEachThreadOfAReserveOnce() throws {
        let done = Locked<[String]>([])
        do {
            let reserve = try ThreadReserve(2) { try CountedThread.start(name: $0, isBatch: $1, body: $2, ended: $3) }
            let taken = (0..<3).map { number in
                reserve.start(name: "n\(number)", isBatch: number == 1, body: {}) {
                    done.withLock { $0.append("n\(number)") }
                }
            }
            #expect(taken == [true, true, false])
        }
        let deadline = ChainClock.system.now() + 60_000_000_000
        while done.withLock({ $0.count }) < 2, ChainClock.system.now() < deadline {}
        #expect(done.withLock { $0.sorted() } == ["n0", "n1"])
    }
}
