// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import FrameCore

/// Vectors of "Encoding" in the documentation of Protocol Buffers, and lengths around a byte's.
@Suite struct ProtoBytesTests {
    private func bytes(_ write: (inout ProtoBytes) -> Void) -> [UInt8] {
        var proto = ProtoBytes()
        write(&proto)
        return proto.bytes
    }

    @Test func writesWhatTheDocumentationShows() {
        #expect(bytes { $0.number(1, UInt64(150)) } == [0x08, 0x96, 0x01])
        #expect(bytes { $0.text(2, "testing") } == [0x12, 0x07, 0x74, 0x65, 0x73, 0x74, 0x69, 0x6e, 0x67])
        #expect(bytes { $0.message(3) { $0.number(1, UInt64(150)) } } == [0x1a, 0x03, 0x08, 0x96, 0x01])
        #expect(
            bytes { $0.number(1, Int64(-2)) }
                == [0x08, 0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01])
        #expect(bytes { $0.fixed64(1, 0x0102_0304_0506_0708) } == [0x09, 8, 7, 6, 5, 4, 3, 2, 1])
    }

    @Test(arguments: [0, 1, 127, 128, 129, 16_383, 16_384, 70_000])
    func aMessageOfAnyLengthIsReadAgain(count: Int) throws {
        let text = String(repeating: "x", count: count)
        let written = bytes {
            $0.message(60) { outer in
                outer.message(4) { $0.text(5, text) }
                outer.number(1, UInt64(7))
            }
            $0.number(8, UInt64(9))
        }
        let read = try ReadMessage(written[...])
        let outer = try #require(try read.message(60))
        #expect(try outer.message(4)?.text(5) == text)
        #expect(outer.number(1) == 7 && read.number(8) == 9)
    }
}
