// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// The last seconds of a stream, in whole groups of pictures, so that a recording can begin before it is asked for.
///
/// It is one piece of memory, allocated and touched in `init`. Adding copies the bytes and allocates nothing. Units
/// lie one after the other. A unit that does not fit before the end of the memory goes to its start. When there is no
/// room, the oldest group is removed.
///
/// Used by one thread.
final class PreEventRing {
    /// What was full when a group was removed before it was old enough.
    struct Lack: Equatable {
        /// Bytes; otherwise places for units.
        var isOfBytes: Bool
        /// Whether the group was not complete, so that nothing is left until the next keyframe.
        var isOfOneGroup: Bool
    }

    private struct Entry {
        var unit: RecordedUnit
        var offset: Int
        var count: Int
    }

    private let seconds: MediaTime
    let byteCapacity: Int
    private let bytes: UnsafeMutableRawPointer
    private let entries: UnsafeMutablePointer<Entry?>
    let unitCapacity: Int
    /// Index of the oldest entry; the others follow it and wrap around at the end.
    private var first = 0
    private(set) var count = 0
    /// How many units were removed before the oldest.
    private(set) var removed = 0
    /// How many units are before the second keyframe; nil when there is none.
    private var firstGroup: Int?
    private var latest = MediaTime.zero
    /// Whether everything is kept that there is room for, however old it is.
    var isHeld = false
    /// Where the next unit's bytes go.
    private var writeOffset = 0
    /// Why a group was first removed before it was `seconds` old; nil where none was.
    private(set) var lack: Lack?

    /// - Parameters:
    ///   - seconds: How far back the ring should reach.
    ///   - byteCapacity: Bytes of access units it can hold.
    ///   - unitCapacity: How many access units it can hold.
    init(seconds: Double, byteCapacity: Int, unitCapacity: Int) {
        self.seconds = MediaTime(seconds: seconds)
        self.byteCapacity = byteCapacity
        self.unitCapacity = unitCapacity
        bytes = .allocate(byteCount: byteCapacity, alignment: 64)
        // Touches all pages now, so that no frame has to wait for one.
        bytes.initializeMemory(as: UInt8.self, repeating: 0, count: byteCapacity)
        entries = .allocate(capacity: unitCapacity)
        entries.initialize(repeating: nil, count: unitCapacity)
    }

    deinit {
        entries.deallocate()
        bytes.deallocate()
    }

    /// Whether it is empty. Otherwise it begins with a keyframe.
    var isEmpty: Bool { count == 0 }
    /// The first unit's PTS; nil when empty.
    var begin: MediaTime? { isEmpty ? nil : entries[first]!.unit.pts }
    /// The latest PTS of all units; nil when empty.
    var end: MediaTime? { isEmpty ? nil : latest }

    /// Copies a unit, and removes groups that are no longer needed.
    func add(_ unit: RecordedUnit, _ payload: UnsafeRawBufferPointer) {
        if isEmpty, !unit.isKeyframe { return }
        guard let offset = makeRoom(payload.count, before: unit), !(isEmpty && !unit.isKeyframe) else { return }
        if payload.count > 0 { (bytes + offset).copyMemory(from: payload.baseAddress!, byteCount: payload.count) }
        entries[(first + count) % unitCapacity] = Entry(unit: unit, offset: offset, count: payload.count)
        latest = isEmpty ? unit.pts : max(latest, unit.pts)
        if unit.isKeyframe, count > 0, firstGroup == nil { firstGroup = count }
        count += 1
        writeOffset = offset + payload.count
        while !isHeld, let firstGroup, entries[(first + firstGroup) % unitCapacity]!.unit.pts <= unit.pts - seconds {
            remove(firstGroup)
        }
    }

    /// Forgets all units.
    func removeAll() { remove(count) }

    /// How many units were ever added.
    var added: Int { removed + count }

    /// Calls `body` with each unit from `start` on, oldest first.
    ///
    /// - Parameter start: How many of all units that were ever added came before the first.
    func forEach(from start: Int = 0, _ body: (RecordedUnit, UnsafeRawBufferPointer) throws -> Void) rethrows {
        for index in max(start - removed, 0)..<max(start - removed, count) {
            let (unit, bytes) = unit(at: index)
            try body(unit, bytes)
        }
    }

