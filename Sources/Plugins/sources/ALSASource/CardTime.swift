// SPDX-License-Identifier: Apache-2.0

/// The time of a card's status, on the chain clock: the driver's stamp where that is possible, else the present.
/// Pure.
struct CardTime {
    /// A driver updates its pointer at least this often; an older stamp is from another clock. Nanoseconds.
    private static let oldest: Int64 = 1_000_000_000
    private static let future: Int64 = 100_000_000

    /// Stamps that were not usable.
    private(set) var replaced = 0

    /// - Parameters:
    ///   - stamp: `htstamp` of `snd_pcm_status`, nanoseconds.
    ///   - now: Of the chain clock, which is the driver's clock too.
    mutating func time(_ stamp: Int64, now: Int64) -> Int64 {
        if stamp >= now &- Self.oldest, stamp <= now &+ Self.future { return stamp }
        replaced += 1
        return now
    }
}
