// SPDX-License-Identifier: Apache-2.0

extension Chain {
    /// Starts the threads of `stageThreads`, the last one first: consumers before their producers.
    ///
    /// - Parameter reserve: Has a thread for each of them; nil at the start of a run.
    func begin(stageThreads: [StageThread], from reserve: ThreadReserve? = nil) {
        // Where the work on an item takes much longer than a switch of threads, it is better to wake the waiting thread
        // at once.
        let isBatch = !runners.contains {
            $0.shown.demand.isLive || $0.shown.demand.cost >= AutomaticQueues.leastGain
        }
        begin(
            stageThreads.map { stageThread in (stageThread.state, { stageThread.work() }) }, isBatch: isBatch,
            from: reserve)
    }

    /// Starts threads without which the run cannot go on.
    func begin(
        _ threads: [(state: ThreadState, body: () -> Void)], isBatch: Bool, from reserve: ThreadReserve? = nil
    ) {
        if let tracer { for thread in threads { tracer.follow(thread.state) } }
        running.add(threads.map(\.state))
        for (thread, body) in threads.reversed() {
            do { try start(thread, isBatch: isBatch, from: reserve, body) } catch {
                failures.withLock { $0.append(.wrap(error)) }
                stop.raise()
            }
        }
    }

    /// Starts the thread of `thread`, which counts as running already.
    ///
    /// - Throws: ``FrameHostError`` `.exhausted`; then it counts as ended.
    func start(
        _ thread: ThreadState, isBatch: Bool, from reserve: ThreadReserve? = nil, _ body: @escaping () -> Void
    ) throws {
        thread.crashStages = crashStages
        func main() {
            thread.kernelNumber.store(KernelThread.currentNumber, ordering: .relaxed)
            thread.traceRing?.enter()
            let place = CrashReport.enter(thread)
            defer { CrashReport.leave(thread, place) }
            body()
            thread.inside.store(ThreadState.Place.chainWait, ordering: .relaxed)
            thread.traceRing?.isOver.store(true, ordering: .releasing)
            thread.finished.store(true, ordering: .releasing)
        }
        let ended = { [running] in running.ended(thread) }
        if reserve?.start(name: thread.name, isBatch: isBatch, body: main, ended: ended) == true { return }
        do { try startThread(thread.name, isBatch, main, ended) } catch {
            thread.traceRing?.isOver.store(true, ordering: .releasing)
            thread.finished.store(true, ordering: .releasing)
            running.ended(thread)
            throw error
        }
    }
}
