// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// When a chain is planned again whose device, server or file is away, and what is said of that: after 1 s, then 2 s, 4 s
/// and so on, up to 30 s. Pure.
struct ChainRetry {
    private static let firstPause: Int64 = 1_000_000_000
    private static let longestPause: Int64 = 30_000_000_000
    /// Reasons that are kept, so that each is said once.
    private static let mostReasons = 16

    private var pause = Self.firstPause
    private var said: Set<String> = []
    /// Why the last attempt failed, a sentence each.
    private(set) var reasons: [String] = []
    /// Clock, nanoseconds.
    private(set) var due: Int64 = 0

    /// Whether nothing is wrong but that something is away.
    ///
    /// - Parameter isAskedFor: Whether only what a stage was asked to wait for counts.
    static func isAway(_ error: any Error, isAskedFor: Bool) -> Bool {
        let own = faults(error).filter { !$0.isConsequence }
        return !own.isEmpty && own.allSatisfy { $0.isAwaited || (!isAskedFor && $0.code == .unavailable) }
    }

    private static func faults(_ error: any Error) -> [FrameHostError] {
        (error as? FrameHostErrors)?.errors ?? [.wrap(error)]
    }

    /// An attempt has failed at `now`.
    ///
    /// - Returns: The reasons that were not said yet.
    mutating func failed(_ error: any Error, now: Int64) -> [String] {
        reasons = Self.faults(error).filter { !$0.isConsequence }.map(\.description)
        due = now + pause
        pause = min(2 * pause, Self.longestPause)
        let news = reasons.filter { !said.contains($0) }.prefix(max(Self.mostReasons - said.count, 0))
        said.formUnion(news)
        return Array(news)
    }

    /// What is added to the last reason that is said.
    static let promise =
        "The chain is tried again after 1 s, then less often, at least every 30 s, and begins as soon as it can."
}

/// Why a chain cannot begin yet: something that it needs is away.
struct ChainAway: Error { let faults: FrameHostErrors }
