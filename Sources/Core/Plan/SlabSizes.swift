// SPDX-License-Identifier: Apache-2.0

/// The memory of access units. For each stage that makes them it is what the links and stages behind it can hold, and
/// one link more where the chain has spare buffers.
struct SlabSizes {
    private let stages: [PlannedStage]
    private let links: [ChainPlan.Link]
    private let spare: PoolSpare
    private let running: RunningChain?

    /// - Parameters:
    ///   - links: The links, with the queues as raised.
    ///   - running: The running chain, for a plan that changes it. Its slabs stay as they are.
    init(_ stages: [PlannedStage], _ links: [ChainPlan.Link], spare: PoolSpare = .none, running: RunningChain? = nil) {
        self.stages = stages
        self.links = links
        self.spare = spare
        self.running = running
    }

    var slabs: [ChainPlan.SlabPlan] {
        stages.indices.compactMap { index in
            guard stages[index].output?.liesInSlab == true, stages[index].demand.outputBuffers == .own else {
                return nil
            }
            if let size = slabThatRuns(index) {
                return ChainPlan.SlabPlan(stage: index, byteCount: size.byteCount, unitCount: size.unitCount)
            }
            var slab = need(of: index)
            if spare != .none, spare != .buffers(0) {
                slab.unitCount += LinkPlanner.mostUnits + 2
                slab.byteCount += Int(LinkPlanner.lateMegabytes * 1e6)
            }
            return slab
        }
    }

    /// What running slabs lack, with the first new stage behind each.
    func shortages() -> [(slab: ChainPlan.SlabPlan, reader: Int)] {
        stages.indices.compactMap { index in
            guard let size = slabThatRuns(index) else { return nil }
            var missing = need(of: index)
            missing.unitCount = max(0, missing.unitCount - size.unitCount)
            missing.byteCount = max(0, missing.byteCount - size.byteCount)
            guard missing.unitCount > 0 || missing.byteCount > 0 else { return nil }
            return (missing, readers(of: index).first { !stages[$0].isKept } ?? index)
        }
    }

    private func slabThatRuns(_ index: Int) -> RunningChain.Slab? {
        stages[index].isKept ? running?.slabs[stages[index].id] : nil
    }

    /// Stages that get the units of `maker`, in order.
    private func readers(of maker: Int) -> [Int] {
        var found: Set<Int> = []
        var open = [maker]
        while let next = open.popLast() {
            for link in links where link.from == next {
                if found.insert(link.to).inserted, stages[link.to].demand.outputBuffers == .sameAsInput {
                    open.append(link.to)
                }
            }
        }
        return found.sorted()
    }

    private func need(of maker: Int) -> ChainPlan.SlabPlan {
        let demand = stages[maker].demand
        var units = demand.slabUnits + demand.delay + 2
        var bytes = demand.slabBytes
        var open = [maker]
        while let next = open.popLast() {
            // A tap releases a unit before the maker has another one.
            for link in links where link.from == next && !stages[link.to].isTap {
                let reader = stages[link.to].demand
                units += link.settings.capacity + 2 + reader.hold
                if link.settings.capacity > 0 { bytes += link.settings.mostBytes ?? 0 }
                if reader.outputBuffers == .sameAsInput { open.append(link.to) }
            }
        }
        return ChainPlan.SlabPlan(stage: maker, byteCount: bytes, unitCount: units)
    }
}
