// SPDX-License-Identifier: Apache-2.0

/// What the queues and delays of a live chain add to a picture's latency. Without a live source there is no moment of
/// capture to measure from.
struct PlanLatency {
    private let plan: ChainPlan

    init(_ plan: ChainPlan) { self.plan = plan }

    /// The delays of the longest way, and its queues if `withQueues`, in seconds at the frame rates on it; nil where a
    /// rate on the way is not known.
    func seconds(withQueues: Bool) -> Double? {
        var worst = [Double?](repeating: 0, count: plan.stages.count)
        for link in plan.links {
            guard let before = worst[link.from], let seconds = Self.frameSeconds(link.format),
                let known = worst[link.to]
            else {
                worst[link.to] = nil
                continue
            }
            let places = Double(link.settings.capacity) * seconds
            let queued = link.settings.mostTime.map { min(places, $0.seconds) } ?? places
            let delayed = Double(plan.stages[link.to].demand.delay) * seconds
            worst[link.to] = max(known, before + (withQueues ? queued : 0) + delayed)
        }
        let all = worst.compactMap { $0 }
        return all.count == worst.count ? all.max() : nil
    }

    private static func frameSeconds(_ format: MediaFormat) -> Double? {
        // A link of sound or motion is limited in time, and its items are short.
        if format.goesWithPictures { return LinkPlanner.usualBlockSeconds }
        let rate = format.video?.frameRate ?? format.encoded?.video?.frameRate ?? Rational(0)
        return rate.isZero ? nil : 1 / rate.value
    }
}
