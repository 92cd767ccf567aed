// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// The packets of everything since the newest keyframe, in one piece of memory. A reader starts from it where the
/// source cannot make keyframes on request.
///
/// The stage thread adds units, and a keyframe starts a new group. Each reader copies the units out one after the
/// other, at its own position. A group that exceeds its limits no longer serves new readers. A reader that is in the
/// middle of it may go on to its end.
///
/// Not safe by itself. It is only used under the hub's lock, which is the invariant behind `@unchecked Sendable`.
final class GroupStore: @unchecked Sendable {
    struct Limits: Sendable, Equatable {
        var mostBytes: Int
        /// From the keyframe to the newest unit, in ticks of the pictures' clock.
        var mostTicks: Int64
        /// Whether there are units of sound too.
        var hasSound: Bool

        init(mostBytes: Int, mostTicks: Int64, hasSound: Bool = false) {
            self.mostBytes = mostBytes
            self.mostTicks = mostTicks
            self.hasSound = hasSound
        }

        /// - Parameters:
        ///   - seconds: Of media time, at most 3600.
        ///   - megabytes: Of packets, at most 4096.
        init(seconds: Double, megabytes: Double, hasSound: Bool = false) {
            self.init(
                mostBytes: Int(megabytes * 1_000_000), mostTicks: Int64(seconds * 90_000), hasSound: hasSound)
        }

        /// Room for 250 pictures a second, and 400 units of sound: those of Opus with 2.5 ms each.
        var mostUnits: Int { max(1024, Int(mostTicks / 360)) + (hasSound ? max(1024, Int(mostTicks / 225)) : 0) }
        /// Memory for all of it.
        var byteCount: Int { mostBytes + mostUnits * MemoryLayout<Unit>.stride }
    }

    /// Where a unit lies, and the properties that a reader needs.
    struct Unit: Equatable {
        var index: UInt64
        var offset: Int
        var byteCount: Int
        var timestamp: UInt32
        var firstSequenceNumber: UInt16
        var isKeyframe: Bool
        var medium = Medium.pictures
        /// In ticks of the pictures' clock; nil for the same as `timestamp`.
        var pictureTime: UInt32?
        /// How many units of sound came before in the stream.
        var soundsBefore: UInt64 = 0

        /// When it is shown or heard, in the pictures' clock.
        var time: UInt32 { pictureTime ?? timestamp }
    }

    /// The group as a new reader finds it.
    struct Backlog {
        var keyframe: Unit
        /// The first sound that is not heard before the keyframe is shown; nil where there is none yet.
        var firstSound: Unit?
        /// Mean bytes for each second of media.
        var bytesPerSecond: Int
    }

    /// The limit that a group has reached.
    enum Bound: String, Sendable { case seconds, bytes, units }

    let limits: Limits
    private let memory: UnsafeMutableRawBufferPointer
    private var units: [Unit] = []
    private var firstSound: Unit?
    private(set) var byteCount = 0
    /// From the keyframe to the newest unit.
    private(set) var ticks: Int64 = 0
    private(set) var bound: Bound?

    /// [control thread] Reserves address space. A page takes memory once a unit is written there.
    ///
    /// - Throws: ``FrameHostError`` `.exhausted`.
    init(limits: Limits) throws {
        self.limits = limits
        let base = try AnonymousMemory().allocate(byteCount: limits.mostBytes, touching: false)
        memory = UnsafeMutableRawBufferPointer(start: base, count: limits.mostBytes)
        units.reserveCapacity(limits.mostUnits)
    }

    deinit { AnonymousMemory().free(memory.baseAddress!, byteCount: memory.count) }

    /// Where a new reader starts; nil where something since the keyframe is missing.
    var backlog: Backlog? {
        guard bound == nil, let keyframe = units.first else { return nil }
        return Backlog(
            keyframe: keyframe, firstSound: firstSound,
            bytesPerSecond: byteCount / Int(max(1, ticks / RTPClock.ticksPerSecond)))
    }
    /// Units of the group so far.
    var count: Int { units.count }

    /// Copies a new unit. Allocates nothing.
    ///
    /// - Parameter unit: Everything but `offset` and `byteCount`.
    /// - Returns: The limit that the group reaches with this unit; nil where the unit is kept, and for every unit
    ///   after the limit was reached.
    func add(_ unit: Unit, _ bytes: UnsafeRawBufferPointer) -> Bound? {
        if unit.isKeyframe {
            units.removeAll(keepingCapacity: true)
            (byteCount, ticks, bound, firstSound) = (0, 0, nil, nil)
        }
        guard bound == nil, unit.isKeyframe || !units.isEmpty else { return nil }
        let first = units.first ?? unit
        let distance = Int64(Int32(bitPattern: unit.time &- first.time))
        if bytes.count > limits.mostBytes - byteCount {
            bound = .bytes
        } else if distance.magnitude > UInt64(limits.mostTicks) {
            bound = .seconds
        } else if units.count >= limits.mostUnits {
            bound = .units
        } else {
            var placed = unit
            (placed.offset, placed.byteCount) = (byteCount, bytes.count)
            UnsafeMutableRawBufferPointer(rebasing: memory[byteCount...]).copyMemory(from: bytes)
            units.append(placed)
            if unit.medium == .sound, distance >= 0, firstSound == nil { firstSound = placed }
            byteCount += bytes.count
            ticks = max(ticks, distance)
        }
        return bound
    }

    /// The unit with this index, or the keyframe where that is newer; nil where the group does not have it.
    func unit(from index: UInt64) -> Unit? {
        guard let first = units.first else { return nil }
        guard index > first.index else { return first }
        let place = index - first.index
        return place < UInt64(units.count) ? units[Int(place)] : nil
    }

    /// The packets of a unit of ``unit(from:)``, until the next one is added.
    func bytes(of unit: Unit) -> UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(rebasing: memory[unit.offset..<unit.offset + unit.byteCount])
    }
}
