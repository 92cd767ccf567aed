// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// Packs the units of one medium into blocks of a ring. [stage thread]
struct PackedTrack<Packetizer: UnitPacketizer> {
    private let medium: Medium
    private let clock: RTPClock
    /// The pictures' clock, in which units of both media are compared.
    private let pictureClock: RTPClock
    private var packetizer: Packetizer
    private var ring: BlockRing
    /// The packed size of the largest unit so far.
    private var mostBytes = 0

    init(_ medium: Medium, clock: RTPClock, pictureClock: RTPClock, packetizer: Packetizer, ring: BlockRing) {
        self.medium = medium
        self.clock = clock
        self.pictureClock = pictureClock
        self.packetizer = packetizer
        self.ring = ring
    }

    /// A block with the packets of a unit; nil for a unit that cannot be sent. Allocates nothing once warm.
    ///
    /// - Parameters:
    ///   - index: The block's index in the stream.
    ///   - soundsBefore: How many blocks of sound came before.
    ///   - reports: The sender reports that go before the unit; nil where none are due.
    mutating func pack(
        _ unit: borrowing AccessUnit, index: UInt64, soundsBefore: UInt64, reports: PerMedium<[UInt8]>?
    ) -> MediaBlock? {
        let isKeyframe = medium == .pictures && unit.isKeyframe
        let pts = unit.pts.nanoseconds
        return unit.withBytes {
            pack($0, isKeyframe: isKeyframe, pts: pts, index: index, soundsBefore: soundsBefore, reports: reports)
        }
    }

    private mutating func pack(
        _ bytes: UnsafeRawBufferPointer, isKeyframe: Bool, pts: Int64, index: UInt64, soundsBefore: UInt64,
        reports: PerMedium<[UInt8]>?
    ) -> MediaBlock? {
        let plan = packetizer.plan(bytes, isKeyframe: isKeyframe)
        guard plan.packetCount > 0 else { return nil }
        let block = ring.next()
        mostBytes = max(mostBytes, plan.byteCount)
        block.fill(
            index: index, isKeyframe: isKeyframe, unit: bytes, plannedBytes: plan.byteCount,
            reservedBytes: mostBytes, timestamp: clock.timestamp(ofPTS: pts), report: reports?[medium],
            packetizer: &packetizer, medium: medium, pictureTime: pictureClock.timestamp(ofPTS: pts),
            soundsBefore: soundsBefore,
            otherReport: reports.flatMap { $0[medium.other].isEmpty ? nil : $0[medium.other] })
        return block
    }
}

extension PackedTrack<SoundPacketizer> {
    /// Whether a unit of this size waits for the next one, because two such fit into one packet.
    func waits(_ byteCount: Int) -> Bool { packetizer.fits(byteCount, and: byteCount) }

    /// Appends a unit to the one that waits; false where it is not the next one, or does not fit.
    func join(_ unit: borrowing AccessUnit, to pair: inout SoundPair) -> Bool {
        guard pair.isFollowed(by: unit), packetizer.fits(pair.byteCount, and: unit.byteCount) else { return false }
        pair.append(unit)
        return true
    }

    /// A block with the one or two units of the pair; empties the pair.
    mutating func pack(
        _ pair: inout SoundPair, index: UInt64, soundsBefore: UInt64, reports: PerMedium<[UInt8]>?
    ) -> MediaBlock? {
        packetizer.firstBytes = pair.firstBytes
        defer {
            packetizer.firstBytes = nil
            pair.removeAll()
        }
        let pts = pair.pts
        return pair.withBytes {
            pack($0, isKeyframe: false, pts: pts, index: index, soundsBefore: soundsBefore, reports: reports)
        }
    }
}
