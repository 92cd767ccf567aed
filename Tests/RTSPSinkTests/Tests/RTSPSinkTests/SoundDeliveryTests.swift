// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import RTSPSink

private struct Unit: QueuedUnit, Equatable {
    var number: Int
    var isKeyframe = false
    var standsAlone = false
    var byteCount = 10

    static func sound(_ number: Int) -> Unit { Unit(number: number, standsAlone: true) }
}

private let second: Int64 = 1_000_000_000

/// What readers get of the sound beside the pictures.
@Suite struct SoundDeliveryTests {
    // MARK: Queue

    private static let limits = ReaderQueue<Unit>.Limits(
        mostAge: 2 * second, mostBytes: 1000, mostStillness: 10 * second)

    private static func all(_ queue: inout ReaderQueue<Unit>) -> [Int] {
        var numbers: [Int] = []
        while let unit = queue.take(now: 0) { numbers.append(unit.number) }
        return numbers
    }

    @Test func soundBeginsWithTheFirstKeyframe() {
        var queue = ReaderQueue<Unit>(limits: Self.limits)
        #expect(queue.add(.sound(0), now: 0) == .dropped)
        #expect(queue.add(Unit(number: 1, isKeyframe: true), now: 0) == .queued)
        #expect(queue.add(.sound(2), now: 0) == .queued)
        #expect(Self.all(&queue) == [1, 2])
        #expect(queue.droppedAloneCount == 0)
    }

    @Test func soundGoesOnWhilePicturesWaitForAKeyframe() {
        var queue = ReaderQueue<Unit>(limits: Self.limits, awaitsKeyframe: false)
        _ = queue.add(Unit(number: 0), now: 0)
        _ = queue.add(.sound(1), now: 0)
        #expect(queue.add(Unit(number: 2), now: 2 * second + 1) == .dropped)
        #expect(queue.awaitsKeyframe && queue.isEmpty)
        #expect(queue.droppedCount == 2 && queue.droppedAloneCount == 1)
        #expect(queue.add(.sound(3), now: 3 * second) == .queued)
        #expect(queue.add(Unit(number: 4), now: 3 * second) == .dropped)
        #expect(queue.add(Unit(number: 5, isKeyframe: true), now: 3 * second) == .queued)
        #expect(queue.add(.sound(6), now: 3 * second) == .queued)
        #expect(Self.all(&queue) == [3, 5, 6])
        #expect(queue.byteCount == 0)
    }

    @Test func theCutIsAtAKeyframeWhateverSoundIsBetween() {
        var queue = ReaderQueue<Unit>(limits: Self.limits, awaitsKeyframe: false)
        for (unit, time) in [
            (Unit(number: 0), 0), (.sound(1), 0), (Unit(number: 2, isKeyframe: true), second), (.sound(3), second),
            (Unit(number: 4), 2 * second + 1),
        ] {
            _ = queue.add(unit, now: time)
        }
        #expect(Self.all(&queue) == [2, 3, 4])
        #expect(queue.droppedCount == 1 && queue.droppedAloneCount == 1)
    }

    /// Nothing but sound: no keyframe will ever come.
    @Test func aReaderOfSoundAloneGoesOnAfterALoss() {
        var queue = ReaderQueue<Unit>(limits: Self.limits, awaitsKeyframe: false)
        _ = queue.add(.sound(0), now: 0)
        #expect(queue.add(.sound(1), now: 3 * second) == .dropped)
        #expect(queue.add(.sound(2), now: 3 * second) == .queued)
        queue.missed(0, alone: 5)
        #expect(queue.add(.sound(3), now: 3 * second) == .queued)
        #expect(Self.all(&queue) == [3])
        #expect(queue.droppedAloneCount == 8 && queue.droppedCount == 0)
    }

    // MARK: Kept units

    @Test func keptSoundDoesNotCountAsPictures() {
        var kept = KeptUnits<Unit>(limits: .init(mostUnits: 2, mostAlone: 3))
        kept.add(.sound(0), now: 0)
        kept.add(Unit(number: 1, isKeyframe: true), now: 0)
        for number in 2...4 { kept.add(.sound(number), now: 0) }
        kept.add(Unit(number: 5), now: 0)
        #expect(kept.current(now: 0).map(\.number) == [1, 2, 3, 4, 5])
        kept.add(.sound(6), now: 0)
        #expect(kept.current(now: 0).isEmpty)
    }

