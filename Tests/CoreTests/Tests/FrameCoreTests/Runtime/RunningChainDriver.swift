// SPDX-License-Identifier: Apache-2.0

import Glibc
import Synchronization
import Testing

@testable import FrameCore

/// A chain that runs on a thread of its own while a test changes it.
final class RunningChainDriver: @unchecked Sendable {
    /// How long it waits for anything, nanoseconds.
    private static let patienceNs: Int64 = 120_000_000_000

    let chain: Chain
    private let condition = Condition()
    // Below: under `condition`.
    private var events: [Event] = []
    private var ended: Chain.Result?
    private let subscription: EventSubscription

    /// - Parameter prepare: Called with the chain before it runs.
    init(_ sketch: ChainSketch, tracePath: String? = nil, prepare: (Chain) -> Void = { _ in }) throws {
        chain = try Chain(sketch.request, traced: tracePath != nil)
        prepare(chain)
        if let tracePath { try chain.openTrace(tracePath, as: "--trace", mostBytes: 1 << 30) }
        subscription = chain.subscribe()
        try CountedThread.start(name: "run", isBatch: false) { [self] in
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
        // Under the lock: two threads take, and must add in the order in which they took.
        condition.locked {
            events += subscription.take().events
            condition.broadcast()
        }
    }

    /// The first event that fits, waiting for it.
    @discardableResult
    func waitForEvent(_ isMeant: (Event) -> Bool) -> Event? {
        let deadline = ChainClock.system.now() + Self.patienceNs
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
        /// How often the same was refused before because a thread was late.
        var refusals = 0
        /// What people read, also where it was done.
        var text = ""
        var isBusy = false
    }

    /// Whether this is how a change is refused for a thread that has not come to rest in time.
    static func isOfLateThread(_ error: String) -> Bool {
        error.contains("so nothing was changed") && !error.contains("no thread could be started")
    }

    /// The answer to what `ask` asks, waiting for it.
    ///
    /// - Parameter isRepeating: Asks again after a refusal for a thread that is late: a busy machine may keep any
    ///   thread from its work for a second.
    func answer(isRepeating: Bool = true, _ ask: (@escaping CommandReply) -> Void) -> Answer {
        let deadline = ChainClock.system.now() + Self.patienceNs
        var refusals = 0
        while true {
            let answers = CommandAnswers()
            ask(answers.reply(1))
            guard let answer = answers.wait(for: 1) else {
                Issue.record("no answer came: \(allEvents.map(\.text))")
                return Answer(isOK: false, frame: 0, error: "", details: [:], refusals: refusals)
            }
            let isLate = !answer.isDone && Self.isOfLateThread(answer.text)
            guard isRepeating, isLate, ChainClock.system.now() < deadline else {
                return Answer(
                    isOK: answer.isDone, frame: answer.frame, error: answer.isDone ? "" : answer.text,
                    details: JSONNode(.object(answer.members)), refusals: refusals, text: answer.text,
                    isBusy: answer.isBusy)
            }
            refusals += 1
        }
    }

    /// Makes the chain another one.
    func change(to sketch: ChainSketch, isDraining: Bool = true, isRepeating: Bool = true) -> Answer {
        answer(isRepeating: isRepeating) {
            chain.change(stage: nil, isDraining: isDraining, to: { _ in sketch.request }, reply: $0)
        }
    }

    /// `level` of a ``ProbeFilter``'s instance that runs, as its thread sees it.
    func level(of id: String) throws -> Int {
        let runner = try #require(chain.graph.runner(id: id))
        let level = Locked(-1)
        let deadline = ChainClock.system.now() + Self.patienceNs
        while true {
            let (_, fault) = chain.ask(runner.thread, for: runner) {
                level.withLock { $0 = (runner.instance.stage as? ProbeFilter)?.options.level ?? -1 }
            }
            guard let fault else { return level.withLock { $0 } }
            guard Self.isOfLateThread(fault.description), ChainClock.system.now() < deadline else { throw fault }
        }
    }

    /// Until so many frames have come from the first source.
    func waitForFrames(_ count: Int, _ location: SourceLocation = #_sourceLocation) {
        let deadline = ChainClock.system.now() + Self.patienceNs
        while chain.progress.captured < count {
            guard ChainClock.system.now() < deadline else {
                Issue.record("\(chain.progress.captured) of \(count) frames came", sourceLocation: location)
                return
            }
            usleep(500)
        }
    }

    func finish() -> Chain.Result {
        chain.drain()
        let deadline = ChainClock.system.now() + Self.patienceNs
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
