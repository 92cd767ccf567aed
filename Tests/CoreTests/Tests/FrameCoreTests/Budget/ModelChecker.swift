// SPDX-License-Identifier: Apache-2.0

@testable import FrameCore

/// Explores every state a small chain can get into, and finds those from which a part of it can never go on.
///
/// The model mirrors the runner: threads that take, call and hand on; links with their policies; leases; pools; writers
/// that wait until they are alone or have a copy; joins that wait for all their inputs. It is harsher than any runner:
/// a thread may be slow at any point, a stage keeps any of the frames it saw, up to its `hold`, and answers early or
/// late, up to its `delay`; a source that is a decoder keeps any of the frames it lent, up to its `floor`. Sources
/// never end.
///
/// A frame is known by its pool and its time: one source gives one frame of each time, an allocator one answer to each
/// item. Only the order of the times matters, so they are numbered afresh in each state, which makes the states
/// finitely many. Sources that meet at a join give the same times; one that drops may thereby skip some, and one that is
/// that `skips` does so at will. A join whose inputs match by time is explored with the leading input's frames as the unit of
/// time: an item of another input belongs to one of them, and the news that it was dropped does not say that no other one
/// belongs there, so the join waits for what comes after. Stages before such a join may drop what they are handed.
///
/// A stage that takes the items of several inputs in the order of their time waits until each has one, and takes from
/// before its turn what ``EarlyTaking`` lets it. How far a filter looks ahead is a number of items: only their order
/// matters here. Sources that skip times have rates of their own.
///
/// Memory is flat and unsafe, since suites run in debug: the layout of a state is fixed by ``StateLayout``.
struct ModelChecker {
    struct Report {
        var states = 0
        var steps = 0
        /// A state in which a part can never go on again, for people; nil when there is none.
        var stall: String?
        /// Pools whose allocator found no buffer, by index of `pools`.
        var waited: Set<Int> = []
    }

    enum Failure: Error, Equatable {
        /// Neither right nor wrong: the graph is too large.
        case tooManyStates(Int)
        case tooManyTimes
        case unsupported(String)
    }

    struct Pool {
        var allocator: Int
        var isCopyPool: Bool
        var size: Int
    }

    let layout: StateLayout

    init(
        _ graph: BudgetGraph, pools: [Pool], skips: [Int: Int] = [:], ahead: [Int: Int] = [:],
        keepsTurns: Bool = false, changes: GraphChanges? = nil
    ) throws {
        layout = try StateLayout(
            graph, pools, skips: skips, ahead: ahead, keepsTurns: keepsTurns, changes: changes)
    }

    /// A plan's graph with the sizes the plan gives, or others in the order of its pools.
    init(_ plan: BudgetPlan, sizes: [Int]? = nil) throws {
        try self.init(
            plan.graph,
            pools: plan.pools.enumerated().map {
                Pool(allocator: $1.allocator, isCopyPool: $1.isCopyPool, size: sizes?[$0] ?? $1.size)
            })
    }

    /// - Parameters:
    ///   - findsWaits: Explores every order of steps, so that ``Report/waited`` is complete; else only as many orders
    ///     as it takes to find
    ///     each stall.
    ///   - stopsEarly: Ends at the first stall.
    /// - Throws: ``Failure/tooManyStates(_:)`` when there are more than `limit`: such a graph has not been checked.
    func run(limit: Int = 2_000_000, findsWaits: Bool = false, stopsEarly: Bool = true) throws -> Report {
        var report = Report()
        let moves = StateMoves(layout)
        let store = StateStore(stride: layout.byteCount)
        defer { store.free() }
        let oneThread = layout.isOrderless && !findsWaits
        let keepsSteps = layout.canStopInPart
        var firstStep: [Int32] = []
        var targets: [Int32] = []
        var actors: [UInt8] = []
        let initial = layout.initial()
        _ = store.insert(initial)
        initial.deallocate()
        var next = 0
        while next < store.count {
            if keepsSteps { firstStep.append(Int32(targets.count)) }
            let before = report.steps
            moves.expand(store[next], oneThread: oneThread)
            for index in 0..<moves.count {
                report.steps += 1
                let (target, _) = store.insert(moves[index])
                if keepsSteps {
                    targets.append(Int32(target))
                    actors.append(moves.actor(index))
                }
            }
            report.waited.formUnion(moves.waited)
            if moves.overflow { throw Failure.tooManyTimes }
            if report.steps == before, layout.changes == nil {
                report.stall = layout.describe(store[next])
                if stopsEarly { break }
            }
            if store.count > limit { throw Failure.tooManyStates(limit) }
            next += 1
        }
        report.states = store.count
        if keepsSteps, report.stall == nil {
            firstStep.append(Int32(targets.count))
            let idle = Self.idleForever(firstStep, targets, actors) { state in
                layout.threadsThatMustMove(store[state])
            }
            if let (state, thread) = idle {
                report.stall = "\(layout.actorName(thread)) can never go on: " + layout.describe(store[state])
            }
        }
        return report
    }

    /// A state from which some thread never moves again, whatever happens: in a chain that drops, the rest can go on
    /// around it.
    ///
    /// Looks at each set of states that reach each other and nothing else: every thread must move within it, but those
    /// that may rest there. Changes are not counted on: each may be the last. (Tarjan's algorithm, without recursion.)
    private static func idleForever(
        _ first: [Int32], _ targets: [Int32], _ actors: [UInt8], mustMove: (Int) -> UInt64
    ) -> (state: Int, thread: Int)? {
        let count = first.count - 1
        var order = [Int32](repeating: -1, count: count)
        var low = [Int32](repeating: 0, count: count)
        var component = [Int32](repeating: -1, count: count)
        var cursor = [Int32](repeating: 0, count: count)
        var stack: [Int32] = []
        var path: [Int32] = []
        var counter: Int32 = 0
        var components: Int32 = 0
        for root in 0..<count where order[root] < 0 {
            path.append(Int32(root))
            while let last = path.last {
                let state = Int(last)
                if order[state] < 0 {
                    order[state] = counter
                    low[state] = counter
                    counter += 1
                    cursor[state] = first[state]
                    stack.append(last)
                }
                if cursor[state] < first[state + 1] {
                    let target = Int(targets[Int(cursor[state])])
                    let isChange = actors[Int(cursor[state])] == StateLayout.changeActor
                    cursor[state] += 1
                    if isChange { continue }
                    if order[target] < 0 {
                        path.append(Int32(target))
                    } else if component[target] < 0 {
                        low[state] = min(low[state], order[target])
                    }
                    continue
                }
                path.removeLast()
                if let parent = path.last { low[Int(parent)] = min(low[Int(parent)], low[state]) }
                guard low[state] == order[state] else { continue }
                // A component is complete: is it one that nothing leaves?
                var members: [Int] = []
                while let member = stack.popLast() {
                    component[Int(member)] = components
                    members.append(Int(member))
                    if member == last { break }
                }
                var moved: UInt64 = 0
                var isLeft = false
                for member in members {
                    for step in first[member]..<first[member + 1] where actors[Int(step)] != StateLayout.changeActor {
                        if component[Int(targets[Int(step)])] != components { isLeft = true }
                        moved |= 1 << UInt64(actors[Int(step)])
                    }
                }
                components += 1
                guard !isLeft else { continue }
                let idle = mustMove(state) & ~moved
                if idle != 0 { return (state, idle.trailingZeroBitCount) }
            }
        }
        return nil
    }
}
