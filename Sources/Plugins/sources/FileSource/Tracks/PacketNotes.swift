// SPDX-License-Identifier: Apache-2.0

import CAVFormat

/// What a reader notes of the packets of its track since it last began to read: enough to see at the end whether the
/// file has what it promises. Allocates nothing while packets come.
struct PacketNotes {
    /// Whether the file's end was reached, or reading failed.
    var isAtEnd = false
    /// Packets of which the file has only a part.
    private(set) var cut = 0
    /// The file offset of the last packet; -1 where it is not known.
    private(set) var position: Int64 = -1
    /// The earliest time of a packet; nil where none has one.
    private(set) var firstTick: Int64?
    /// The latest time of a packet.
    private(set) var lastTick: Int64?

    /// Times of the packets after the first keyframe, of which a decoder may leave out those that are shown before it.
    private var early: [Int64] = []
    private static let mostEarly = 64
    private var hasKeyframe = false
    /// Packets with a time whose pictures are shown.
    private(set) var shown = 0
    /// Whether the first packet was a keyframe, so that all can be decoded.
    private(set) var beginsWithKeyframe = false

    /// In ticks, rising.
    private let cues: [Int64]
    private var isCueSeen: [Bool]
    /// How far from a cue a packet may be, in ticks.
    private let reach: Int64

    /// - Parameters:
    ///   - cues: Times at which the file's index has a picture, in ticks, rising.
    ///   - reach: How far from a cue a picture may be, in ticks.
    init(cues: [Int64] = [], reach: Int64 = 0) {
        self.cues = cues
        self.reach = reach
        isCueSeen = [Bool](repeating: false, count: cues.count)
        early.reserveCapacity(Self.mostEarly)
    }

    /// The same with nothing noted, where reading begins at another place.
    var again: PacketNotes { PacketNotes(cues: cues, reach: reach) }

    mutating func note(_ packet: AVPacket) {
        if packet.flags & AV_PKT_FLAG_CORRUPT != 0 { cut += 1 }
        position = packet.pos
        let tick = packet.pts != fh_av_no_pts ? packet.pts : packet.dts
        guard tick != fh_av_no_pts else { return }
        if packet.flags & AV_PKT_FLAG_KEY != 0 { hasKeyframe = true }
        if firstTick == nil { beginsWithKeyframe = hasKeyframe }
        if packet.flags & AV_PKT_FLAG_DISCARD == 0, packet.size > 0 { shown += 1 }
        if hasKeyframe, early.count < Self.mostEarly, packet.flags & AV_PKT_FLAG_DISCARD == 0 { early.append(tick) }
        note(tick: tick)
    }

    mutating func note(tick: Int64) {
        firstTick = min(firstTick ?? tick, tick)
        lastTick = max(lastTick ?? tick, tick)
        guard !cues.isEmpty else { return }
        var (low, high) = (0, cues.count)
        while low < high {
            let middle = (low + high) / 2
            if cues[middle] < tick.minus(reach) { low = middle + 1 } else { high = middle }
        }
        while low < cues.count, cues[low] <= tick.plus(reach) {
            isCueSeen[low] = true
            low += 1
        }
    }

    /// How many packets after the first keyframe are shown before `tick`, the time of the first picture that came.
    func early(before tick: Int64) -> Int { early.count { $0 < tick } }

    /// Cues near which there was no packet: their number, and the first of them.
    ///
    /// - Parameters:
    ///   - lower: Earlier cues do not count.
    ///   - isToEnd: Whether those after the last packet count too.
    func missingCues(from lower: Int64?, isToEnd: Bool) -> (count: Int, first: Int64)? {
        let from = max(lower ?? .min, firstTick ?? .min)
        let missing = cues.indices.filter {
            !isCueSeen[$0] && cues[$0] >= from && (isToEnd || cues[$0] < (lastTick ?? .min).minus(reach))
        }
        return missing.first.map { (missing.count, cues[$0]) }
    }
}
