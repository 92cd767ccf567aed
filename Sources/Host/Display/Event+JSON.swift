// SPDX-License-Identifier: Apache-2.0

import FrameCore

extension Event {
    /// The event as `--events` writes it.
    ///
    /// - Parameters:
    ///   - clock: The chain's clock, for the time of day.
    ///   - chain: With several chains in this process, the one whose event it is.
    func json(by clock: ChainClock, chain: String? = nil) -> JSONNode {
        var members: [(key: String, value: JSONNode)] = [
            ("time", .number(Double(time) / 1e9)), ("wallTime", .string(WallTime.text(clock.unixTime(at: time)))),
            ("event", .string(name)),
        ]
        if let chain { members.append(("chain", .string(chain))) }
        if let stage { members.append(("stage", .string(stage))) }
        members.append(("level", .string(level.rawValue)))
        members.append(("text", .string(text)))
        let taken = Set(members.map(\.key))
        members += (details.asObject ?? []).filter { !taken.contains($0.key) }.map { ($0.key, $0.value) }
        // The frame of the item in hand, unless the stage says which frame it means.
        if !members.contains(where: { $0.key == "frame" || $0.key == "pts" }) {
            if let frame { members.append(("frame", .number(frame))) }
            if let pts { members.append(("pts", .number(pts.seconds))) }
        }
        return .object(members)
    }
}
