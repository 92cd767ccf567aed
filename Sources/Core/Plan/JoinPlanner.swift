// SPDX-License-Identifier: Apache-2.0

/// Decides how each join of a chain brings its inputs together, and says what is wrong with it and what a person should
/// know.
struct JoinPlanner {
    /// The rule of each join, by index of the stage.
    let rules: [Int: JoinRule]
    private let stages: [PlannedStage]

    init(_ stages: [PlannedStage]) {
        self.stages = stages
        var rules: [Int: JoinRule] = [:]
        for (index, stage) in stages.enumerated() where stage.request.type.kind == .join {
            rules[index] = JoinRule(stage, among: stages)
        }
        self.rules = rules
    }

    func check(_ faults: inout PlanFaults) {
        for (index, rule) in rules.sorted(by: { $0.key < $1.key }) {
            let request = stages[index].request
            for found in JoinCheck.faults(of: rule, request.join, at: request.id, producers(of: index)) {
                faults.add(request, found.key, found.what, found.remedy)
            }
        }
        checkTransforms(&faults)
    }

    /// In a live chain a transform of several inputs waits for each by the clock: what a source gives as fast as it can
    /// would be taken long before its time.
    private func checkTransforms(_ faults: inout PlanFaults) {
        guard stages.contains(where: \.demand.isLive) else { return }
        for (index, stage) in stages.enumerated()
        where stage.request.type.kind == .transform && stage.request.from.count > 1 {
            for producer in producers(of: index) where !producer.keepsRealTime {
                faults.add(
                    stage.request, "from",
                    "the chain is live, but '\(producer.id)' gives its output as fast as it can, not in real time: '\(stage.id)' would take it long before its time",
                    "Use \(producer.realTime.joined(separator: " and ")).")
            }
        }
    }

    /// Sentences for `check`.
    func notes(warnings: Bool) -> [String] {
        rules.sorted { $0.key < $1.key }.flatMap { index, rule in
            JoinCheck.notes(on: rule, at: stages[index].id, producers(of: index))
                .filter { $0.isWarning == warnings }.map(\.text)
        }
    }

    private func keepsRealTime(_ source: Int) -> Bool { stages[source].demand.keepsRealTime }

    /// What feeds a stage of several inputs, input by input.
    private func producers(of join: Int) -> [JoinCheck.Producer] {
        stages[join].request.from.map { producer in
            let sources = stages.sources(of: producer)
            var named = producer
            while stages[named].isInserted, let before = stages[named].request.from.first { named = before }
            return JoinCheck.Producer(
                id: stages[named].id, isEncoded: stages[producer].output?.encoded != nil,
                isLive: sources.allSatisfy { stages[$0].demand.isLive },
                keepsRealTime: sources.allSatisfy(keepsRealTime),
                realTime: sources.sorted().filter { !keepsRealTime($0) }.map { source in
                    let id = stages[source].id
                    return stages[source].request.type.info.realTime.map { "\($0) at '\(id)'" }
                        ?? "a live source in the place of '\(id)'"
                },
                sources: sources)
        }
    }
}

extension JoinRule {
    /// The rule of a join that is negotiated.
    ///
    /// A join by the clock follows the times of its inputs where none is live, unless each is played in real time.
    init(_ stage: PlannedStage, among stages: [PlannedStage]) {
        let demands = Set(stage.request.from.flatMap { stages.sources(of: $0) }).map { stages[$0].demand }
        self.init(
            stage.request.join ?? JoinRequest(), formats: stage.inputs, rate: stage.demand.outputRate,
            followsTimes: stage.demand.outputRate != nil && !demands.contains { $0.isLive }
                && !demands.allSatisfy { $0.keepsRealTime })
    }
}

extension StageDemand {
    /// Whether a source gives each item when its time has come.
    fileprivate var keepsRealTime: Bool { isLive || isPaced }
}

extension [PlannedStage] {
    /// The sources that feed a stage, or that it is itself.
    fileprivate func sources(of stage: Int) -> Set<Int> {
        var sources: Set<Int> = []
        var open = [stage]
        while let next = open.popLast() {
            let from = self[next].request.from
            if from.isEmpty { sources.insert(next) }
            open += from
        }
        return sources
    }
}
