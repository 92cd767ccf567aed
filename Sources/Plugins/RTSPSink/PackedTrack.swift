// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// Packs the units of one medium into blocks of a ring. [stage thread]
struct PackedTrack<Packetizer: UnitPacketizer> {
    private let medium: Medium
    private let clock: RTPClock
    /// Of the pictures, by which units of both media are compared.
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
    ///   - index: Of the block in the stream.
    ///   - soundsBefore: How many blocks of sound came before.
    ///   - reports: The sender reports that go before the unit; nil where none are due.
    mutating func pack(
        _ unit: borrowing AccessUnit, index: UInt64, soundsBefore: UInt64, reports: PerMedium<[UInt8]>?
    ) -> MediaBlock? {
        let isKeyframe = medium == .pictures && unit.isKeyframe
        let pts = unit.pts.nanoseconds
        return unit.withBytes { bytes -> MediaBlock? in
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
}
