// SPDX-License-Identifier: Apache-2.0

import Synchronization
import Testing

@testable import FrameCore

/// Values that are not plain bytes.
private struct Faces: FrameMetadata, Equatable {
    static let metadataName = "faces"
    var names: [String]
    var count: UInt8
}

private struct Place: FrameMetadata, Equatable {
    static let metadataName = "place"
    var latitude: Double
    var text: String
}

/// Counts how many of it are alive.
private final class Living: Codable, Sendable {
    static let count = Atomic<Int>(0)
    init() { Self.count.add(1, ordering: .relaxed) }
    init(from decoder: any Decoder) throws { Self.count.add(1, ordering: .relaxed) }
    func encode(to encoder: any Encoder) throws {}
    deinit { Self.count.subtract(1, ordering: .relaxed) }
    static var alive: Int { count.load(ordering: .relaxed) }
}

private struct Traced: FrameMetadata {
    static let metadataName = "traced"
    var living: Living
}

@Suite(.serialized) struct MetadataTests {
    private let layout = MetadataLayout([Faces.self, Traced.self, Faces.self, Place.self])

    @Test func reservesOneAlignedSlotForEachKind() throws {
        #expect(layout.entries.count == 3, "Faces is named twice")
        let ends = try [
            #require(layout.slot(for: Faces.self)).offset, #require(layout.slot(for: Traced.self)).offset,
            #require(layout.slot(for: Place.self)).offset,
        ]
        #expect(ends == [0, 16, 24])
        #expect(layout.byteCount == 64)
        #expect(MetadataLayout.none.slot(for: Place.self) == nil)
    }

    @Test func setsReplacesAndClearsAValue() throws {
        let test = try TestPool(1, metadata: layout)
        let faces = try #require(layout.slot(for: Faces.self))
        let place = try #require(layout.slot(for: Place.self))
        let frame = try test.pool.lease()
        #expect(frame[faces] == nil)
        frame[faces] = Faces(names: ["Ada"], count: 1)
        frame[place] = Place(latitude: 52.5, text: "a text that does not fit into fifteen bytes")
        #expect(frame[faces] == Faces(names: ["Ada"], count: 1))
        frame[faces] = Faces(names: ["Ada", "Grace"], count: 2)
        #expect(frame[faces]?.names == ["Ada", "Grace"])
        frame[faces] = nil
        #expect(frame[faces] == nil)
        #expect(frame[place]?.text == "a text that does not fit into fifteen bytes")
    }

    @Test func goesWithAShareAndIsItsOwnThere() throws {
        let test = try TestPool(1, metadata: layout)
        let faces = try #require(layout.slot(for: Faces.self))
        let frame = try test.pool.lease()
        frame[faces] = Faces(names: ["Ada"], count: 1)
        let other = frame.share()
        other[faces]?.names.append("Grace")
        #expect(frame[faces]?.names == ["Ada"])
        #expect(other[faces]?.names == ["Ada", "Grace"])
    }

    @Test func beginsEmptyAfterTheBufferCameBack() throws {
        let test = try TestPool(1, metadata: layout)
        let faces = try #require(layout.slot(for: Faces.self))
        for number in 0..<20 {
            let frame = try test.pool.lease()
            #expect(frame[faces] == nil, "round \(number)")
            frame[faces] = Faces(names: ["\(number)"], count: 1)
        }
    }

    @Test func letsGoOfEachValueOnce() throws {
        let before = Living.alive
        do {
            let test = try TestPool(2, leasesPerBuffer: 1, metadata: layout)
            let slot = try #require(layout.slot(for: Traced.self))
            let frame = try test.pool.lease()
            frame[slot] = Traced(living: Living())
            frame[slot] = Traced(living: Living())
            #expect(Living.alive == before + 1, "the first was replaced")
            do {
                // Beyond the reserved leases too.
                var shares = FrameRing(capacity: 3)
                for _ in 0..<3 { shares.push(frame.share(), keeping: 3) }
                #expect(test.pool.leaseGrowths == 1)
            }
            #expect(Living.alive == before + 1)
            let copy = try test.pool.lease()
            copy[slot] = Traced(living: Living())
            copy.copyProperties(from: frame)
            #expect(Living.alive == before + 1, "its own went, the other is shared")
            _ = consume frame
            #expect(Living.alive == before + 1)
            let isSame = copy[slot] != nil
            #expect(isSame)
            _ = consume copy
            #expect(Living.alive == before)
        }
        #expect(Living.alive == before)
    }

    @Test func takesAwayWhatTheOtherFrameHasNot() throws {
        let test = try TestPool(2, metadata: layout)
        let place = try #require(layout.slot(for: Place.self))
        let bare = try test.pool.lease()
        let rich = try test.pool.lease()
        rich[place] = Place(latitude: 1, text: "x")
        rich.copyProperties(from: bare)
        #expect(rich[place] == nil)
        _ = consume bare
    }

    /// A record is two cache lines, the header the first of them.
    @Test func keepsHeaderAndLeaseInACacheLineEach() {
        #expect(MemoryLayout<ItemHeader>.size <= 64)
        #expect(MemoryLayout<LeaseRecord>.stride == 128)
    }

    @Test func liesInAccessUnitsToo() throws {
        let slab = try Slab(name: "units", byteCount: 4096, unitCount: 4, metadata: layout, stop: StopSignal())
        let faces = try #require(layout.slot(for: Faces.self))
        do {
            let unit = try slab.lease(byteCount: 10)
            #expect(unit[faces] == nil)
            unit[faces] = Faces(names: ["Ada"], count: 1)
            let other = unit.share()
            other[faces]?.names.append("Grace")
            #expect(unit[faces]?.names == ["Ada"])
            #expect(other[faces]?.names == ["Ada", "Grace"])
        }
        let next = try slab.lease(byteCount: 10)
        #expect(next[faces] == nil)
    }

    @Test func movesIntoAHeaderThatLacksIt() throws {
        let before = Living.alive
        do {
            let pool = try TestPool(1, metadata: layout)
            let slab = try Slab(name: "units", byteCount: 4096, unitCount: 4, metadata: layout, stop: StopSignal())
            let traced = try #require(layout.slot(for: Traced.self))
            let place = try #require(layout.slot(for: Place.self))
            let frame = try pool.pool.lease()
            frame.sequenceNumber = 7
            frame.orientation = .left
            frame.isDiscontinuity = true
            frame[traced] = Traced(living: Living())
            frame[place] = Place(latitude: 1, text: "of the frame")
            let unit = try slab.lease(byteCount: 10)
            unit[place] = Place(latitude: 2, text: "of the unit")
            unit.duration = MediaTime(nanoseconds: 5)
            unit.record.pointee.header.fill(from: &frame.record.pointee.header, layout)
            #expect(unit.sequenceNumber == 7 && unit.orientation == .left && unit.isDiscontinuity)
            #expect(unit.duration.nanoseconds == 5)
            #expect(unit[place]?.text == "of the unit")
            let (here, there) = (unit[traced] != nil, frame[traced] == nil)
            #expect(here && there)
            #expect(Living.alive == before + 1)
        }
        #expect(Living.alive == before)
    }
}
