// SPDX-License-Identifier: Apache-2.0

import CodedVideo
import FrameCore
import Testing

@Suite struct CodedVideoTests {
    private static func outline(_ bytes: [UInt8], _ coding: VideoCoding = .h264) -> UnitOutline {
        bytes.withUnsafeBytes { UnitOutline($0, coding) }
    }

    private static func sets(_ bytes: [UInt8], _ coding: VideoCoding) -> ParameterSets {
        bytes.withUnsafeBytes { ParameterSets(in: $0, coding) }
    }

    @Test func findsUnitsByAnyStartCode() {
        let stream: [UInt8] = [9, 9, 0, 0, 1, 0x67, 1, 0, 0, 0, 0, 1, 0x68, 0, 0, 3, 0, 0, 0, 1, 0, 0, 1, 0x65, 0, 0]
        var found: [[UInt8]] = []
        stream.withUnsafeBytes { bytes in
            NALUnits.forEach(in: bytes, .h264, .all) { _, range in
                found.append(Array(bytes[range]))
                return true
            }
        }
        #expect(found == [[0x67, 1], [0x68, 0, 0, 3], [0x65]])
    }

    @Test func knowsAnIDRPictureByItsFirstSlice() {
        let picture = Self.outline([0, 0, 0, 1, 9, 0xF0, 0, 0, 1, 0x65, 1])
        #expect(picture.hasUnits && picture.hasSlice && picture.entry == .clean && picture.hasOnlyAsides)
        #expect(Self.outline([0, 0, 1, 6, 5, 0, 0, 1, 0x41, 1, 0, 0, 1, 0x65]).entry == .none)
        let delimiter = Self.outline([0, 0, 1, 9])
        #expect(delimiter.hasUnits && !delimiter.hasSlice)
        for nothing in [[], [0], [0, 0, 1], [1, 2, 3, 4, 5], [0, 0, 0, 0, 0]] as [[UInt8]] {
            #expect(!Self.outline(nothing).hasUnits)
        }
    }

    /// H.265, table 7-1.
    @Test(
        arguments: [
            (19, .clean, .shown), (20, .clean, .shown), (21, .open, .shown), (16, .open, .shown), (18, .open, .shown),
            (1, .none, .shown), (0, .none, .shown), (6, .none, .decodableLeading), (7, .none, .decodableLeading),
            (8, .none, .skippedLeading), (9, .none, .skippedLeading),
        ] as [(UInt8, AccessUnit.Entry, NALKind.Place)])
    func knowsWhereDecodingOfH265CanBegin(type: UInt8, entry: AccessUnit.Entry, place: NALKind.Place) {
        let picture = Self.outline([0, 0, 0, 1, 35 << 1, 1, 0x50, 0, 0, 1, type << 1, 1, 0x80], .h265)
        #expect(picture.hasSlice && picture.entry == entry && picture.place == place && picture.hasOnlyAsides)
    }

    @Test func takesParameterSetsInFrontOfTheFirstSlice() {
        let unit: [UInt8] = [0, 0, 0, 1, 0x67, 1, 2, 0, 0, 0, 1, 0x68, 3, 0, 0, 1, 0x65, 9, 0, 0, 1, 0x67, 7]
        let sets = Self.sets(unit, .h264)
        #expect(sets.bytes == [0, 0, 0, 1, 0x67, 1, 2, 0, 0, 0, 1, 0x68, 3])
        #expect(sets.isComplete && sets.first(.pictureParameterSet) == [0x68, 3])
        #expect(unit.withUnsafeBytes { sets.hasAll(in: $0) })
        let other: [UInt8] = [0, 0, 1, 0x67, 1, 3, 0, 0, 1, 0x65, 9]
        #expect(!other.withUnsafeBytes { sets.hasAll(in: $0) })
        #expect(!Self.sets(other, .h264).isComplete)
    }

