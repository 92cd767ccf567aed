// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// Puts the times of a stream on the chain's clock: when an item came, smoothed by what the stream says. Pure.
///
/// All times in nanoseconds. What comes in lies within ``MediaTime/range``, as does the offset, so that nothing
/// overflows.
struct LiveTimeline {
    enum Pace {
        /// Items are given when they come.
        case arrival
        /// Items come in bursts and are given when their time has come.
        case stream
    }

    struct Placement: Equatable {
        var time: Int64
        /// Another time line begins here.
        var isJump = false
    }

    private static let mostLate: Int64 = 1_000_000_000
    private static let mostEarly: Int64 = 10_000_000_000
    /// Between two items at least.
    private static let step: Int64 = 1_000_000
    /// Items by which a clock that goes slower is followed.
    private static let window = 100

    let pace: Pace
    /// Of the newest item.
    private(set) var last: Int64?
    /// Time lines that began within a connection.
    private(set) var jumps = 0
    /// Added to the stream's times; nil before a connection's first item.
    private var offset: Int64?
    /// How long before it came the first item was taken.
    private var age: Int64 = 0
    private var leastLate = Int64.max
    private var count = 0

    init(_ pace: Pace) { self.pace = pace }

    /// Another connection, whose times have nothing to do with those before.
    ///
    /// - Parameter age: How long before it came its first item was taken, by what has come behind it; counts up to
    ///   10 s, and only where items are given when they come.
    mutating func begin(age: MediaTime = .zero) {
        offset = nil
        self.age = pace == .arrival ? min(max(age.nanoseconds, 0), Self.mostEarly) : 0
        (leastLate, count) = (.max, 0)
    }

    /// Where an item goes.
    ///
    /// - Parameters:
    ///   - given: The stream's own time; nil where it has none that can be meant.
    ///   - now: Of the chain clock.
    mutating func place(_ given: MediaTime?, now: Int64) -> Placement {
        var placement = Placement(time: now)
        if let given {
            if offset == nil { anchor(given, now - age) }
            placement.time = offset! + given.nanoseconds
            let late = now - placement.time
            if late < Self.mostLate { age = 0 }
            if late > Self.mostLate + age || -late > Self.mostEarly {
                anchor(given, now)
                jumps += 1
                placement = Placement(time: now, isJump: true)
            } else if pace == .arrival {
                if late < 0 {
                    anchor(given, now)
                    placement.time = now
                } else if late < Self.mostLate {
                    follow(late)
                }
            }
        }
        if let last, placement.time < last + Self.step { placement.time = last + Self.step }
        last = placement.time
        return placement
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
