// SPDX-License-Identifier: Apache-2.0

import CAVFormat

/// The pictures that an edit list (ISO/IEC 14496-12, 8.6.6) hides, by the index of an MP4 or MOV file: which of them later
/// pictures may need to be decoded.
struct HiddenPictures {
    /// How many are hidden, and how many of these are needed.
    let count: Int
    let neededCount: Int
    /// Whether several parts of the track are played one after the other, so that a time has several places.
    let isInParts: Bool
    /// For each packet of the index, whether it is shown or needed.
    private let isNeeded: [UInt8]
    /// Where the next packet is expected.
    private var place = 0

    /// nil where none is hidden, or the index does not say.
    init?(_ file: MediaFile, track: Int, isOpen: Bool) {
        guard let index = file.indexed(track, after: -1), index.shown < index.packets else { return nil }
        var marks = [UInt8](repeating: 1, count: index.packets)
        // Pictures behind a keyframe may refer to some before it, where it is not an IDR picture.
        neededCount = Int(fh_av_index_needed(file.stream(track), isOpen ? 2 : 1, &marks))
        count = index.packets - index.shown
        let ticks = (0..<Int32(index.packets)).lazy.map { fh_av_index_tick(file.stream(track), $0) }
        isInParts = zip(ticks, ticks.dropFirst()).contains { $0 > $1 }
        isNeeded = marks
    }

    /// How many the index has, with the hidden ones.
    var packetCount: Int { isNeeded.count }

    /// Whether the next packet that is read is shown, or needed.
    mutating func needs(_ packet: UnsafePointer<AVPacket>, of stream: UnsafeMutablePointer<AVStream>) -> Bool {
        if place >= isNeeded.count || fh_av_index_is(stream, Int32(place), packet) == 0 {
            guard let found = isNeeded.indices.first(where: { fh_av_index_is(stream, Int32($0), packet) != 0 }) else {
                return true
            }
            place = found
        }
        place += 1
        return isNeeded[place - 1] != 0
    }
}
