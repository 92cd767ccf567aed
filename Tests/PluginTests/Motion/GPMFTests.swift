// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Foundation
import Testing

@testable import Motion

/// The greatest difference of any part.
func distance(_ a: SIMD3<Float>, _ b: SIMD3<Float>) -> Float {
    let difference = a - b
    return max(abs(difference.x), abs(difference.y), abs(difference.z))
}

/// Files that Tests/Fixtures/motion/make.py wrote.
enum MotionFixture {
    static func path(_ name: String) -> String {
        URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().appendingPathComponent("Fixtures/motion/\(name)").path
    }

    static func bytes(_ name: String) throws -> [UInt8] {
        Array(try Data(contentsOf: URL(fileURLWithPath: path(name))))
    }
}

@Suite struct GPMFTests {
    private func read(_ bytes: [UInt8]) -> (GPMF.Payload, MotionFault?) {
        var payload = GPMF.Payload()
        do throws(MotionFault) { try GPMF.read(bytes.span, into: &payload) } catch { return (payload, error) }
        return (payload, nil)
    }

    /// An item of a key, a type, the bytes of a structure, and data.
    private func item(_ key: String, _ type: Character, _ size: Int, _ data: [UInt8]) -> [UInt8] {
        let count = size > 0 ? data.count / size : 0
        return Array(key.utf8) + [type.asciiValue ?? 0, UInt8(size), UInt8(count >> 8), UInt8(count & 255)] + data
            + [UInt8](repeating: 0, count: (4 - data.count % 4) % 4)
    }

    private func nest(_ key: String, _ data: [UInt8]) -> [UInt8] {
        Array(key.utf8) + [0, 1, UInt8(data.count >> 8), UInt8(data.count & 255)] + data
    }

    @Test func readsAPayloadThatAnotherProgramWrote() throws {
        let (payload, fault) = read(try MotionFixture.bytes("hero.bin"))
        #expect(fault == nil)
        #expect(payload.rotationRates.count == 100 && payload.accelerations.count == 50)
        #expect(payload.rotationRates[7] == SIMD3(0.1, 0.2, 0.307))
        #expect(payload.accelerations[3] == SIMD3(0, -9.81, 0.03))
        // ORIN YxZ, ORIO ZXY: the sensor's z is up, its −y is left and its x backward.
        #expect(payload.axes.text == "Yzx")
    }

    @Test(arguments: [
        (6, "Hero6 Black", "Yzx"), (5, "Camera", "yxz"), (7, "Hero7 Silver", "xyZ"),
    ]) func knowsTheAxesOfOldModels(_: Int, model: String, axes: String) {
        let bytes = nest(
            "DEVC",
            item("DVNM", "c", 1, Array(model.utf8))
                + nest("STRM", item("GYRO", "s", 6, [0, 1, 0, 2, 0, 3])))
        let (payload, fault) = read(bytes)
        #expect(fault == nil && payload.rotationRates == [SIMD3(1, 2, 3)] && payload.axes.text == axes)
    }

    @Test func takesTheMatrixBeforeAnythingElse() {
        func float(_ value: Float) -> [UInt8] { (0..<4).map { UInt8(value.bitPattern >> (24 - 8 * UInt32($0)) & 255) } }
        let rows: [Float] = [0, 0, 1, 1, 0, 0, 0, 1, 0]
        let bytes = nest(
            "STRM",
            item("MTRX", "f", 36, rows.flatMap(float)) + item("ORIN", "c", 1, Array("XYZ".utf8))
                + item("SCAL", "s", 2, [0, 2, 0, 4, 0, 8]) + item("ACCL", "s", 6, [0, 2, 0, 4, 0, 8]))
        let (payload, fault) = read(bytes)
        #expect(fault == nil && payload.accelerations == [SIMD3(1, 1, 1)] && payload.axes.text == "xzy")
    }

    @Test func everyCutIsAFaultOrLess() throws {
        let whole = try MotionFixture.bytes("hero.bin")
        for end in whole.indices {
            let (payload, fault) = read(Array(whole[..<end]))
            #expect(end == 0 || fault != nil, "cut at \(end)")
            #expect(payload.rotationRates.isEmpty || payload.rotationRates.count == 100)
        }
    }

