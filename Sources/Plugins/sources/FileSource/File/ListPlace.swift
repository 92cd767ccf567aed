// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// Where one file of a list lies on the chain's timeline.
struct ListPlace {
    /// Where it begins, and which of its own times that is; nil: of its first item.
    private(set) var joint = MediaTime.zero
    private var begin: MediaTime? = .zero
    /// Added to its own times; found with its first item.
    private var found: MediaTime?
    /// The newest decode time that was given, by this file or the one before; nil: none.
    private var lastDTS: MediaTime?

    init() {}

    init(_ place: (joint: MediaTime, begin: MediaTime?), after former: ListPlace) {
        (joint, begin, lastDTS) = (place.joint, place.begin, former.lastDTS)
    }

    var shift: MediaTime { found ?? .zero }

    /// The time of a picture of a file of a list; of other files as it is.
    mutating func of(_ time: MediaTime, _ isOfList: Bool) -> MediaTime {
        guard isOfList else { return time }
        if found == nil { found = joint - (begin ?? time) }
        return time + shift
    }

    /// The times of an access unit in the same way. Decode times rise from file to file too.
    mutating func of(
        _ pts: MediaTime, decodedAt dts: MediaTime, _ isOfList: Bool
    ) -> (pts: MediaTime, dts: MediaTime) {
        guard isOfList else { return (pts, dts) }
        if found == nil {
            let last = lastDTS.map { $0 + MediaTime(nanoseconds: 1) - dts }
            found = max(joint - (begin ?? pts), last ?? .zero - MediaTime(seconds: 1e6))
        }
        lastDTS = dts + shift
        return (pts + shift, dts + shift)
    }
}
