// SPDX-License-Identifier: Apache-2.0

/// Finds what is wrong with a stage's `join`, and what a person should know about it.
enum JoinCheck {
    struct Fault: Equatable {
        /// The member with the fault, as a path within the stage: `join.match`.
        var key: String
        var what: String
        var remedy: String
    }

    /// - Parameters:
    ///   - request: The chain file's `join`.
    ///   - producers: What feeds the join, input by input.
    static func faults(
        of rule: JoinRule, _ request: JoinRequest?, at id: String, _ producers: [Producer]
    ) -> [Fault] {
        if rule.period != nil { return clockedFaults(request, at: id, rule.followsTimes ? [] : producers) }
        var faults: [Fault] = []
        let encoded = producers.indices.first {
            producers[$0].isEncoded && rule.keeps($0) && (rule.match != .newest || $0 != rule.lead)
        }
        if let encoded, rule.match == .newest {
            faults.append(
                Fault(
                    key: "join.match",
                    what: "'newest' would leave out access units of '\(producers[encoded].id)' that later ones need",
                    remedy: "Use \"nearest\" or \"exact\"\(rule.hold ? ", without 'hold'" : "")."))
        } else if let encoded {
            faults.append(
                Fault(
                    key: "join.hold",
                    what: "'\(producers[encoded].id)' gives access units, and only pictures can be repeated",
                    remedy: "Leave 'hold' out, or join before the encoder."))
        }
        if rule.hold, rule.whenEnded == .first {
            faults.append(
                Fault(
                    key: "join.hold", what: "'\(id)' ends with the first input that ends, so 'hold' has no effect",
                    remedy: "Leave 'hold' out, or use \"whenEnded\": \"lead\" or \"last\"."))
        }
        return faults
    }

    /// The faults of a join that gives pictures by the clock.
    private static func clockedFaults(_ request: JoinRequest?, at id: String, _ producers: [Producer]) -> [Fault] {
        var faults: [Fault] = []
        for (key, isSaid) in [
            ("match", request?.match != nil), ("lead", request?.lead != nil), ("hold", request?.hold != nil),
        ] where isSaid {
            faults.append(
                Fault(
                    key: "join.\(key)",
                    what:
                        "'\(id)' gives its pictures by the clock, each from the newest pictures of its inputs, so '\(key)' has no effect",
                    remedy: "Leave '\(key)' out. 'whenEnded' decides when '\(id)' ends."))
        }
        for producer in producers where !producer.keepsRealTime {
            faults.append(
                Fault(
                    key: "from",
                    what:
                        "'\(producer.id)' gives pictures as fast as it can, not in real time, and '\(id)' takes only the newest one at each tick of its clock: most would be lost",
                    remedy: "Use \(producer.realTime.joined(separator: " and "))."))
        }
        return faults
    }

    /// The properties of an input's producer that matter to joins.
    struct Producer {
        var id: String
        var isEncoded: Bool
        /// Whether all its sources are live.
        var isLive: Bool
        /// Whether all its sources are live, or give each picture when its time has come.
        var keepsRealTime: Bool
        /// The remedy for each source that does not: `"pace": "realtime" at 'clip'`.
        var realTime: [String] = []
        /// The indices of all its sources.
        var sources: Set<Int>
    }

    /// Sentences for `check`, and whether each is a warning.
    static func notes(on rule: JoinRule, at id: String, _ producers: [Producer]) -> [(text: String, isWarning: Bool)] {
        if rule.followsTimes {
            return [
                (
                    "join \(id): none of its inputs is live, so their times are its clock, and it gives pictures as fast as it can",
                    false
                )
            ]
        }
        if rule.period != nil { return [] }
        let lead = producers[rule.lead]
        // Branches of one source share its times.
        let others = producers.indices.filter {
            $0 != rule.lead && producers[$0].sources.isDisjoint(with: lead.sources)
        }
        var notes: [(text: String, isWarning: Bool)] = []
        for other in others.map({ producers[$0] }) {
            switch rule.match {
            case .exact where lead.isLive && other.isLive:
                notes.append(
                    (
                        "join \(id): '\(lead.id)' and '\(other.id)' are live and hardly ever have equal times; use \"match\": \"newest\" or \"nearest\"",
                        true
                    ))
            case .nearest where lead.isLive && other.isLive:
                notes.append(
                    (
                        "join \(id): waits up to one frame for the picture of '\(other.id)' that is nearest in time to the picture of '\(lead.id)'; \"match\": \"newest\" never waits",
                        false
                    ))
            case .newest where !other.keepsRealTime:
                notes.append(
                    (
                        "join \(id): '\(other.id)' gives pictures as fast as it can, not in real time, so \"newest\" leaves out most of them; use \"nearest\", or \(other.realTime.joined(separator: " and "))",
                        true
                    ))
            default: break
            }
        }
        return notes
    }
}
