// SPDX-License-Identifier: Apache-2.0

/// Which items of the other inputs belong to an item of the leading input.
public enum JoinMatch: String, Sendable, CaseIterable {
    /// The nearest item, at most half a frame of the leading input away.
    case nearest
    /// The newest item at the moment when the leading input gives one; the join waits for no other input.
    case newest
    /// The item of equal PTS. No input leads: the join answers for each time at which any input has an item.
    case exact
}

/// When a join ends, and with it the stages behind.
public enum JoinEnd: String, Sendable, CaseIterable {
    /// With the leading input.
    case lead
    /// With the first input that ends.
    case first
    /// With the last input that ends. After the end of the leading input the next in the order of `from` leads.
    case last
}

/// What a chain file says as a stage's `join`; a property that is nil takes its default.
public struct JoinRequest: Sendable, Equatable {
    /// Which items belong together.
    public var match: JoinMatch?
    /// The input that leads, as a position in `from`.
    public var lead: Int?
    /// When the join ends.
    public var whenEnded: JoinEnd?
    /// Whether an input that has ended goes on giving its last picture.
    public var hold: Bool?

    /// Asks for a rule; what is left out takes its default.
    public init(match: JoinMatch? = nil, lead: Int? = nil, whenEnded: JoinEnd? = nil, hold: Bool? = nil) {
        self.match = match
        self.lead = lead
        self.whenEnded = whenEnded
        self.hold = hold
    }
}

/// How a join brings its inputs together: a ``JoinRequest`` with its defaults filled in. docs/design/010-joins.md.
public struct JoinRule: Sendable, Equatable {
    /// Which items belong together.
    public var match: JoinMatch
    /// The input that leads, as a position among the inputs; 0 under ``JoinMatch/exact`` unless the file says
    /// otherwise.
    public var lead: Int
    /// When the join ends.
    public var whenEnded: JoinEnd
    /// Whether an input that has ended goes on giving its last picture.
    public var hold: Bool
    /// For each input the time from one item to the next by its format, in nanoseconds; 0 where the rate is unknown.
    public var frameTimes: [Int64]
    /// For a join by the clock (``StageDemand/outputRate``), the time from one picture to the next in nanoseconds. Such
    /// a join takes the newest of each input; ``match`` and ``lead`` do not apply. Nil for other joins.
    public var period: Int64?
    /// Whether the times of its inputs are the clock of such a join: it gives a picture for each tick as fast as it can, with the
    /// newest of each input at that time, and waits for every input. Otherwise the clock is the chain's.
    public var followsTimes = false

    /// Makes a rule.
    public init(
        match: JoinMatch = .nearest, lead: Int = 0, whenEnded: JoinEnd = .lead, hold: Bool = false, frameTimes: [Int64],
        period: Int64? = nil
    ) {
        self.match = match
        self.lead = lead
        self.whenEnded = whenEnded
        self.hold = hold
        self.frameTimes = frameTimes
        self.period = period
    }

    /// - Parameters:
    ///   - rate: The rate of a join that gives pictures by the clock; see ``StageDemand/outputRate``.
    ///   - followsTimes: As ``followsTimes``.
    init(_ request: JoinRequest, formats: [MediaFormat], rate: Rational?, followsTimes: Bool = false) {
        if let rate {
            self.init(
                match: .newest, whenEnded: request.whenEnded ?? .last, frameTimes: formats.map(\.frameTime),
                period: rate.period)
            self.followsTimes = followsTimes
            return
        }
        self.init(
            match: request.match ?? .nearest, lead: request.lead ?? 0, whenEnded: request.whenEnded ?? .lead,
            hold: request.hold ?? false, frameTimes: formats.map(\.frameTime))
    }

    /// The link before an input for which the chain file cannot choose it; nil for other inputs. A join that takes
    /// the newest item waits only for its leading input, and a newer item replaces the one that lies before another
    /// input.
    func fixedLink(of input: Int) -> LinkSettings? {
        takesNewest(of: input) ? LinkSettings(capacity: 1, policy: .latest) : nil
    }

    private func takesNewest(of input: Int) -> Bool {
        !followsTimes && (period != nil || match == .newest && input != lead)
    }

    /// Whether the join keeps the last item of an input, to give it again: one more buffer of that input's pool.
    public func keeps(_ input: Int) -> Bool {
        if followsTimes || takesNewest(of: input) { return true }
        // Otherwise nothing is given after the end of the leading input, or of any input.
        return hold && (whenEnded == .last || whenEnded == .lead && input != lead)
    }
}

extension MediaFormat {
    /// The time from one item to the next, nanoseconds; 0 where the rate is unknown.
    var frameTime: Int64 {
        (video?.frameRate ?? encoded?.video?.frameRate)?.period ?? 0
    }
}

extension Rational {
    /// The time from one item to the next at this rate, nanoseconds; 0 where the rate is not greater than 0.
    var period: Int64 {
        guard numerator > 0, denominator > 0 else { return 0 }
        let (product, isTooMuch) = Int64(denominator).multipliedReportingOverflow(by: 1_000_000_000)
        return (isTooMuch ? .max : product) / Int64(numerator)
    }
}
