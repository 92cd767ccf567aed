// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import FileSource

/// How many pictures an H.264 stream says its decoder keeps.
@Suite struct H264PictureCountTests {
    /// Of x264: high profile, 1280x720, four references, three B-frames in a pyramid; `max_dec_frame_buffering` is 4.
    private static let set: [UInt8] = [
        0x67, 0x64, 0x00, 0x1F, 0xAC, 0xD9, 0x40, 0x50, 0x05, 0xBB, 0x01, 0x29, 0x40, 0x00, 0x00, 0x03, 0x00, 0x40,
        0x00, 0x00, 0x0F, 0x03, 0xC6, 0x0C, 0x65, 0x80,
    ]

    private func count(_ extradata: [UInt8]) -> Int? { extradata.withUnsafeBytes { H264PictureCount.ofStream($0) } }

    private func avcC(_ set: [UInt8]) -> [UInt8] {
        [1, set[1], set[2], set[3], 255, 225, UInt8(set.count >> 8), UInt8(set.count & 255)] + set + [1, 0, 0]
    }

    @Test func readsWhatTheStreamDeclares() {
        #expect(count(avcC(Self.set)) == 4)
        #expect(count([0, 0, 0, 1] + Self.set) == 4)
    }

    @Test func saysNothingOfAStreamThatSaysNothing() {
        #expect(count([]) == nil)
        #expect(count([0, 0, 0, 1, 0x68, 0, 0, 0, 0]) == nil)
        // Constrained baseline, 320x240, without VUI.
        #expect(count([0, 0, 1, 0x67, 0x42, 0xC0, 0x1E, 0xDA, 0x05, 0x07, 0xC4]) == nil)
    }

    @Test func believesNoSetThatIsCutOrDamaged() {
        for length in 0..<Self.set.count - 1 { #expect(count(avcC(Array(Self.set.prefix(max(length, 4))))) == nil) }
        for byte in Self.set.indices {
            for bit in 0..<8 {
                var damaged = Self.set
                damaged[byte] ^= 1 << bit
                #expect((0...16).contains(count(avcC(damaged)) ?? 0))
            }
        }
        #expect(count([UInt8](repeating: 0, count: 5000)) == nil)
        #expect(count([0, 0, 1, 0x67] + [UInt8](repeating: 0, count: 5000)) == nil)
        // Ones are the shortest counts of 0, and say all there is to say.
        #expect(count([0, 0, 1, 0x67] + [UInt8](repeating: 255, count: 5000)) == 0)
    }
}