    /// Where the group of pictures begins that the unit at `index` is part of, or the oldest group where that has gone.
    /// Both count all units that were ever added.
    func groupStart(of index: Int) -> Int {
        var place = min(index - removed, count - 1)
        while place > 0, !entries[(first + place) % unitCapacity]!.unit.isKeyframe { place -= 1 }
        return removed + max(place, 0)
    }

    /// The unit at `index`, from the oldest on.
    func unit(at index: Int) -> (RecordedUnit, UnsafeRawBufferPointer) {
        let entry = entries[(first + index) % unitCapacity]!
        return (entry.unit, UnsafeRawBufferPointer(start: bytes + entry.offset, count: entry.count))
    }

    // MARK: Room

    /// Removes as many of the oldest groups as necessary, and returns where the `size` bytes of `unit` fit; nil when
    /// they never fit.
    private func makeRoom(_ size: Int, before unit: RecordedUnit) -> Int? {
        guard size <= byteCapacity else {
            note(Lack(isOfBytes: true, isOfOneGroup: true))
            remove(count)
            return nil
        }
        while true {
            if count < unitCapacity, let offset = freeOffset(size) { return offset }
            note(Lack(isOfBytes: count < unitCapacity, isOfOneGroup: firstGroup == nil && !unit.isKeyframe))
            remove(firstGroup ?? count)
        }
    }

    private func note(_ found: Lack) { if !isHeld { lack = lack ?? found } }

    private func freeOffset(_ size: Int) -> Int? {
        guard count > 0 else { return 0 }
        let oldest = entries[first]!.offset
        if writeOffset > oldest {
            if writeOffset + size <= byteCapacity { return writeOffset }
            return size <= oldest ? 0 : nil
        }
        return writeOffset + size <= oldest ? writeOffset : nil
    }

    /// Removes the oldest units: a whole group, or all.
    private func remove(_ oldest: Int) {
        first = (first + oldest) % unitCapacity
        count -= oldest
        removed += oldest
        if count == 0 { writeOffset = 0 }
        var index = 1
        while index < count, !entries[(first + index) % unitCapacity]!.unit.isKeyframe { index += 1 }
        firstGroup = index < count ? index : nil
    }
}

// MARK: - How much room

extension PreEventRing {
    /// How many seconds the ring has room for. At times it keeps one group of pictures more than was asked for.
    static func seconds(_ options: RecorderOptions) -> Double { options.preEventSeconds + 4 }

    /// Bytes for the ring's payloads, with room for bitrates above the encoder's target.
    static func bytes(_ format: EncodedFormat, _ options: RecorderOptions) -> Int {
        let kbps = format.bitrateKbps ?? format.audio.flatMap { $0.bitRate > 0 ? $0.bitRate / 1000 + 1 : nil }
        let fromRate = kbps.map { Double($0) * 1000 / 8 * seconds(options) * 1.5 }
        return max(10_000, Int(options.preEventMegabytes.map { $0 * 1_000_000 } ?? fromRate ?? 64_000_000))
    }

    private static func packetsPerSecond(_ sound: AudioTrackFormat) -> Double {
        Double(sound.sampleRate) / Double(max(sound.samplesPerPacket, 64))
    }

    /// Room for the seconds before a recording.
    static func ofPast(_ format: EncodedFormat, _ options: RecorderOptions) -> PreEventRing {
        // With more than a thousand pictures a second the ring holds fewer seconds, and the recorder reports that.
        let rate =
            format.video.map(\.frameRate.value).map { $0 == 0 ? 120 : min(max(30, $0), 1000) }
            ?? format.audio.map(packetsPerSecond) ?? 120
        return PreEventRing(
            seconds: options.preEventSeconds, byteCapacity: bytes(format, options),
            unitCapacity: 1024 + Int(rate * seconds(options) * 2))
    }

    /// Room for half a second of sound that leads.
    static func leadIn(_ sound: AudioTrackFormat) -> PreEventRing {
        PreEventRing(
            seconds: 0.5, byteCapacity: max(min(sound.bitRate, 10_000_000), 640_000) / 8,
            unitCapacity: 64 + Int(packetsPerSecond(sound)))
    }
}
