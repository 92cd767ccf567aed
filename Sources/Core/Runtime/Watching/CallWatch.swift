// SPDX-License-Identifier: Apache-2.0

/// Reports a call that takes too long while it is still running, and the frames that a live chain lost because of it.
///
/// The control thread looks every 50 ms. A call is the same as at the last look when the thread is in the same stage
/// and the stage has made no progress since.
struct CallWatch {
    /// The figures of one stage.
    struct Figures {
        /// Calls that took longer than the stage's ``StageInfo/longestCall``.
        var slowCalls = 0
        var longestNs: Int64 = 0
    }

    private struct Call {
        var stage: Int
        var kind: StageCall
        var progress: Int
        /// Sequence number of the item in hand.
        var frame: UInt64
        var since: Int64
        /// The number of looks that found this call. Looks count rather than time, since the whole process may have
        /// been suspended.
        var looks = 0
        /// The age at which the call is reported next, nanoseconds.
        var speaksAt: Int64
        var hasSpoken = false
        var lostBefore: LiveLosses
    }

    /// The figures of each stage, by its number. Every thread may read them.
    let figures = Locked<[Int: Figures]>([:])
    /// Sentences about frames that were lost.
    private(set) var losses: [String] = []
    private var calls: [ObjectIdentifier: Call] = [:]

    mutating func look(at chain: Chain, _ threads: [ThreadState], _ hub: EventHub, now: Int64) {
        // Counted once for all calls that this look finds.
        var lost: LiveLosses?
        for thread in threads {
            let key = ObjectIdentifier(thread)
            let stage = Int(thread.inside.load(ordering: .relaxed))
            let isInside = stage >= 0 && !thread.finished.load(ordering: .acquiring)
            let kind = thread.currentCall
            if var call = calls[key] {
                guard let runner = chain.runner(number: call.stage) else {
                    calls[key] = nil
                    continue
                }
                if isInside, call.stage == stage, call.kind == kind, call.progress == runner.progress {
                    call.looks += 1
                    speak(&call, runner, chain, hub, now: now)
                    calls[key] = call
                    continue
                }
                calls[key] = nil
                if call.hasSpoken { end(call, runner, chain, hub, now: now) }
            }
            guard isInside, let runner = chain.runner(number: stage) else { continue }
            let lostBefore = lost ?? LiveLosses(chain.graph)
            lost = lostBefore
            calls[key] = Call(
                stage: stage, kind: kind, progress: runner.progress, frame: runner.shownFrame, since: now,
                speaksAt: runner.shown.info.longestCall.nanoseconds,
                lostBefore: lostBefore)
        }
        // A thread of changes is gone as soon as its work is done.
        let present = Set(threads.map(ObjectIdentifier.init))
        for (key, call) in calls where !present.contains(key) {
            calls[key] = nil
            if call.hasSpoken, let runner = chain.runner(number: call.stage) { end(call, runner, chain, hub, now: now) }
        }
    }

    /// One sentence for each call that has not returned for `nanoseconds`.
    func hanging(in graph: RunningGraph, for nanoseconds: Int64, now: Int64) -> [String] {
        calls.values.compactMap { call in
            let age = now - call.since
            guard call.hasSpoken, age >= nanoseconds, let runner = graph.runner(number: call.stage) else { return nil }
            return "\(Self.subject(call, runner)) has not returned for \(tenths(age)) s."
        }
        .sorted()
    }

    /// Reports the call at the stage's own limit, at 10 s, and then at every full minute.
    private mutating func speak(_ call: inout Call, _ runner: StageRunner, _ chain: Chain, _ hub: EventHub, now: Int64)
    {
        let age = now - call.since
        guard age >= call.speaksAt, Int64(call.looks) * 100_000_000 >= call.speaksAt else { return }
        note(call, age)
        call.hasSpoken = true
        call.speaksAt = age < 10_000_000_000 ? 10_000_000_000 : (age / 60_000_000_000 + 1) * 60_000_000_000
        // A branch that was removed holds up no other stage.
        let remedy =
            chain.graph.runners.contains { $0 === runner }
            ? " framehost keeps waiting for it. Check the disk, the network or the device that the stage uses; if they work, tell its author."
            : ""
        hub.post(
            Event(
                name: "stage-hangs", stage: runner.id, level: .warning,
                text: "\(Self.subject(call, runner)) has not returned for \(tenths(age)) s.\(remedy)",
                details: Self.details(call, runner, age), time: chain.clock.now()))
    }