    // MARK: Gate

    @Test func soundIsNotHeardBeforeTheFirstPictureIsShown() {
        var gate = SoundGate(hasPictures: true, hasSound: true)
        let begin: UInt32 = .max - 100
        #expect(gate.admits(.sound, isKeyframe: false, time: begin) == false)
        // The queue drops what comes before a keyframe.
        #expect(gate.admits(.pictures, isKeyframe: false, time: begin) == true)
        #expect(gate.admits(.sound, isKeyframe: false, time: begin) == false)
        #expect(gate.admits(.pictures, isKeyframe: true, time: begin) == true)
        #expect(gate.admits(.sound, isKeyframe: false, time: begin - 1) == false)
        #expect(gate.admits(.pictures, isKeyframe: true, time: begin &+ 90_000) == true)
        #expect(gate.admits(.sound, isKeyframe: false, time: begin &+ 200) == true)
        // Once open, whatever the time: 2³¹ ticks are 6.6 hours.
        #expect(gate.admits(.sound, isKeyframe: false, time: begin &+ (1 << 31)) == true)
        #expect(gate.admits(.sound, isKeyframe: false, time: begin - 1) == true)
    }

    @Test func aReaderGetsNothingOfAMediumThatItHasNotSetUp() {
        var pictures = SoundGate(hasPictures: true, hasSound: false)
        #expect(pictures.admits(.pictures, isKeyframe: true, time: 0) == true)
        #expect(pictures.admits(.sound, isKeyframe: false, time: 1) == false)
        var sound = SoundGate(hasPictures: false, hasSound: true)
        #expect(sound.admits(.sound, isKeyframe: false, time: 0) == true)
        #expect(sound.admits(.pictures, isKeyframe: true, time: 1) == false)
    }

    // MARK: Kept group

    private static func add(
        _ store: GroupStore, _ index: Int, _ medium: Medium, time: UInt32, isKeyframe: Bool = false, sounds: Int = 0
    ) -> GroupStore.Bound? {
        let unit = GroupStore.Unit(
            index: UInt64(index), offset: 0, byteCount: 0, timestamp: medium == .sound ? 7 : time,
            firstSequenceNumber: UInt16(index), isKeyframe: isKeyframe, medium: medium, pictureTime: time,
            soundsBefore: UInt64(sounds))
        return [UInt8](repeating: UInt8(index), count: 10).withUnsafeBytes { store.add(unit, $0) }
    }

    @Test func aGroupHasTheSoundBesideItsPictures() throws {
        let store = try GroupStore(limits: .init(mostBytes: 1000, mostTicks: 90_000, hasSound: true))
        #expect(Self.add(store, 0, .sound, time: 0) == nil)
        #expect(store.backlog == nil && store.count == 0)
        #expect(Self.add(store, 1, .pictures, time: 100, isKeyframe: true, sounds: 1) == nil)
        // Heard before the keyframe is shown.
        #expect(Self.add(store, 2, .sound, time: 99, sounds: 1) == nil)
        #expect(store.backlog?.firstSound == nil)
        #expect(Self.add(store, 3, .sound, time: 100, sounds: 2) == nil)
        #expect(Self.add(store, 4, .sound, time: 200, sounds: 3) == nil)
        #expect(store.backlog?.firstSound?.index == 3)
        #expect(store.ticks == 100 && store.count == 4)
        // Its own clock does not bound it, that of the pictures does.
        #expect(Self.add(store, 5, .sound, time: 100 + 90_001, sounds: 4) == .seconds)
        #expect(Self.add(store, 6, .pictures, time: 200_000, isKeyframe: true, sounds: 5) == nil)
        #expect(store.backlog?.keyframe.index == 6 && store.backlog?.firstSound == nil)
    }

    @Test func aGroupHasRoomForSoundBesideThatForPictures() {
        let without = GroupStore.Limits(seconds: 12, megabytes: 32)
        let with = GroupStore.Limits(seconds: 12, megabytes: 32, hasSound: true)
        #expect(without.mostUnits == 3000 && with.mostUnits == 3000 + 4800)
    }
}
