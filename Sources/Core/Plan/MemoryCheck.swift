// SPDX-License-Identifier: Apache-2.0

/// Compares the memory of all pools and slabs with what there is. A plan that is too large is refused here, before the
/// kernel would kill the process.
struct MemoryCheck {
    private let plan: ChainPlan
    private let available: AvailableMemory?
    private let running: RunningChain?
    private let isKept: [Bool]
    /// By stage: the bytes of the headers that are kept for the items inside it.
    private let headerBytes: [Int]
    /// What the services keep, by their keys in the chain file.
    private let serviceBytes: [(key: String, bytes: Int)]

    /// - Parameters:
    ///   - layout: The layout of the chain's metadata.
    ///   - services: The services of the chain.
    ///   - available: Nil where the system does not say.
    ///   - running: The running chain, for a plan that changes it. It has its memory already, but for spare buffers that
    ///     have not been used.
    init(
        _ plan: ChainPlan, _ stages: [PlannedStage], _ layout: MetadataLayout, services: [ServiceRequest] = [],
        available: AvailableMemory?, running: RunningChain? = nil
    ) {
        self.plan = plan
        self.available = available
        self.running = running
        isKept = stages.map(\.isKept)
        // Those of a running chain are the same ones, and have their memory. Faults of their options have been reported
        // where they were read.
        serviceBytes = running == nil ? services.map { ($0.key, (try? $0.make())?.ownBytes ?? 0) } : []
        headerBytes = stages.map { stage in
            guard !stage.isTap else { return 0 }
            return HeldHeaders.byteCount(
                stage.request.type.kind, input: stage.inputs.first, output: stage.output, stage.demand, layout)
        }
    }

    /// What the chain needs in bytes, without the memory that the running chain has already.
    var needed: Int { parts.reduce(0) { AvailableMemory.sum($0, $1.bytes) } }

    func check(_ faults: inout PlanFaults) {
        guard let available else { return }
        let (parts, needed) = (parts, needed)
        guard needed > available.bytes, let largest = parts.max(by: { $0.bytes < $1.bytes }) else { return }
        var (needs, has) = (AvailableMemory.text(needed), AvailableMemory.text(available.bytes))
        let spare = plan.budget.pools.contains { $0.spare > 0 } ? ", a smaller \"spare\"" : ""
        if needs == has { (needs, has) = ("\(needed) bytes", "\(available.bytes) bytes") }
        faults.add(
            FrameHostError(
                .invalidConfiguration, place: FaultPlace(file: faults.file),
                what:
                    "the \(running == nil ? "chain needs" : "change needs another") \(needs) of memory, and \(available.holder) has only \(has) available;"
                    + " the largest part is \(AvailableMemory.text(largest.bytes)), \(largest.text)",
                remedy:
                    "Use a smaller picture, shorter queues (\"link\": { \"queue\", \"megabytes\" })\(spare) or fewer \"buffers\", or run the chain on a machine with more memory."
            ))
    }

    private var parts: [(bytes: Int, text: String)] {
        var parts: [(bytes: Int, text: String)] = plan.budget.pools.indices.map { index in
            let (pool, format) = (plan.budget.pools[index], plan.poolFormats[index])
            let name = RunningChain.PoolName(stage: plan.stages[pool.allocator].id, isCopyPool: pool.isCopyPool)
            let kept = isKept[pool.allocator] ? running?.pools[name] : nil
            // Of a pool that runs, the spare buffers that this plan needs get their memory with the change.
            let count = kept.map { max(0, min(pool.need, pool.size) - $0.touched) } ?? pool.size
            return (
                AvailableMemory.product(count, plan.poolBufferBytes[index]),
                "\(count) \(count == 1 ? "buffer" : "buffers") of \(format.width)x\(format.height) \(format.pixelFormat.rawValue)\(pool.isCopyPool ? " for copies" : "") at '\(plan.stages[pool.allocator].id)'"
            )
        }
        for slab in plan.slabs where !isKept[slab.stage] {
            let stage = plan.stages[slab.stage]
            parts.append((slab.byteCount, "\(Slab.Content(stage.output).itemsText) of '\(stage.id)'"))
        }
        for (index, stage) in plan.stages.enumerated() where headerBytes[index] > 0 && !isKept[index] {
            parts.append((headerBytes[index], "headers of the pictures inside '\(stage.id)'"))
        }
        for (index, stage) in plan.stages.enumerated() where stage.demand.ownBytes > 0 && !isKept[index] {
            parts.append((stage.demand.ownBytes, "memory that '\(stage.id)' itself uses"))
        }
        for service in serviceBytes where service.bytes > 0 {
            parts.append((service.bytes, "memory that '\(service.key)' keeps for its clients"))
        }
        return parts
    }
}
