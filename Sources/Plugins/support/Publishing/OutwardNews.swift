// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// Makes the events about a server and about the spool before it: away, back, lost events. A value: time goes in,
/// events come out.
package struct OutwardNews: Sendable {
    /// An event of the service.
    package struct Said: Sendable, Equatable {
        package var event: String
        package var level: Event.Level
        package var text: String
        package var details: JSONNode

        package func post(_ control: any RunControl) {
            control.post(event, level: level, text: text, details: details)
        }
    }

    /// The least time between two events about losses, and between two about a server that stays away, in
    /// nanoseconds.
    static let lossPause: Int64 = 60_000_000_000
    static let awayPause: Int64 = 600_000_000_000
    /// The least time between two events that say that the spool cannot be written, and between two that say that it
    /// can. They go into the spool themselves.
    static let spoolPause: Int64 = 10_000_000_000

    /// `NATS` or `MQTT`, and where it is.
    private let kind: String
    private let servers: [String]
    /// The spool's folder.
    private let spool: String
    private var isConnected: Bool?
    private var lastAway: Int64 = 0
    private var losses: [Spool.Loss: Int] = [:]
    private var total = 0
    private var lastLoss: Int64?
    private var hasFault = false
    private var lastFailed: Int64?
    private var lastRecovered: Int64?
    /// Why the server refused an event last.
    private var refusal: String?

    /// - Parameters:
    ///   - servers: Addresses, not empty.
    ///   - spool: The spool's folder.
    package init(kind: String, servers: [String], spool: String) {
        self.kind = kind
        self.servers = servers
        self.spool = spool
    }

    private var members: [JSONNode.Member] {
        [
            JSONNode.Member(key: "publisher", value: .string(kind.lowercased())),
            JSONNode.Member(key: "server", value: .string(servers.joined(separator: ", "))),
        ]
    }

    private func said(_ event: String, _ level: Event.Level, _ text: String, _ more: [JSONNode.Member]) -> Said {
        Said(event: event, level: level, text: text, details: JSONNode(.object(members + more)))
    }

    /// The server takes events.
    package mutating func connected(to server: String, waiting: Int) -> Said? {
        guard isConnected != true else { return nil }
        let isBack = isConnected == false
        isConnected = true
        let tail = waiting > 0 ? " \(waiting) event\(waiting == 1 ? " waits" : "s wait")." : ""
        return said(
            "publisher-connected", .info,
            "Events go to the \(kind) server \(server)\(isBack ? " again" : "").\(tail)",
            [JSONNode.Member(key: "waiting", value: .number(waiting))])
    }

    /// The server takes no events.
    package mutating func disconnected(_ reason: String, waiting: Int, now: Int64) -> Said? {
        guard isConnected != false || now - lastAway >= Self.awayPause else { return nil }
        let isFirst = isConnected != false
        isConnected = false
        lastAway = now
        let (noun, verb) = servers.count == 1 ? ("server", "takes") : ("servers", "take")
        let shown = servers.joined(separator: ", ")
        return said(
            "publisher-disconnected", .warning,
            "The \(kind) \(noun) \(shown) \(isFirst ? verb : "still \(verb)") no events: \(reason). The events wait in the spool (\(waiting) now) until they can be sent. If this lasts, check the \(noun) and the options of '\(kind.lowercased())'.",
            [
                JSONNode.Member(key: "reason", value: .string(reason)),
                JSONNode.Member(key: "waiting", value: .number(waiting)),
            ])
    }

    /// Notes why the server has refused an event. ``ofSpool(losses:fault:now:)`` reports the last reason.
    package mutating func refused(_ reason: String) { refusal = reason }

    /// Reports what happened to the spool.
    ///
    /// - Parameter isLast: As in ``lost(_:now:isLast:)``.
    package mutating func ofSpool(
        losses new: [Spool.Loss: Int], fault: String?, now: Int64, isLast: Bool = false
    ) -> [Said] {
        var result: [Said] = []
        func isDue(_ last: Int64?) -> Bool { last.map { now - $0 >= Self.spoolPause } ?? true }
        if let fault, !hasFault, isDue(lastFailed) {
            (hasFault, lastFailed) = (true, now)
            result.append(
                said(
                    "spool-failed", .warning,
                    "The \(kind) spool '\(spool)' cannot be written: \(fault). Free space on its disk, or make it writable for this user. Until then, only the last \(Spool.mostUnwritten) events are kept, in memory.",
                    [JSONNode.Member(key: "reason", value: .string(fault))]))
        } else if fault == nil, hasFault, isDue(lastRecovered) {
            (hasFault, lastRecovered) = (false, now)
            result.append(said("spool-recovered", .info, "The \(kind) spool can be written again.", []))
        }
        return result + (lost(new, now: now, isLast: isLast).map { [$0] } ?? [])
    }

    /// Reports losses, added up over a minute.
    ///
    /// - Parameter isLast: Whether nothing is reported after this, so that losses do not wait.
    package mutating func lost(_ new: [Spool.Loss: Int], now: Int64, isLast: Bool = false) -> Said? {
        losses.merge(new) { $0 + $1 }
        let count = losses.values.reduce(0, +)
        guard count > 0, isLast || lastLoss.map({ now - $0 >= Self.lossPause }) ?? true else { return nil }
        lastLoss = now
        total += count
        let reasons = Spool.Loss.allCases.compactMap { loss in losses[loss].map { (loss, $0) } }
        let shown = reasons.map { loss, count in
            let why = loss == .refused ? refusal.map { ": \($0)" } ?? "" : ""
            return reasons.count == 1 ? "\(loss.words)\(why)" : "\(count) (\(loss.words)\(why))"
        }.joined(separator: ", ")
        let sum = total > count ? " Since the start, \(total) were lost." : ""
        let remedy =
            losses[.spoolFull] == nil
            ? "" : " To keep more events, raise '\(kind.lowercased()).spoolMegabytes' and start the chain again."
        losses = [:]
        return said(
            "events-lost", .warning,
            "\(count) \(count == 1 ? "event" : "events") for the \(kind) server \(count == 1 ? "was" : "were") lost: \(shown).\(sum)\(remedy)",
            [
                JSONNode.Member(key: "count", value: .number(count)),
                JSONNode.Member(key: "total", value: .number(total)),
                JSONNode.Member(key: "reasons", value: .object(reasons.map { ($0.0.rawValue, .number($0.1)) })),
            ])
    }
}
