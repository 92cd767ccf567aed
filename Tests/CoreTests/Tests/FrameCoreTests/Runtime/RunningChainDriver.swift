// SPDX-License-Identifier: Apache-2.0

import Glibc
import Synchronization
import Testing

@testable import FrameCore

/// A chain that runs on a thread of its own while a test changes it.
final class RunningChainDriver: @unchecked Sendable {
    let chain: Chain
    private let condition = Condition()
    // Below: under `condition`.
    private var events: [Event] = []
    private var ended: Chain.Result?
    private let subscription: EventSubscription

    init(_ sketch: ChainSketch, tracePath: String? = nil) throws {
        chain = try Chain(sketch.request, traced: tracePath != nil)
        if let tracePath { try chain.openTrace(tracePath, as: "--trace", mostBytes: 1 << 30) }
        subscription = chain.subscribe()
        try NamedThread.start(name: "run", isBatch: false) { [self] in
            let result = chain.run { [self] in take() }
            take()
            condition.locked {
                ended = result
                condition.broadcast()
            }
        }
        waitForEvent { $0.name == "state" && $0.details["state"]?.asString == "streaming" }
    }

    private func take() {
        let new = subscription.take().events
        condition.locked {
            events += new
            condition.broadcast()
        }
    }

    /// The first event that fits, waiting for it.
    @discardableResult
    func waitForEvent(_ isMeant: (Event) -> Bool) -> Event? {
        let deadline = ChainClock.system.now() + 20_000_000_000
        while true {
            // Not only at the chain's ticks: an answer is had at once.
            take()
            let (found, isOver) = condition.locked {
                (events.first(where: isMeant), ended != nil || ChainClock.system.now() >= deadline)
            }
            if let found { return found }
            guard !isOver else {
                Issue.record("the event did not come: \(allEvents.map(\.text))")
                return nil
            }
            usleep(200)
        }
    }

    struct Answer {
        var isOK: Bool
        var frame: UInt64
        var error: String
        var details: JSONNode
    }

    /// The answer to what `ask` asks, waiting for it.
    func answer(_ ask: (@escaping CommandReply) -> Void) -> Answer {
        let answers = CommandAnswers()
        ask(answers.reply(1))
        guard let answer = answers.wait(for: 1) else {
            Issue.record("no answer came: \(allEvents.map(\.text))")
            return Answer(isOK: false, frame: 0, error: "", details: [:])
        }
        return Answer(
            isOK: answer.isDone, frame: answer.frame, error: answer.isDone ? "" : answer.text,
            details: JSONNode(.object(answer.members)))
    }

    /// Makes the chain another one.
    func change(to sketch: ChainSketch, isDraining: Bool = true) -> Answer {
        answer { chain.change(stage: nil, isDraining: isDraining, to: { _ in sketch.request }, reply: $0) }
    }

    /// Until so many frames have come from the first source.
    func waitForFrames(_ count: Int) {
        let deadline = ChainClock.system.now() + 20_000_000_000
        while chain.progress.captured < count, ChainClock.system.now() < deadline { usleep(500) }
    }

    func finish() -> Chain.Result {
        chain.drain()
        let deadline = ChainClock.system.now() + 20_000_000_000
        return condition.locked {
            while ended == nil, ChainClock.system.now() < deadline { condition.wait(until: deadline) }
            guard let ended else {
                Issue.record("the chain did not end")
                return Chain.Result(failures: [], abandoned: ["all"], ledgerFaults: [])
            }
            return ended
        }
    }

    var allEvents: [Event] { condition.locked { events } }
}
