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
    private var nextTag = 0

    init(_ sketch: ChainSketch) throws {
        chain = try Chain(sketch.request)
        try StageThread.start(name: "run", isBatch: false) { [self] in
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
        let new = chain.takeEvents().events
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

    /// The answer to what `ask` asks with the tag it is given.
    func answer(_ ask: (JSONNode) -> Void) -> Answer {
        let tag = condition.locked { () -> Int in
            nextTag += 1
            return nextTag
        }
        ask(.number(tag))
        let event = waitForEvent { $0.name == "command-answered" && $0.details["tag"]?.asInt == tag }
        let details = event?.details ?? [:]
        return Answer(
            isOK: details["ok"] == .bool(true), frame: UInt64(details["frame"]?.asInt ?? 0),
            error: details["error"]?.asString ?? "", details: details)
    }

    /// Makes the chain another one.
    func change(to sketch: ChainSketch, isDraining: Bool = true) -> Answer {
        answer { tag in chain.change(stage: nil, tag: tag, isDraining: isDraining, to: { _ in sketch.request }) }
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