    @Test func everyByteMayBeAnything() throws {
        let whole = try MotionFixture.bytes("hero.bin")
        for index in whole.indices.prefix(300) {
            for value: UInt8 in [0, 1, 127, 255] {
                var bytes = whole
                bytes[index] = value
                _ = read(bytes)
            }
        }
    }

    @Test func hugeCountsAndDepthsEnd() {
        let huge = Array("GYRO".utf8) + [UInt8(ascii: "s"), 255, 255, 255]
        #expect(read(huge).1?.what == "has an item 'GYRO' of 16711425 bytes, but room for only 0 bytes")
        var deep = item("GYRO", "s", 6, [0, 1, 0, 2, 0, 3])
        for _ in 0..<50 { deep = nest("DEVC", deep) }
        #expect(read(deep).1?.what == "has more than 8 levels of items")
        let some = item("GYRO", "b", 3, [UInt8](repeating: 1, count: 3 * 40_000))
        #expect(read(some + some).1?.what == "has more than 65536 values in one payload")
        #expect(read(item("GYRO", "s", 4, [0, 1, 0, 2])).1?.what.contains("must hold 3 numbers") == true)
        #expect(read(item("GYRO", "c", 6, [0, 1, 0, 2, 0, 3])).1?.what.contains("which is not a number type") == true)
        #expect(read([1, 2, 3]).1 == MotionFault("must have an item of at least 8 bytes, but has only 3 bytes"))
        // A structure of no bytes, any number of times.
        #expect(read(Array("GYRO".utf8) + [UInt8(ascii: "s"), 0, 255, 255]).1 != nil)
    }

    @Test func aDivisorOfZeroMakesNoNumber() {
        var gate = SampleGate(axes: .same)
        let bytes = nest("STRM", item("SCAL", "s", 2, [0, 0]) + item("GYRO", "s", 6, [0, 1, 0, 0, 0, 3]))
        let (payload, fault) = read(bytes)
        #expect(fault == nil)
        var sample = MotionSample(time: .zero)
        sample.contents = .rotationRate
        sample.rotationRate = payload.rotationRates[0]
        #expect(gate.pass(sample) == nil)
    }
}

@Suite struct CAMMTests {
    private func packet(_ kind: Int, _ values: [Float]) -> [UInt8] {
        [0, 0, UInt8(kind & 255), UInt8(kind >> 8)]
            + values.flatMap { value in (0..<4).map { UInt8(value.bitPattern >> (8 * UInt32($0)) & 255) } }
    }

    private func sample(_ bytes: [UInt8]) throws(MotionFault) -> MotionSample? {
        try CAMM.sample(in: bytes.span, at: MediaTime(seconds: 1))
    }

    @Test func readsWhatIsMotion() throws {
        #expect(try sample(packet(2, [1, 2, 3]))?.rotationRate == SIMD3(1, 2, 3))
        #expect(try sample(packet(3, [1, 2, 3]))?.acceleration == SIMD3(1, 2, 3))
        let turn = try #require(try sample(packet(0, [0, 0, .pi / 2])))
        #expect(turn.contents == .attitude && abs(turn.attitude.z - 0.70710678) < 1e-6)
        #expect(try sample(packet(2, [1, 2, 3]))?.time == MediaTime(seconds: 1))
    }

    @Test(arguments: [1, 4, 5, 6, 7, 8, 255, 65535]) func otherKindsAreNoMotion(kind: Int) throws {
        #expect(try sample(packet(kind, [Float](repeating: 0, count: 14))) == nil)
    }

    @Test func cutsAreFaults() {
        for kind in 0...7 {
            let whole = packet(kind, [Float](repeating: 1, count: 14))
            let sizes = [16, 12, 16, 16, 16, 28, 60, 16]
            for end in 0..<sizes[kind] { #expect(throws: MotionFault.self) { try sample(Array(whole[..<end])) } }
        }
    }

    @Test(arguments: [Float.nan, .infinity, -.infinity, 1e30, 1e-37])
    func impossibleNumbersAreLeftOut(value: Float) throws {
        for kind in [0, 2, 3] {
            var gate = SampleGate(axes: .same)
            let found = try #require(try sample(packet(kind, [value, 0, 0])))
            #expect((gate.pass(found) == nil) == (value != 1e-37))
        }
    }
}
