// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// Where the packets of a further output of a stream lie on the chain clock: at the offset of the pictures, which they
/// wait for and follow. A pure value: the caller passes the clock's time, and waits.
///
/// All times in nanoseconds; inputs lie within ``MediaTime/range``.
struct CompanionClock {
    enum Verdict: Equatable {
        /// The packet has its place. `isStep`: another timeline begins with it.
        case here(isStep: Bool)
        /// The pictures have no place for it yet.
        case wait
        /// It has none. `ahead` where its time is so far ahead of the pictures' that they will not come to it.
        case drop(ahead: Int64?)
    }

    /// How far a packet's time may lie behind now: a connection starts with a burst, which may have waited long for the chain
    /// to begin.
    private static let mostBehind: Int64 = 120_000_000_000
    /// How far ahead it may lie where the parts of a playlist come at once.
    private static let mostApart: Int64 = 10_000_000_000
    /// How far ahead it may lie where packets are given when they come.
    private static let mostAhead: Int64 = 1_000_000_000
    /// How long a packet that is too far ahead waits for pictures that give it a place.
    private static let longestHold: Int64 = 3_000_000_000
    /// A step of the offset by more than this is another timeline. It is followed once it has lasted for ``settled``.
    private static let step: Int64 = 500_000_000
    private static let settled: Int64 = 200_000_000

    /// Added to the connection's times to get the chain clock's; nil before the first packet.
    private(set) var offset: Int64?
    /// A new offset, and since when the pictures have it.
    private var next: (offset: Int64, since: Int64)?
    /// Whether the offset has stepped since the last packet that has its place.
    private var hasStepped = false
    /// Since when a packet has waited for a place.
    private var heldSince: Int64?

    /// Begins another connection, whose times are unrelated to the earlier ones.
    mutating func begin() { self = CompanionClock() }

    /// Looks where a packet belongs.
    ///
    /// - Parameters:
    ///   - given: The stream's own time; nil where it has none.
    ///   - pictures: Where the pictures are.
    ///   - now: The time of the chain clock.
    ///   - isPacedByStream: Whether packets come in bursts and are given at their times.
    mutating func look(
        at given: MediaTime?, _ pictures: StreamClock.Place, now: Int64, isPacedByStream: Bool
    ) -> Verdict {
        switch pictures {
        case .unknown: return .wait
        case .over: return .drop(ahead: nil)
        case .untimed: return .here(isStep: false)
        case .offset(let new):
            // Both lie within ±2^61.
            if let old = offset, abs(new - old) > Self.step {
                if next.map({ abs($0.offset - new) > Self.step }) ?? true { next = (new, now) }
                guard now - next!.since >= Self.settled else { return .wait }
                hasStepped = true
            }
            (offset, next) = (new, nil)
            let ahead = given.map { MediaTime(nanoseconds: new + $0.nanoseconds - now).nanoseconds } ?? 0
            // Where the stream's times jump, this track may jump before the pictures do: it then waits for them for a while.
            guard ahead < -Self.mostBehind || ahead > (isPacedByStream ? Self.mostApart : Self.mostAhead) else {
                defer { (heldSince, hasStepped) = (nil, false) }
                return .here(isStep: hasStepped)
            }
            let since = heldSince ?? now
            heldSince = since
            guard ahead > 0 else { return .drop(ahead: nil) }
            return now - since < Self.longestHold ? .wait : .drop(ahead: ahead)
        }
    }

    /// A time of the stream on the chain clock.
    func time(_ given: MediaTime) -> MediaTime { given + MediaTime(nanoseconds: offset ?? 0) }
}
