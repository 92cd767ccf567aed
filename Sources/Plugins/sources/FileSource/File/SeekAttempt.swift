// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// An attempt to begin reading in the middle of a file so that no picture from there on is missed.
///
/// Formats seek to a keyframe by decode time, by guessing, or not at all. And after a keyframe that is not an IDR
/// picture, a decoder may leave out pictures that it would have to reorder with older ones. So the reader checks
/// the first picture that comes. If it is not early enough, the next attempt goes further back, and the last one to
/// the start. In ticks of the track.
struct SeekAttempt: Equatable {
    /// Where to seek to; nil: to the start of the file.
    private(set) var place: Int64?

    /// The first picture that comes must have this tick or an earlier one; nil where it must be the file's first.
    private let latest: Int64?
    private let origin: Int64
    /// How many ticks further back the next attempt goes.
    private var step: Int64

    /// - Parameters:
    ///   - tick: The first wanted picture has this tick or a later one; nil when ticks are unknown.
    ///   - isFirst: Whether it is the file's first picture: a decoder that begins there has no older ones.
    ///   - origin: Where the track begins.
    init(_ tick: Int64?, isFirst: Bool, origin: Int64, timeBase: TimeBase) {
        let second = max(timeBase.ticks(of: MediaTime(seconds: 1)), 1)
        latest = tick.map { isFirst ? $0 : $0.minus(second) }
        self.origin = origin
        step = second
        place = latest.map { max($0, min(origin, tick ?? origin)) }
    }

    /// Whether wanted pictures may have been missed when this one comes first.
    ///
    /// - Parameter first: The picture's tick; nil when it has none, or when there is no picture.
    func isTooLate(_ first: Int64?) -> Bool {
        guard place != nil, let latest else { return false }
        return first.map { $0 > latest } ?? true
    }

    mutating func goBack() {
        guard let place, let latest, place > origin, step < TimeBase.mostTicks else { return goToBegin() }
        self.place = max(latest.minus(step), origin)
        let (next, isTooMuch) = step.multipliedReportingOverflow(by: 4)
        step = isTooMuch ? TimeBase.mostTicks : next
    }

    mutating func goToBegin() { place = nil }
}

/// The attempts of one reader, each further back than the one before.
struct SeekAttempts {
    /// The present attempt; nil once one has succeeded.
    var attempt: SeekAttempt?
    /// Whether seeking into the file has failed: from then on it is read from its start at once.
    private var isOnlyEnteredAtBegin = false

    init(_ attempt: SeekAttempt? = nil) { self.attempt = attempt }

    mutating func goBack() {
        attempt?.goBack()
        if attempt?.place == nil { isOnlyEnteredAtBegin = true }
    }

    /// Moves the file to where the attempt starts; false where the file was opened again, and is at its start.
    mutating func follow(in file: MediaFile, track: Int) throws -> Bool {
        if isOnlyEnteredAtBegin { attempt?.goToBegin() }
        if let place = attempt?.place, file.seek(to: place, track: track) { return true }
        attempt?.goToBegin()
        try file.reopen()
        return false
    }
}
