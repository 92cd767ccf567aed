import Synchronization

/// What carries out a chain's rules asks of it.
extension Chain {
    /// [any thread] The rules of the chain as it runs now.
    public var rules: [Rule] { graph.request.rules }

    /// [any thread] Whether the stage has ended as stages do, since nothing more comes for it; false for one that failed.
    public func hasEnded(_ id: String) -> Bool {
        guard let runner = graph.runner(id: id) else { return false }
        return runner.thread.isClosed && !runner.hasFailed
    }
}
