// SPDX-License-Identifier: Apache-2.0

import FrameCore
import FrameNetwork

/// Counts of all readers of a stream, those that have left included. [any thread]
final class ReaderTotals: Sendable {
    private struct Counts {
        var joined = 0
        var playing = 0
        var mostPlaying = 0
        var droppedUnits = 0
        var droppedSounds = 0
        var hadSound = false
        var left: [String: Int] = [:]
    }

    private let counts = NIOLockedValueBox(Counts())

    func count(_ event: ReaderEvent) {
        counts.withLockedValue { counts in
            switch event {
            case .joined(let order):
                if order.transports[.sound] != nil { counts.hadSound = true }
                counts.joined += 1
                counts.playing += 1
                counts.mostPlaying = max(counts.mostPlaying, counts.playing)
            case .left(let figures, let departure, _):
                counts.playing -= 1
                counts.droppedUnits += figures.droppedUnits
                counts.droppedSounds += figures.sound?.droppedUnits ?? 0
                counts.left["\(departure)", default: 0] += 1
            case .refused, .failedLogins: break
            }
        }
    }

    /// For `--stats`: the totals, and each reader that plays now.
    ///
    /// - Parameters:
    ///   - readers: The readers that play now.
    ///   - longestHold: The longest time that the server's lock was held, nanoseconds.
    ///   - keptGroup: Figures of the kept group, where there is one.
    func details(
        _ readers: [ReaderFigures], refusedConnections: Int, failedLogins: Int, longestHold: Int64,
        keptGroup: JSONNode? = nil
    ) -> JSONNode {
        let counts = counts.withLockedValue { $0 }
        let left = counts.left.sorted { $0.key < $1.key }.map { (key: $0.key, value: JSONNode.number($0.value)) }
        return .object(
            [
                ("joined", .number(counts.joined)), ("mostAtOnce", .number(counts.mostPlaying)),
                ("left", .object(left)),
                ("droppedUnits", .number(counts.droppedUnits + readers.reduce(0) { $0 + $1.droppedUnits })),
            ]
                + (counts.hadSound
                    ? [
                        (
                            "droppedSounds",
                            JSONNode.number(
                                counts.droppedSounds + readers.reduce(0) { $0 + ($1.sound?.droppedUnits ?? 0) })
                        )
                    ] : [])
                + [
                    ("refusedConnections", .number(refusedConnections)), ("failedLogins", .number(failedLogins)),
                    ("longestHoldMicroseconds", .number(Int(longestHold / 1000))),
                    ("readers", .array(readers.map(ReaderReports.details))),
                ] + (keptGroup.map { [("keptGroup", $0)] } ?? []))
    }
}