    private mutating func end(_ call: Call, _ runner: StageRunner, _ chain: Chain, _ hub: EventHub, now: Int64) {
        let age = now - call.since
        note(call, age)
        // No frame waits for a stage that starts or stops.
        let holdsFrames = call.kind != .start && call.kind != .stop
        let lost = holdsFrames ? LiveLosses(chain.graph).since(call.lostBefore) : 0
        var details = Self.details(call, runner, age)
        var text = "\(Self.subject(call, runner)) took \(tenths(age)) s"
        if lost > 0 {
            text += "; the live chain lost \(lost) \(lost == 1 ? "frame" : "frames") meanwhile"
            details = JSONNode(
                .object(
                    (details.asObject ?? []) + [JSONNode.Member(key: "lost", value: JSONNode(.number(String(lost))))]))
            losses.append(text)
        }
        hub.post(
            Event(
                name: "stage-returned", stage: runner.id, level: .warning, text: text + ".", details: details,
                time: chain.clock.now()))
    }

    private func note(_ call: Call, _ age: Int64) {
        figures.withLock { figures in
            var own = figures[call.stage] ?? Figures()
            if !call.hasSpoken { own.slowCalls += 1 }
            own.longestNs = max(own.longestNs, age)
            figures[call.stage] = own
        }
    }

    /// `odd (misbehave): its call 'process' of frame 12`
    private static func subject(_ call: Call, _ runner: StageRunner) -> String {
        let item = call.kind == .item && call.progress > 0 ? " of frame \(call.frame)" : ""
        return "\(runner.title): its call '\(call.kind.name(of: runner.kind))'\(item)"
    }

    private static func details(_ call: Call, _ runner: StageRunner, _ age: Int64) -> JSONNode {
        [
            "call": JSONNode(.string(call.kind.name(of: runner.kind))), "frame": JSONNode(.number(String(call.frame))),
            "ms": JSONNode(.number(String(age / 1_000_000))),
        ]
    }

    private func tenths(_ ns: Int64) -> String { "\(ns / 1_000_000_000).\(ns / 100_000_000 % 10)" }
}

/// Items that a live chain had lost at one moment because it had no place for them, by place. Those of `latest` links do
/// not count: such a link wants only the newest item.
struct LiveLosses {
    /// By the stage's number.
    private var atStages: [Int: Int] = [:]
    /// The queues are kept, so that no other one has the same identity.
    private var atLinks: [ObjectIdentifier: (queue: ItemQueue, count: Int)] = [:]

    /// [any thread]
    init(_ graph: RunningGraph) {
        guard graph.runners.contains(where: { $0.shown.demand.isLive }) else { return }
        for runner in graph.everyRunner {
            atStages[runner.number] = runner.dropCount(.noBuffer) + runner.dropCount(.missed)
        }
        for queue in graph.everyQueue {
            let counts = queue.snapshot().counts
            let count = DropReason.lossesOfLinks.reduce(0) {
                $0 + counts.lost($1)
            }
            atLinks[ObjectIdentifier(queue)] = (queue, count)
        }
    }

    var total: Int { atLinks.values.reduce(atStages.values.reduce(0, +)) { $0 + $1.count } }

    /// What was lost since `earlier` at the places that were there then: others have come and gone with a change.
    func since(_ earlier: LiveLosses) -> Int {
        let stages = atStages.reduce(0) { $0 + $1.value - (earlier.atStages[$1.key] ?? $1.value) }
        return atLinks.reduce(stages) { $0 + $1.value.count - (earlier.atLinks[$1.key]?.count ?? $1.value.count) }
    }
}

extension DropReason {
    /// The reasons for which a link drops an item because it has no place for it.
    static let lossesOfLinks: [DropReason] = [.noBuffer, .queueFull, .evicted, .untilKeyframe]
}
