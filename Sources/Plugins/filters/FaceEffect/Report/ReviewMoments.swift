// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// The moments of a run that a person should look at: of each kind those with the most weight, with their pictures.
struct ReviewMoments {
    struct Entry {
        var moment: TwoWayGuard.Moment
        var frame: UInt64
        var seconds: Double
        /// Of the picture, a JPEG file.
        var size: PictureSize
        var picture: [UInt8]
    }

    /// The most pictures of one kind of moment.
    static let mostOfAKind = 12
    /// By kind.
    private(set) var entries = [[Entry]](repeating: [], count: TwoWayGuard.Moment.Kind.allCases.count)
    /// By kind: how many there were.
    private(set) var counts = [Int](repeating: 0, count: TwoWayGuard.Moment.Kind.allCases.count)

    /// Counts a moment.
    ///
    /// - Returns: Whether it is to be kept: its picture is then handed to ``keep(_:)``.
    mutating func note(_ moment: TwoWayGuard.Moment) -> Bool {
        let kind = moment.kind.rawValue
        counts[kind] += 1
        return entries[kind].count < Self.mostOfAKind
            || entries[kind].contains { $0.moment.weight < moment.weight }
    }

    /// Keeps an entry, in place of the one with the least weight where there is no more room.
    mutating func keep(_ entry: Entry) {
        let kind = entry.moment.kind.rawValue
        if entries[kind].count == Self.mostOfAKind,
            let least = entries[kind].indices.min(by: {
                entries[kind][$0].moment.weight < entries[kind][$1].moment.weight
            })
        {
            entries[kind].remove(at: least)
        }
        entries[kind].append(entry)
    }
}
