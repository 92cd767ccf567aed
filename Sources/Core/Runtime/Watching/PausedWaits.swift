// SPDX-License-Identifier: Apache-2.0

/// Which stages of several inputs wait for an input that somebody has paused. What stands still because of that is no
/// fault of the machine, a disk or a stage, and no problem: it goes on with the pause's end. [control thread]
struct PausedWaits {
    /// One stage that waits.
    struct Wait {
        /// The ids of the stage, of the input's stage, and of the paused stage, which may be before that one.
        var stage: String
        var input: String
        var paused: String

        private var isDirect: Bool { input == paused }
        /// `'m' waits for its input 'b', which is paused`
        var sentence: String {
            isDirect
                ? "'\(stage)' waits for its input '\(input)', which is paused"
                : "'\(stage)' waits for its input '\(input)', since '\(paused)' is paused"
        }
        /// The same of what is over.
        var past: String {
            isDirect
                ? "'\(stage)' waited for its input '\(input)', which was paused"
                : "'\(stage)' waited for its input '\(input)', since '\(paused)' was paused"
        }
        /// How it ends.
        var remedy: String { "It goes on when '\(paused)' is resumed." }
    }

    private let graph: RunningGraph
    /// By the index of the stage in the plan.
    private var inlets: [Int: StageInlet] = [:]
    private var waits: [Int: Wait] = [:]

    init(_ graph: RunningGraph) {
        self.graph = graph
        guard graph.runners.contains(where: Self.givesNothing) else { return }
        for stageThread in graph.stageThreads {
            guard case .several(let inlet) = stageThread.input,
                let place = graph.runners.firstIndex(where: { $0 === stageThread.head })
            else { continue }
            inlets[place] = inlet
        }
        for place in inlets.keys {
            for entry in awaited(by: place) {
                var seen: Set<Int> = []
                guard waits[place] == nil, let paused = paused(from: entry.link.from, &seen) else { continue }
                waits[place] = Wait(
                    stage: graph.runners[place].id, input: graph.runners[written(entry.link.from)].id,
                    paused: graph.runners[paused].id)
            }
        }
    }

    /// Why the items wait that go to a stage, or to stages behind it; nil where it is not for a pause.
    func wait(behind stage: Int) -> Wait? {
        guard !waits.isEmpty else { return nil }
        var (open, seen) = ([stage], Set([stage]))
        while let next = open.popLast() {
            if let wait = waits[next] { return wait }
            for link in graph.plan.links where link.from == next && !seen.contains(link.to) {
                // Where no item lies in a queue, nothing before it waits for a stage behind it.
                guard queue(of: link).map({ $0.snapshot().depth > 0 }) ?? true else { continue }
                seen.insert(link.to)
                open.append(link.to)
            }
        }
        return nil
    }

    /// Why the buffers of a pool do not come back; nil where it is not for a pause.
    func wait(for pool: FramePool) -> Wait? {
        guard !waits.isEmpty else { return nil }
        let numbers = Set(pool.holders().filter { $0.holder >= 0 }.map { Int($0.holder) / 2 })
        for number in numbers.sorted() {
            guard let place = graph.runners.firstIndex(where: { $0.number == number }) else { continue }
            if let wait = wait(behind: place) { return wait }
        }
        return nil
    }

    /// Frames pass a paused filter.
    private static func givesNothing(_ runner: StageRunner) -> Bool { runner.isPaused && runner.mode != .passes }

    private func queue(of link: ChainPlan.Link) -> ItemQueue? {
        graph.queues.first { $0.link.from == link.from && $0.link.to == link.to }?.queue
    }

    /// The inputs that a stage waits for now.
    private func awaited(by place: Int) -> [RunningGraph.Queued] {
        guard let inlet = inlets[place] else { return [] }
        return inlet.queues.enumerated().compactMap { index, queue in
            guard inlet.awaited.has(1 << UInt64(index & 63)) else { return nil }
            return graph.queues.first { $0.queue === queue }
        }
    }

    /// The paused stage because of which this one gives nothing: itself, or one before it.
    private func paused(from stage: Int, _ seen: inout Set<Int>) -> Int? {
        guard seen.insert(stage).inserted else { return nil }
        if Self.givesNothing(graph.runners[stage]) { return stage }
        let links = inlets[stage] != nil ? awaited(by: stage).map(\.link) : graph.plan.links.filter { $0.to == stage }
        for link in links {
            // A stage with items before it is at work.
            guard queue(of: link).map({ $0.snapshot().depth == 0 }) ?? true else { continue }
            if let found = paused(from: link.from, &seen) { return found }
        }
        return nil
    }

    /// The stage of the chain file before inserted ones.
    private func written(_ stage: Int) -> Int {
        var stage = stage
        while graph.plan.stages[stage].isInserted, let before = graph.plan.links.first(where: { $0.to == stage })?.from
        {
            stage = before
        }
        return stage
    }
}
