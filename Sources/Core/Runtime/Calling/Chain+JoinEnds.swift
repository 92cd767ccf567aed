// SPDX-License-Identifier: Apache-2.0

extension Chain {
    /// [join's thread] A join has ended, and its inputs are closed. Sources that feed no other stage end.
    func joinEnded(_ join: StageRunner) {
        endedJoins.withLock { _ = $0.insert(join.number) }
        endSourcesWithoutReaders()
    }

    /// [join's thread, control thread] Ends sources that feed only joins which have ended: those that have since lost
    /// their other readers, too.
    func endSourcesWithoutReaders() {
        let ended = endedJoins.withLock { $0 }
        let graph = graph
        guard !ended.isEmpty else { return }
        let isOver = graph.runners.map { ended.contains($0.number) }
        for source in graph.plan.sourcesWithoutReaders(isOver) { graph.runners[source].shown.context.requestEnd() }
    }
}

extension ChainPlan {
    /// Sources all of whose consumers have ended.
    ///
    /// - Parameter ended: Whether each stage has ended, by its index.
    func sourcesWithoutReaders(_ ended: [Bool]) -> [Int] {
        // Stages are in topological order, so going backwards visits consumers before their producers.
        var isOver = ended
        for stage in stages.indices.reversed() where !isOver[stage] {
            let readers = links.filter { $0.from == stage }.map(\.to)
            isOver[stage] = !readers.isEmpty && readers.allSatisfy { isOver[$0] }
        }
        return stages.indices.filter { stages[$0].kind == .source && isOver[$0] }
    }
}
