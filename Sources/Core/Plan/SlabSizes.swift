/// Memory of access units: for each stage that makes some, what the links and stages behind it can hold.
struct SlabSizes {
    private let stages: [PlannedStage]
    private let links: [ChainPlan.Link]

    /// - Parameter links: With the queues as raised.
    init(_ stages: [PlannedStage], _ links: [ChainPlan.Link]) {
        self.stages = stages
        self.links = links
    }

    var slabs: [ChainPlan.SlabPlan] {
        stages.indices.compactMap { index in
            guard stages[index].output?.encoded != nil, stages[index].demand.outputBuffers == .own else { return nil }
            return slab(of: index)
        }
    }

    private func slab(of maker: Int) -> ChainPlan.SlabPlan {
        let demand = stages[maker].demand
        var units = demand.slabUnits + demand.delay + 2
        var bytes = demand.slabBytes
        var open = [maker]
        while let next = open.popLast() {
            for link in links where link.from == next {
                let reader = stages[link.to].demand
                units += link.settings.capacity + 2 + reader.hold
                if link.settings.capacity > 0 { bytes += link.settings.mostBytes ?? 0 }
                if reader.outputBuffers == .sameAsInput { open.append(link.to) }
            }
        }
        return ChainPlan.SlabPlan(stage: maker, byteCount: bytes, unitCount: units)
    }
}
