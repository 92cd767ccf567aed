// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// Which pictures are written: each one, or one for each slot of a grid of times. Pure.
///
/// A slot gets the first picture that comes at its begin or later. Where that cannot be written, a later picture of the
/// slot may take its place.
struct PictureSchedule {
    /// Nanoseconds; nil for each picture.
    let period: Int64?
    /// The begin of the slot that waits for its picture.
    private var next: Int64?
    /// Whether a picture of that slot could not be written.
    private(set) var isFailing = false

    /// Times of a file are rounded to its ticks.
    private static let tolerance: Int64 = 1_000_000

    init(everySeconds: Double?) { period = everySeconds.map { max(Int64($0 * 1e9), 1) } }

    /// Whether a picture is to be written.
    mutating func isDue(_ pts: MediaTime) -> Bool {
        guard let period else { return true }
        let time = pts.nanoseconds
        // Begins anew where times step back.
        if next == nil || time < next! - period - Self.tolerance { next = time }
        return time >= next! - Self.tolerance
    }

    /// A picture that was due is written.
    ///
    /// - Returns: How many slots got none, because pictures of theirs could not be written.
    mutating func took(_ pts: MediaTime) -> Int {
        let lost = pass(pts)
        isFailing = false
        if let period, let next { self.next = next + period }
        return lost
    }

    /// A picture that was due cannot be written.
    ///
    /// - Returns: How many pictures are lost with it: of a grid none before the slot is over.
    mutating func missed(_ pts: MediaTime) -> Int {
        guard period != nil else { return 1 }
        let lost = pass(pts)
        isFailing = true
        return lost
    }

    /// No picture follows: how many slots still wait for a picture that could be written.
    mutating func end() -> Int {
        defer { isFailing = false }
        return isFailing ? 1 : 0
    }

    /// Goes on to the slot of a picture; slots that lie between count as lost only where the first of them failed.
    private mutating func pass(_ pts: MediaTime) -> Int {
        guard let period, let begin = next else { return 0 }
        let slots = max(pts.nanoseconds + Self.tolerance - begin, 0) / period
        next = begin + slots * period
        return isFailing ? Int(slots) : 0
    }
}
