// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// An attempt to begin reading in the middle of a file so that no picture from there on is missed.
///
/// Formats go to a keyframe by the time of decoding, by guess, or not at all; and after a keyframe that is no IDR, a
/// decoder may leave out pictures it had to put into order with older ones. So what comes first is looked at, and when
/// it is not well before what is wanted the next attempt goes further back, at last to the begin. In ticks of the
/// track.
struct FileEntry: Equatable {
    /// Where to go to; nil: to the begin of the file.
    private(set) var place: Int64?

    /// The first picture that comes is to have this tick or an earlier one; nil: it must be the file's first.
    private let latest: Int64?
    private let origin: Int64
    /// Ticks further back, the next time.
    private var step: Int64

    /// - Parameters:
    ///   - tick: The first picture that is wanted has this one or a later one; nil when ticks are unknown.
    ///   - isFirst: It is the first picture of all: a decoder that begins there has no older ones.
    ///   - origin: Where the track begins.
    init(_ tick: Int64?, isFirst: Bool, origin: Int64, timeBase: TimeBase) {
        let second = max(timeBase.ticks(of: MediaTime(seconds: 1)), 1)
        latest = tick.map { isFirst ? $0 : $0.minus(second) }
        self.origin = origin
        step = second
        place = latest.map { max($0, min(origin, tick ?? origin)) }
    }

    /// Whether pictures that are wanted may have been missed when this one comes first.
    ///
    /// - Parameter first: Its tick; nil when there is none, or no picture.
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
struct FileWay {
    /// The one under way; nil once it has led to what was wanted.
    var entry: FileEntry?
    /// The file was entered in the middle in vain: it is read from its begin at once the next time.
    private var isOnlyEnteredAtBegin = false

    init(_ entry: FileEntry? = nil) { self.entry = entry }

    mutating func goBack() {
        entry?.goBack()
        if entry?.place == nil { isOnlyEnteredAtBegin = true }
    }

    /// Brings the file to where the attempt begins; false where it was opened anew for that, and is at its begin.
    mutating func follow(in file: MediaFile, track: Int) throws -> Bool {
        if isOnlyEnteredAtBegin { entry?.goToBegin() }
        if let place = entry?.place, file.seek(to: place, track: track) { return true }
        entry?.goToBegin()
        try file.reopen()
        return false
    }
}
