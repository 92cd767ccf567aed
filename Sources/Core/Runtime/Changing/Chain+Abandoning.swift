// SPDX-License-Identifier: Apache-2.0

/// Threads that do not return from a stage's own code.
///
/// The chain abandons a thread that has not returned ``stopPatienceNs`` after its stop signal, at the end of the run or
/// when its branch is removed (LeavingBranch.swift). It then waits no longer for the thread
/// (``RunningThreads/abandon(_:)``), the run ends with status 1, and the process ends without the thread. The buffers
/// that the thread holds are lost: a change counts without them (``buffersLost(in:)``) until the thread lets go of
/// them.
extension Chain {
    /// How long after `stop` a stage may still be in its own code. With one more look of the watch this stays below a
    /// second.
    static let stopPatienceNs: Int64 = 800_000_000

    /// [control thread] At the end of the run, the titles of the stages that did not return from their own code.
    func abandoned(_ threads: [ThreadState]) -> [String] {
        let stuck = unfinished(threads)
        for name in stuck { postAbandoned(name) }
        return stuck
    }

    /// [control thread] While the run goes on, stops waiting for the thread of a branch that was removed.
    func abandon(_ stageThread: StageThread) {
        let inside = Int(stageThread.state.inside.load(ordering: .relaxed))
        let name = (runner(number: inside) ?? stageThread.head).title
        abandonedBranches.withLock { $0.append(name) }
        postAbandoned(name)
        running.abandon(stageThread.state)
    }

    private func postAbandoned(_ name: String) {
        hub.post(
            Event(
                name: "stage-abandoned", level: .error,
                text:
                    "\(name) did not return within \(Self.stopPatienceNs / 1_000_000) ms after the stop and was abandoned, with the buffers it holds. Check the disk, the network or the device that it uses; if they work, tell its author.",
                time: clock.now()))
    }

    /// Titles of the stages whose own code the unfinished threads are in. Where these threads only wait for each
    /// other, titles of the stages with which they begin.
    func unfinished(_ threads: [ThreadState]) -> [String] {
        let open = threads.filter { !$0.finished.load(ordering: .acquiring) }
        let inside = open.map { Int($0.inside.load(ordering: .relaxed)) }.filter { $0 >= 0 }
        let titles = inside.compactMap { runner(number: $0)?.title }
        guard titles.isEmpty else { return titles }
        let graph = graph
        return open.map { thread in graph.everyStageThread.first { $0.state === thread }?.head.title ?? thread.name }
    }

    /// [any thread] The stage with this number, in the graph or about to be started.
    func runner(number: Int) -> StageRunner? {
        graph.runner(number: number) ?? starting.withLock { $0.runners.first { $0.number == number } }
    }

    /// [desk's thread] How many buffers of `pool` only abandoned branches hold. These may never be free again.
    func buffersLost(in pool: FramePool) -> Int {
        let lost = Set(graph.leaving.filter(\.isAbandoned).flatMap(\.runners).map(\.number))
        guard !lost.isEmpty else { return 0 }
        let leases = pool.holders()
        let inUse = leases.filter { !lost.contains(Int($0.holder) / 2) }.map(\.buffer)
        return Set(leases.map(\.buffer)).subtracting(inUse).count
    }
}
