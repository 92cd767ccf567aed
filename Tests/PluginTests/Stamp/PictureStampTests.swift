// SPDX-License-Identifier: Apache-2.0

import FrameCore
import PictureStamp
import Testing

/// The message of a picture, written and read.
@Suite struct PictureStampTests {
    private func written(_ faces: Faces? = nil) -> [UInt8] {
        var bytes = [UInt8](repeating: 0xee, count: PictureStamp.mostBytes)
        let count = bytes.withUnsafeMutableBytes {
            PictureStamp.write(capturedAt: -5_000_000_001, sequenceNumber: 1 << 40, faces: faces, to: $0)
        }
        return Array(bytes.prefix(count))
    }

    /// A NAL unit with start code, the message in it with emulation prevention (H.264 7.4.1.1), and a slice behind it.
    private func unit(_ message: [UInt8], type: UInt8 = 5, before: [UInt8] = []) -> [UInt8] {
        var payload = before + [type]
        var size = message.count
        while size >= 255 {
            payload.append(255)
            size -= 255
        }
        payload += [UInt8(size)] + message + [0x80]
        var escaped: [UInt8] = []
        for byte in payload {
            if escaped.suffix(2) == [0, 0], byte <= 3 { escaped.append(3) }
            escaped.append(byte)
        }
        return [0, 0, 0, 1, 0x67, 1, 2, 3, 0, 0, 1, 6] + escaped + [0, 0, 0, 1, 0x65, 0x88, 0x84]
    }

    private func read(_ bytes: [UInt8]) -> PictureStamp? { bytes.withUnsafeBytes { PictureStamp($0) } }

    private func faces(_ count: Int) -> Faces {
        var faces = Faces(pictureWidth: 640, pictureHeight: 480)
        for index in 0..<count {
            var face = Faces.Face()
            (face.id, face.x, face.y, face.width, face.height) = (UInt32(index), 64, 48, 320, 240)
            faces.append(face)
        }
        return faces
    }

    @Test(arguments: [0, 1, 20, 64]) func readsWhatItWrote(count: Int) throws {
        let stamp = try #require(read(unit(written(faces(count)))))
        #expect(stamp.capturedAt == -5_000_000_001 && stamp.sequenceNumber == 1 << 40)
        #expect(stamp.faces.count == count)
        for (index, face) in stamp.faces.enumerated() {
            #expect(face.id == UInt32(index) && face.x == 6553 && face.y == 6553, "a tenth of the picture")
            #expect(abs(Int(face.width) - 32767) <= 1 && abs(Int(face.height) - 32767) <= 1)
        }
    }

    @Test func cutsFacesAtThePicture() throws {
        var faces = Faces(pictureWidth: 100, pictureHeight: 100)
        for box in [(-50, -50, 100, 100), (90, 90, 50, 50), (200, 0, 10, 10), (Float.nan, 0, Float.infinity, 1)]
            as [(Float, Float, Float, Float)]
        {
            var face = Faces.Face()
            (face.x, face.y, face.width, face.height) = box
            faces.append(face)
        }
        let found = try #require(read(unit(written(faces)))).faces
        #expect(found[0].x == 0 && abs(Int(found[0].width) - 32767) <= 1)
        #expect(Int(found[1].x) + Int(found[1].width) == 65535)
        #expect(found[2].x == 65535 && found[2].width == 0)
        #expect(found[3].height > 0)
    }

    @Test func readsNoOtherMessages() {
        #expect(
            read([]) == nil && read([0, 0, 1]) == nil && read([0, 0, 1, 6]) == nil && read([0, 0, 1, 6, 255]) == nil)
        #expect(read(unit(written(), type: 4)) == nil)
        var other = written()
        other[3] ^= 1
        #expect(read(unit(other)) == nil, "another UUID")
        other = written()
        other[16] = 2
        #expect(read(unit(other)) == nil, "another version")
        other = written(faces(2))
        other[33] = 65
        #expect(read(unit(other)) == nil, "more faces than there can be")
        other[33] = 3
        #expect(read(unit(other)) == nil, "more faces than it has")
        for length in 0..<34 { #expect(read(unit(Array(written().prefix(length)))) == nil) }
        #expect(read(unit(written(), before: [5, 4, 1, 2, 3, 4]))?.sequenceNumber == 1 << 40, "behind another message")
        let slice: [UInt8] = [0, 0, 1, 0x41, 9, 9, 9]
        #expect(read(slice + unit(written())) == nil, "messages stand before the slices")
    }

    @Test func anyBytesAtAllAreRead() {
        var dice = SystemRandomNumberGenerator()
        let whole = unit(written(faces(3)))
        for _ in 0..<20_000 {
            var bytes = whole
            for _ in 0..<Int.random(in: 1...8, using: &dice) {
                bytes[Int.random(in: bytes.indices, using: &dice)] = UInt8.random(in: 0...255, using: &dice)
            }
            _ = read(Array(bytes.prefix(Int.random(in: 0...bytes.count, using: &dice))))
        }
        #expect(read(whole)?.faces.count == 3)
    }
}