    /// A VPS, an SPS with one layer and the number of `sps`, a PPS with its number; then further bytes.
    private static func h265Sets(sps: UInt8, pps: UInt8, _ rest: UInt8) -> [UInt8] {
        // ue(v) of 0, 1, 2 at the top of a byte.
        let codes: [UInt8] = [0x80, 0x40, 0x60]
        let layer: [UInt8] = [1, 1, 0x60, 1, 1, 1, 1, 1, 1, 1, 1, 93]
        return [0, 0, 0, 1, 32 << 1, 1, 0x0C, 1, rest] + [0, 0, 0, 1, 33 << 1, 1, 0x01] + layer
            + [codes[Int(sps)] | 1, rest] + [0, 0, 0, 1, 34 << 1, 1, codes[Int(pps)] | 1, rest]
    }

    @Test func replacesASetOfTheSameKindAndNumber() {
        let first = Self.sets(Self.h265Sets(sps: 0, pps: 0, 7), .h265)
        #expect(first.isComplete)
        let other = Self.sets(Self.h265Sets(sps: 1, pps: 2, 7), .h265)
        let both = first.replaced(by: other)
        // One VPS of both, two SPS, two PPS.
        #expect(both.bytes.count == first.bytes.count + other.bytes.count - 9)
        #expect(!first.isSequenceReplaced(by: other))
        let newer = Self.sets(Self.h265Sets(sps: 0, pps: 0, 8), .h265)
        #expect(first.isSequenceReplaced(by: newer))
        #expect(first.replaced(by: newer) == newer)
        #expect(both.replaced(by: newer).bytes.count == both.bytes.count)
    }

    @Test func trustsNothingInParameterSets() {
        var seed: UInt64 = 7
        for _ in 0..<20_000 {
            var bytes: [UInt8] = []
            for _ in 0..<3 {
                seed = seed &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
                bytes += [0, 0, 1, [0x67, 0x68, 66, 68, 64][Int(seed >> 60) % 5]]
                bytes += (0..<Int(seed >> 33 & 31)).map { UInt8(truncatingIfNeeded: seed >> UInt64($0)) }
            }
            for coding in VideoCoding.allCases {
                let sets = Self.sets(bytes, coding)
                let merged = sets.replaced(by: sets)
                #expect(merged.bytes.count <= sets.bytes.count * 2)
                #expect(bytes.withUnsafeBytes { sets.hasAll(in: $0) })
            }
        }
    }

    @Test func readsMessagesWithoutEmulationPrevention() {
        let unit: [UInt8] = [0, 0, 1, 6, 4, 3, 1, 0, 0, 3, 5, 5, 1, 9, 0x80, 0, 0, 1, 0x65, 1]
        var found: [[UInt8]] = []
        unit.withUnsafeBytes { bytes in
            Messages.forEach(in: bytes, .h264) { type, payload in
                found.append([UInt8(type)] + payload)
                return true
            }
        }
        // Three bytes, one of them 0 0 with its 3 left out: 1, 0, 0. Then 5 is a type, 5 its size, which is too long.
        #expect(found == [[4, 1, 0, 0]])
    }

    @Test func putsStartCodesInPlaceOfSizes() {
        let unit: [UInt8] = [0, 0, 0, 2, 0x65, 1, 0, 0, 0, 1, 9]
        #expect(unit.withUnsafeBytes { NALUnits.withStartCodes($0) } == [0, 0, 0, 1, 0x65, 1, 0, 0, 0, 1, 9])
        for wrong in [[0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 9, 1], [255, 255, 255, 255, 1]] as [[UInt8]] {
            #expect(wrong.withUnsafeBytes { NALUnits.withStartCodes($0) } == nil)
        }
    }

    // MARK: Without NAL units

    /// Open bitstream units with their sizes.
    private static func units(_ all: (kind: UInt8, payload: [UInt8])...) -> [UInt8] {
        all.flatMap { [$0.kind << 3 | 2, UInt8($0.payload.count)] + $0.payload }
    }

    private static func passed(_ bytes: [UInt8], _ coding: UnitCoding) -> UnitOutline {
        bytes.withUnsafeBytes { UnitOutline($0, coding) }
    }

