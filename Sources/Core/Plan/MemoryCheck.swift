/// All pools and slabs together against what there is: a plan that is too large is refused here, not ended by the
/// kernel.
struct MemoryCheck {
    private let plan: ChainPlan
    private let available: AvailableMemory?

    /// - Parameter available: nil where the system does not say.
    init(_ plan: ChainPlan, available: AvailableMemory?) {
        self.plan = plan
        self.available = available
    }

    func check(_ faults: inout PlanFaults) {
        guard let available else { return }
        let parts = parts
        let needed = parts.reduce(0) { AvailableMemory.sum($0, $1.bytes) }
        guard needed > available.bytes, let largest = parts.max(by: { $0.bytes < $1.bytes }) else { return }
        faults.add(
            FrameHostError(
                .invalidConfiguration, place: faults.file,
                what:
                    "the chain needs \(AvailableMemory.text(needed)) of memory and \(available.holder) has \(AvailableMemory.text(available.bytes)) to give;"
                    + " the largest part is \(AvailableMemory.text(largest.bytes)), \(largest.text)",
                remedy:
                    "Use a smaller picture, shorter queues (\"link\": { \"queue\", \"megabytes\" }) or fewer \"buffers\", or run it where there is more memory."
            ))
    }

    private var parts: [(bytes: Int, text: String)] {
        var parts: [(bytes: Int, text: String)] = plan.budget.pools.indices.map { index in
            let (pool, format) = (plan.budget.pools[index], plan.poolFormats[index])
            return (
                AvailableMemory.product(pool.size, plan.poolBufferBytes[index]),
                "\(pool.size) buffers of \(format.width)x\(format.height) \(format.pixelFormat.rawValue)\(pool.isCopyPool ? " for copies" : "") at '\(plan.stages[pool.allocator].id)'"
            )
        }
        parts += plan.slabs.map { ($0.byteCount, "access units of '\(plan.stages[$0.stage].id)'") }
        parts += plan.stages.filter { $0.demand.ownBytes > 0 }.map {
            ($0.demand.ownBytes, "what '\($0.id)' takes for itself")
        }
        return parts
    }
}
