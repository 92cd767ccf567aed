// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// Puts the times of a stream on the chain's clock: the times at which items came, smoothed by the stream's own
/// times. A pure value: the caller passes the clock's time.
///
/// All times in nanoseconds. Inputs and the offset lie within ``MediaTime/range``, so that nothing overflows.
struct LiveTimeline {
    enum Pace {
        /// Items are given when they come.
        case arrival
        /// Items come in bursts and are given at their times.
        case stream
    }

    struct Placement: Equatable {
        var time: Int64
        /// Whether another timeline begins here.
        var isJump = false
    }

    private static let mostLate: Int64 = 1_000_000_000
    private static let mostEarly: Int64 = 10_000_000_000
    /// How old a connection's first item can be: it may have waited long for the chain to begin.
    private static let mostAge: Int64 = 120_000_000_000
    /// The least time between two items.
    private static let step: Int64 = 1_000_000
    /// An offset that is wrong by more than this falls at once.
    private static let mostUneven: Int64 = 100_000_000
    /// After this many items the offset follows a stream whose clock is slower than ours.
    private static let window = 100

    let pace: Pace
    /// The time of the newest item.
    private(set) var last: Int64?
    /// How many timelines began within a connection.
    private(set) var jumps = 0
    /// Added to the stream's times; nil before a connection's first item.
    private(set) var offset: Int64?
    /// When a connection's first item was captured; nil where it is given when it comes.
    private var first: Int64?
    /// What is added to a connection's times, as far as that is known before its first item.
    private var known: Int64?
    /// How late what waits may be.
    private var age: Int64 = 0
    private var period: Int64 = 0
    private var leastLate = Int64.max
    private var count = 0
    /// The time of what was shown last in the stream's place, until an item comes after it.
    private var standIn: Int64?

    init(_ pace: Pace) { self.pace = pace }

    /// Begins another connection, whose times are unrelated to the earlier ones.
    ///
    /// - Parameters:
    ///   - age: How long before `now` the first item was captured, judged by the items that came with it. At most
    ///     ``mostAge`` counts, and only where items are given when they come.
    ///   - now: The time of the chain clock.
    ///   - offset: What is to be added to the stream's times, by the items that came with the first.
    ///   - period: From item to item, as far as that is known.
    ///   - isStoodIn: Whether something else has been shown in its place until now.
    mutating func begin(
        age: MediaTime = .zero, now: Int64, offset known: Int64? = nil, period: MediaTime = .zero,
        isStoodIn: Bool = false
    ) {
        (offset, standIn) = (nil, isStoodIn ? last : nil)
        self.period = min(max(period.nanoseconds, 0), Self.mostLate)
        self.age = pace == .arrival ? min(max(age.nanoseconds, 0), Self.mostAge) : 0
        // Not by the time of its place: the first picture has to be decoded, and more of the burst may be before it.
        first = self.age > 0 ? now - self.age : nil
        self.known = first == nil ? nil : known
        (leastLate, count) = (.max, 0)
    }

    /// Whether an item is so late that another timeline begins with it, unless a burst waits behind it
    /// (``expectBurst(_:)``).
    func isLate(_ given: MediaTime?, now: Int64) -> Bool {
        guard pace == .arrival, let given, let offset else { return false }
        return now - (offset + given.nanoseconds) > Self.mostLate + age
    }

    /// Says how much waits behind a late item. What a network that stood still has held up comes at once, and belongs
    /// where it was captured.
    mutating func expectBurst(_ length: MediaTime) { age = min(max(length.nanoseconds, 0), Self.mostEarly) }

    /// The place of an item that is left out: stand-ins were shown at its time, as of the burst that a connection begins
    /// with. The sound and the access units beside it need its place all the same. Nil if the item is given.
    mutating func placeOfLeftOut(_ given: MediaTime?, now: Int64) -> Int64? {
        guard pace == .arrival, let standIn else { return nil }
        var time = (first ?? now) - period
        if let given {
            if offset == nil { anchor(given, beginning(given, now) ?? first ?? now) }
            time = offset! + given.nanoseconds
        }
        guard time > standIn else { return time }
        self.standIn = nil
        return nil
    }

    /// Finds the place of an item.
    ///
    /// - Parameters:
    ///   - given: The stream's own time; nil where it has none or an impossible one.
    ///   - now: The time of the chain clock.
    ///   - isBehind: Whether further items wait, so that how late this one is tells nothing of the peer's clock.
    mutating func place(_ given: MediaTime?, now: Int64, isBehind: Bool = false) -> Placement {
        // A first item without a time is a little older than those that came with it.
        var placement = Placement(time: (offset == nil ? first.map { $0 - period } : nil) ?? now)
        if let given {
            // Not before what was given already, so that the first items keep their distances.
            if offset == nil {
                let begin = beginning(given, now) ?? first ?? now
                anchor(given, max(begin, min(last.map { $0 + max(period, Self.step) } ?? .min, now)))
            }
            placement.time = offset! + given.nanoseconds
            let late = now - placement.time
            if late < Self.mostLate { age = 0 }
            if late > Self.mostLate + age || -late > Self.mostEarly {
                anchor(given, now)
                jumps += 1
                placement = Placement(time: now, isJump: true)
            } else if pace == .arrival {
                if late < 0 {
                    if isBehind { anchor(given, now) } else { lower(-late, given, now) }
                    placement.time = offset! + given.nanoseconds
                } else if late < Self.mostLate, !isBehind {
                    follow(late)
                }
            }
        }
        if let last, placement.time < last + Self.step { placement.time = last + Self.step }
        last = placement.time
        return placement
    }

    /// The time of a connection's first item by what was known before.
    private func beginning(_ given: MediaTime, _ now: Int64) -> Int64? {
        guard let known else { return nil }
        let time = MediaTime(nanoseconds: known).nanoseconds + given.nanoseconds
        return (now - Self.mostAge...now + Self.mostUneven).contains(time) ? time : nil
    }

    /// An item has come earlier than any before it. Pictures that are decoded in another order than they are shown would
    /// stand unevenly if the offset fell by all of that at once.
    private mutating func lower(_ early: Int64, _ given: MediaTime, _ now: Int64) {
        guard early <= min(2 * period, Self.mostUneven) else { return anchor(given, now) }
        offset = MediaTime(nanoseconds: offset! - min(early, max(period / 16, Self.step))).nanoseconds
        (leastLate, count) = (.max, 0)
    }

    private mutating func anchor(_ given: MediaTime, _ now: Int64) {
        offset = MediaTime(nanoseconds: now - given.nanoseconds).nanoseconds
        (leastLate, count) = (.max, 0)
    }

    private mutating func follow(_ late: Int64) {
        leastLate = min(leastLate, late)
        count += 1
        guard count >= Self.window else { return }
        offset = MediaTime(nanoseconds: offset! + leastLate).nanoseconds
        (leastLate, count) = (.max, 0)
    }
}
