// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// What several chains of one process are doing together, as the service manager is told. Pure.
///
/// A restart for one chain would cut off all others. So the chains count as at work while any one is. They count as
/// ready once a chain flows and every other one flows too, has ended, or has had ``patience``.
struct ChainsStatus {
    /// One of the chains.
    struct Member {
        var name: String
        /// The status; where the chain has ended, its last one.
        var status: ChainStatus
        /// Whether a source has given its first frame.
        var isFlowing: Bool
        var hasEnded: Bool
        /// Whether it waits for a device, server or file before it can begin.
        var isAway = false
    }

    /// How long a starting chain can keep the others from being ready, ns.
    static let patience: Int64 = 10_000_000_000
    /// The most chains that the status names.
    private static let mostNamed = 8

    let status: ChainStatus
    let isFlowing: Bool

    /// - Parameter age: Nanoseconds since the first chain was started.
    init(_ members: [Member], age: Int64) {
        let live = members.filter { !$0.hasEnded }
        let odd = members.filter { $0.hasEnded ? $0.status.state == .failed : !Self.isWell($0.status) }
        let stages = odd.prefix(Self.mostNamed).map { member in
            ChainStatus.Stage(id: member.name, state: member.status.state, reason: Self.reason(of: member.status))
        }
        // A restart brings nothing back that is away.
        let isAtWork = live.contains { $0.status.isAtWork || $0.isAway }
        let problems = isAtWork ? [] : live.flatMap(\.status.problems)
        status = ChainStatus(state: Self.state(of: live, members), stages: stages, problems: problems)
        let flowing = live.filter { $0.isFlowing || $0.status.state == .paused }
        let away = live.count { $0.isAway }
        isFlowing =
            flowing.isEmpty
            ? away == live.count && away > 0 && age >= Self.patience
            : flowing.count == live.count || age >= Self.patience
    }

    private static func isWell(_ status: ChainStatus) -> Bool {
        status.isHealthy && status.state != .recovering && status.state != .failed
    }

    private static func reason(of status: ChainStatus) -> String {
        let own = status.stages.filter { !$0.reason.isEmpty }.map { "\($0.id): \($0.reason)" }
        return ([status.state.rawValue] + (own.isEmpty ? status.problems : own)).joined(separator: ", ")
    }

    private static func state(of live: [Member], _ all: [Member]) -> ChainStatus.State {
        let states = Set(live.map { $0.isAway ? .recovering : $0.status.state })
        if live.isEmpty { return all.contains { $0.status.state == .failed } ? .failed : .stopped }
        if states.isSubset(of: [.draining, .finishing]) { return states.contains(.draining) ? .draining : .finishing }
        if states == [.paused] { return .paused }
        return states.isSubset(of: [.stopped, .starting]) ? .starting : .streaming
    }
}
