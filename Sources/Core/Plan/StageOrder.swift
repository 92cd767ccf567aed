// SPDX-License-Identifier: Apache-2.0

/// The order in which stages are planned: each after its inputs. Stages are sorted by their longest way from a
/// source, then by the order of the file.
struct StageOrder {
    /// Stages of the request by index; without those that wait for themselves.
    let order: [Int]
    /// Stages that feed each other, one list for each circle, in the order of the file.
    let circles: [[Int]]

    init(_ request: ChainRequest) {
        let stages = request.stages
        var consumers = [[Int]](repeating: [], count: stages.count)
        for (index, stage) in stages.enumerated() { for producer in stage.from { consumers[producer].append(index) } }
        var unknown = stages.map(\.from.count)
        var depth = [Int](repeating: 0, count: stages.count)
        // Stage by stage as inputs become known.
        var order = stages.indices.filter { unknown[$0] == 0 }
        var next = 0
        while next < order.count {
            for consumer in consumers[order[next]] {
                depth[consumer] = max(depth[consumer], depth[order[next]] + 1)
                unknown[consumer] -= 1
                if unknown[consumer] == 0 { order.append(consumer) }
            }
            next += 1
        }
        order.sort { (depth[$0], $0) < (depth[$1], $1) }
        self.order = order
        circles = order.count == stages.count ? [] : Self.circles(stages, among: unknown.map { $0 > 0 })
    }

    /// Goes upstream from each stage that waits for itself until a stage is met again. That gives one circle for each.
    private static func circles(_ stages: [StageRequest], among stuck: [Bool]) -> [[Int]] {
        var found: [[Int]] = []
        var walk = [Int](repeating: -1, count: stuck.count)
        for start in stages.indices where stuck[start] && walk[start] < 0 {
            var stage = start
            while walk[stage] < 0 {
                walk[stage] = start
                stage = stages[stage].from.first { stuck[$0] }!
            }
            guard walk[stage] == start else { continue }
            var circle = [stage]
            while let before = stages[circle.last!].from.first(where: { stuck[$0] }), before != stage {
                circle.append(before)
            }
            found.append(circle.sorted())
        }
        return found
    }

    /// `request` with its stages in this order. There must be no circle.
    func applied(to request: ChainRequest) -> ChainRequest {
        let position = Dictionary(uniqueKeysWithValues: order.enumerated().map { ($1, $0) })
        var ordered = request
        ordered.stages = order.map { index in
            var stage = request.stages[index]
            stage.from = stage.from.map { position[$0]! }
            return stage
        }
        ordered.buffers = Dictionary(uniqueKeysWithValues: request.buffers.map { (position[$0]!, $1) })
        ordered.links = Dictionary(
            uniqueKeysWithValues: request.links.map { (LinkEnds(from: position[$0.from]!, to: position[$0.to]!), $1) })
        return ordered
    }
}