    /// AV1, 5.9.2: show_existing_frame, frame_type (2 bits), show_frame.
    @Test(
        arguments: [
            (0b0001_0000, .clean), (0b0000_0000, .none), (0b0011_0000, .none), (0b0101_0000, .none),
            (0b0111_0000, .none), (0b1000_0000, .none), (0b1001_0000, .none),
        ] as [(UInt8, AccessUnit.Entry)], [3, 6] as [UInt8])
    func knowsWhereDecodingOfAV1CanBegin(frame: (header: UInt8, entry: AccessUnit.Entry), kind: UInt8) {
        let unit = Self.units((2, []), (1, [0, 0, 0, 0x2A]), (kind, [frame.header, 9, 9]))
        let found = Self.passed(unit, .av1)
        #expect(found.hasUnits && found.hasSlice && found.hasSets && found.entry == frame.entry)
        let plain = Self.passed(Self.units((kind, [frame.header])), .av1)
        #expect(plain.hasSlice && !plain.hasSets && plain.entry == frame.entry)
    }

    @Test func judgesATemporalUnitByItsFirstFrame() {
        // A hidden frame before the one that is shown; a still picture, whose header begins otherwise.
        #expect(Self.passed(Self.units((6, [0b0010_0000]), (6, [0b0001_0000])), .av1).entry == .none)
        #expect(Self.passed(Self.units((1, [0b0001_1000]), (6, [0b1110_0000])), .av1).entry == .clean)
    }

    @Test func takesTheSequenceHeaderOfAV1() {
        let header: [UInt8] = [0x0A, 3, 1, 2, 3]
        let unit = [0x12, 0] + header + Self.units((6, [0x10]))
        func sets(_ bytes: [UInt8]) -> [UInt8] { bytes.withUnsafeBytes { UnitCoding.av1.parameterSets(in: $0) } }
        func container(_ bytes: [UInt8]) -> [UInt8] {
            bytes.withUnsafeBytes { UnitCoding.av1.parameterSets(ofContainer: $0) }
        }
        #expect(sets(unit) == header && container([0x81, 4, 0xC, 0] + header) == header && container(header) == header)
        #expect(sets(Self.units((6, [0x10]))).isEmpty && container([0x81, 4, 0xC, 0]).isEmpty && container([]).isEmpty)
        #expect(unit.withUnsafeBytes { UnitCoding.av1.hasAll(header, in: $0) })
        #expect(!unit.withUnsafeBytes { UnitCoding.av1.hasAll([0x0A, 3, 1, 2, 4], in: $0) })
        #expect(Self.units((6, [0x10])).withUnsafeBytes { UnitCoding.av1.hasAll(header, in: $0) })
    }

    /// Sizes beyond the end, a forbidden bit, a size without an end.
    @Test(arguments: [[], [0x32], [0x32, 9, 0x10], [0xB2, 1, 0x10], [0x32, 0x80, 0x80], [0x12, 0, 0x32, 0xFF]])
    func takesNothingFromDamagedAV1(bytes: [UInt8]) {
        let found = Self.passed(bytes, .av1)
        #expect(found.entry == .none && (!found.hasUnits || !found.hasSlice))
    }

    @Test func trustsNothingInAV1() {
        var generator = SystemRandomNumberGenerator()
        for _ in 0..<20_000 {
            let bytes = (0..<Int.random(in: 0...24, using: &generator)).map { _ in UInt8.random(in: 0...255) }
            let found = Self.passed(bytes, .av1)
            #expect(found.hasUnits || found.entry == .none)
            bytes.withUnsafeBytes { _ = UnitCoding.av1.parameterSets(ofContainer: $0) }
        }
    }

    @Test func knowsAJPEGByItsFirstMarker() {
        let found = Self.passed([0xFF, 0xD8, 0xFF, 0xE0], .jpeg)
        #expect(found.hasUnits && found.entry == .clean && found.hasSets && found.place == .shown)
        for nothing in [[], [0xFF], [0xFF, 0xD8], [0, 0xFF, 0xD8, 0xFF], [0x47, 1, 2, 3]] as [[UInt8]] {
            #expect(!Self.passed(nothing, .jpeg).hasUnits)
        }
        #expect(UnitCoding.jpeg.parameterSets(in: UnsafeRawBufferPointer(start: nil, count: 0)).isEmpty)
        for codec in [.h264, .h265, .mjpeg, .av1] as [Codec] { #expect(UnitCoding(codec)?.codec == codec) }
        #expect(UnitCoding(.aac) == nil && UnitCoding(Codec(rawValue: "vp9")) == nil)
    }
}
