// SPDX-License-Identifier: Apache-2.0

/// Puts queues where they pay: between stages of one thread that both have much to do, while a processor is free.
///
/// It adds queues only to chains whose sources all wait, which have throughput to win and no latency to lose. It
/// adds them only when a chain is started, since no stage of a running chain moves to another thread. It goes by
/// the cost that stages declare, so that the same chain on the same number of processors has the same plan.
/// docs/design/013-automatic-queues.md has the reasons.
public struct AutomaticQueues {
    /// A queue that was put in, and why.
    public struct Queue: Sendable, Equatable {
        /// Index of the link in the plan.
        public var link: Int
        /// What an item costs before the queue, as the stages that shared a thread declare it.
        public var before: MediaTime
        /// What an item costs behind the queue.
        public var after: MediaTime
        /// How many processors the chain has.
        public var processors: Int
    }

    /// Each thread has one item in hand, and one item lies between them: the producer need not wait for a consumer
    /// that is at work.
    static let places = 1
    /// A hop to another thread costs microseconds, and each further buffer costs memory and cache. The gain must be
    /// clearly greater than that.
    static let leastGain = MediaTime(nanoseconds: 200_000)
    /// The lighter side must take at least one part in this many of the thread's present time.
    static let leastShare: Int64 = 10
    /// A greater cost that a plugin declares counts as this one.
    private static let mostCost = MediaTime(seconds: 60)

    private let stages: [PlannedStage]
    private let processors: Int
    private let costs: [Int64]
    private let mayAdd: Bool

    /// - Parameter processors: Nil means the processors that the process may use, which are counted only where they
    ///   matter.
    init(_ stages: [PlannedStage], isLive: Bool, processors: Int?, running: RunningChain? = nil) {
        self.stages = stages
        costs = stages.map { min(max($0.demand.cost, .zero), Self.mostCost).nanoseconds }
        mayAdd =
            running == nil && !isLive && !stages.contains { $0.demand.isLive || $0.demand.isPaced }
            && costs.filter { $0 > 0 }.count > 1
        self.processors = mayAdd ? processors ?? Processors.usable : 0
    }

    /// Turns inline links into queues, and returns these queues.
    func add(to links: inout [ChainPlan.Link]) -> [Queue] {
        guard mayAdd else { return [] }
        var queues: [Queue] = []
        while let queue = next(links) {
            links[queue.link].settings = LinkSettings(capacity: Self.places)
            links[queue.link].settings.isAutomatic = true
            queues.append(queue)
        }
        return queues.sorted { $0.link < $1.link }
    }

    /// The queue that relieves the busiest thread, for which all others wait; nil where none pays.
    private func next(_ links: [ChainPlan.Link]) -> Queue? {
        let threads = Threads(links, costs)
        guard let slowest = threads.costs.indices.max(by: { threads.costs[$0] < threads.costs[$1] }) else { return nil }
        let all = threads.costs[slowest]
        let busy = threads.costs.filter { $0 >= Self.leastGain.nanoseconds }.count
        guard busy < processors else { return nil }
        let cuts = links.indices.compactMap { index -> Cut? in
            guard threads.thread[links[index].from] == slowest, mayQueue(links[index], links) else { return nil }
            let after = threads.costBehind[links[index].to]
            let cut = Cut(
                link: index, before: all - after, after: after, bytes: links[index].format.video?.bufferBytes ?? 0)
            return cut.gain >= max(Self.leastGain.nanoseconds, all / Self.leastShare) ? cut : nil
        }
        guard let most = cuts.map(\.gain).max() else { return nil }
        // Of places that are about equally good, the one where an item takes the least memory.
        let good = cuts.filter { $0.gain >= most - all / Self.leastShare }
        return good.min { ($0.bytes, $0.link) < ($1.bytes, $1.link) }.map {
            Queue(
                link: $0.link, before: MediaTime(nanoseconds: $0.before), after: MediaTime(nanoseconds: $0.after),
                processors: processors)
        }
    }

    private struct Cut {
        var link: Int
        var before: Int64
        var after: Int64
        var bytes: Int
        var gain: Int64 { min(before, after) }
    }

    /// The cost of each thread, by the links.
    private struct Threads {
        /// By stage: its thread, named by the first stage on it.
        var thread: [Int]
        /// By stage: its cost and that of what runs inline behind it.
        var costBehind: [Int64]
        /// By thread, named by its first stage; 0 for stages that are not the first.
        var costs: [Int64]

        /// - Parameter links: Each leads from a stage to a later one.
        init(_ links: [ChainPlan.Link], _ stageCosts: [Int64]) {
            thread = Array(stageCosts.indices)
            costBehind = stageCosts
            costs = [Int64](repeating: 0, count: stageCosts.count)
            let inline = links.filter { $0.settings.capacity == 0 }.sorted { $0.to < $1.to }
            for link in inline { thread[link.to] = thread[link.from] }
            for link in inline.reversed() { costBehind[link.from] += costBehind[link.to] }
            for stage in stageCosts.indices { costs[thread[stage]] += stageCosts[stage] }
        }
    }

    /// Whether the link carries raw pictures, and the file gives neither the length of its queue nor the size of its
    /// pool.
    private func mayQueue(_ link: ChainPlan.Link, _ links: [ChainPlan.Link]) -> Bool {
        guard link.settings.capacity == 0, link.format.video != nil, !stages[link.to].isTap,
            let input = stages[link.to].request.from.firstIndex(of: link.from),
            stages[link.to].inputLinks[input].queue == nil
        else { return false }
        var allocator = link.from
        while stages[allocator].demand.outputBuffers == .sameAsInput || stages[allocator].request.type.kind == .filter,
            let before = stages[allocator].request.from.first
        {
            allocator = before
        }
        return stages[allocator].buffers == nil
    }

}
