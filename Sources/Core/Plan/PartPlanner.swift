// SPDX-License-Identifier: Apache-2.0

/// What a chain needs to make a part of its timeline: gates before its ends, and what its source gives beside the part.
struct PartPlanner {
    let part: TimelinePart
    let stages: [PlannedStage]

    // MARK: Before formats are known

    /// The request with a gate before each stage that takes pictures and gives none.
    static func withGates(_ request: ChainRequest) -> ChainRequest {
        var request = request
        for index in request.stages.indices where takesPictures(index, request) && !givesPictures(index, request) {
            let stage = request.stages[index]
            var id = "\(stage.id)-part"
            while request.stages.contains(where: { $0.id == id }) { id += "-2" }
            // Appended at the end, so that the indices of the others stay.
            request.stages[index].from = [request.stages.count]
            request.stages.append(
                StageRequest(
                    id: id, type: PartGate.type, from: stage.from, fileIndex: stage.fileIndex, place: stage.place))
        }
        return request
    }

    private static func givesPictures(_ index: Int, _ request: ChainRequest) -> Bool {
        let stage = request.stages[index]
        guard stage.type.kind != .sink else { return false }
        switch stage.type.info.output(with: stage.options) {
        case .encoded, .audio, .motion: return false
        case .video, .several, .any, .sameAsInput, .none: return true
        }
    }

    private static func takesPictures(_ index: Int, _ request: ChainRequest) -> Bool {
        let stage = request.stages[index]
        guard stage.from.count == 1, request.stages.indices.contains(stage.from[0]) else { return false }
        return givesPictures(stage.from[0], request)
    }

    // MARK: Once demands are known

    /// Adds a fault for each stage that cannot be divided.
    func check(_ faults: inout PlanFaults) {
        for stage in stages {
            guard let obstacle = obstacle(stage) else { continue }
            faults.add(
                stage.request, "use", "a part of a file cannot be made by this chain: '\(stage.id)' \(obstacle)",
                (stage.request.type.kind == .source ? "Process" : "Leave the stage out, or process")
                    + " the file as a whole, without --parts.")
        }
    }

    private func obstacle(_ stage: PlannedStage) -> String? {
        if let obstacle = stage.demand.warmUp?.obstacle { return obstacle }
        switch stage.request.type.kind {
        case .source:
            return stage.demand.isDivisible ? nil : "(\(stage.request.type.info.id)) cannot begin in the middle"
        case .sink:
            if stage.request.from.count > 1 { return "takes several inputs" }
            return stage.demand.isDivisible ? nil : "(\(stage.request.type.info.id)) takes whole runs only"
        case .join: return "joins several inputs"
        case .filter, .transform:
            return stage.demand.writesFiles.first.map { "would write '\($0)' again for each part" }
        }
    }

    /// The part with what the source gives beside it: the most that any way from the source to a gate needs.
    var whole: TimelinePart {
        var part = part
        // In topological order, so each stage's inputs come before it.
        var before = [WarmUp](repeating: .none, count: stages.count)
        var behind = [Int](repeating: 0, count: stages.count)
        for (index, stage) in stages.enumerated() {
            let demand = stage.demand
            let own = demand.warmUp ?? WarmUp(frames: demand.hold + demand.delay)
            for input in stage.request.from {
                before[index] = before[index].joined(before[input])
                behind[index] = max(behind[index], behind[input])
            }
            if stage.request.type === PartGate.type {
                part.warmUp = part.warmUp.joined(before[index])
                part.lookAhead = max(part.lookAhead, behind[index])
            } else if stage.request.type.kind != .source {
                before[index] = before[index] + own
                behind[index] += demand.lookAhead ?? demand.delay
            }
        }
        return part
    }
}
