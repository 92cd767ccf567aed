// SPDX-License-Identifier: Apache-2.0

import CodedVideo
import FrameCore

/// What an H.264 stream says of its own picture: when it was captured, its number and its faces. It is a message of
/// the type user_data_unregistered (H.264 D.1.7), which every container and every client carries along.
///
/// Numbers are big-endian:
///
/// | bytes | what |
/// |---|---|
/// | 16 | ``uuid`` |
/// | 1 | the layout's version, 1 |
/// | 8 | when the picture was captured, nanoseconds since 1970 (signed) |
/// | 8 | its sequence number |
/// | 1 | how many faces follow, at most 64 |
/// | 12 each | of a face: its id (4), left, top, width, height as parts of the picture in 1/65535 (2 each) |
public struct PictureStamp: Equatable, Sendable {
    /// A face, its box as parts of the picture from 0 to 65535, cut at the picture's edges.
    public struct Face: Equatable, Sendable {
        public var id: UInt32
        public var x: UInt16
        public var y: UInt16
        public var width: UInt16
        public var height: UInt16

        public init(id: UInt32, x: UInt16, y: UInt16, width: UInt16, height: UInt16) {
            (self.id, self.x, self.y, self.width, self.height) = (id, x, y, width, height)
        }
    }

    /// Tells the message from others of its type.
    public static let uuid: [UInt8] = [
        0x9c, 0x41, 0x5f, 0x0e, 0x2b, 0x7a, 0x4d, 0x36, 0xa8, 0x13, 0x5e, 0xd0, 0x66, 0x1f, 0xb4, 0x72,
    ]
    static let version: UInt8 = 1
    private static let headBytes = 34
    private static let faceBytes = 12
    /// The size of the largest message in bytes.
    public static let mostBytes = headBytes + faceBytes * Faces.most

    /// Nanoseconds since 1970.
    public var capturedAt: Int64
    public var sequenceNumber: UInt64
    public var faces: [Face]

    public init(capturedAt: Int64, sequenceNumber: UInt64, faces: [Face] = []) {
        (self.capturedAt, self.sequenceNumber, self.faces) = (capturedAt, sequenceNumber, faces)
    }

    // MARK: Writing

    /// [any thread] Writes the message of a picture. Allocates nothing.
    ///
    /// - Parameter target: At least ``mostBytes``.
    /// - Returns: How many bytes were written.
    public static func write(
        capturedAt: Int64, sequenceNumber: UInt64, faces: Faces?, to target: UnsafeMutableRawBufferPointer
    ) -> Int {
        for (index, byte) in uuid.enumerated() { target[index] = byte }
        target[16] = version
        target.storeBytes(of: capturedAt.bigEndian, toByteOffset: 17, as: Int64.self)
        target.storeBytes(of: sequenceNumber.bigEndian, toByteOffset: 25, as: UInt64.self)
        guard let faces, faces.pictureWidth > 0, faces.pictureHeight > 0 else {
            target[33] = 0
            return headBytes
        }
        target[33] = UInt8(faces.count)
        for index in 0..<faces.count {
            let (face, offset) = (faces[index], headBytes + index * faceBytes)
            let (left, right) = parts(face.x, face.x + face.width, of: faces.pictureWidth)
            let (top, bottom) = parts(face.y, face.y + face.height, of: faces.pictureHeight)
            target.storeBytes(of: face.id.bigEndian, toByteOffset: offset, as: UInt32.self)
            for (place, value) in [left, top, right - left, bottom - top].enumerated() {
                target.storeBytes(of: value.bigEndian, toByteOffset: offset + 4 + 2 * place, as: UInt16.self)
            }
        }
        return headBytes + faces.count * faceBytes
    }

    /// Two edges as parts of a side; the first is never after the second.
    private static func parts(_ begin: Float, _ end: Float, of side: Int) -> (UInt16, UInt16) {
        func part(_ edge: Float) -> UInt16 {
            let value = Double(edge) / Double(side) * 65535
            return value.isNaN ? 0 : UInt16(min(max(value, 0), 65535))
        }
        let first = part(begin)
        return (first, max(part(end), first))
    }

    // MARK: Reading

    /// The stamp of an access unit of H.264 with start codes; nil where there is none. Nothing in the bytes is trusted.
    public init?(_ unit: UnsafeRawBufferPointer) {
        var found: PictureStamp?
        Messages.forEach(in: unit, .h264, most: 4 * Self.mostBytes) { type, payload in
            if type == 5 { found = Self.read(payload) }
            return found == nil
        }
        guard let found else { return nil }
        self = found
    }

    private static func read(_ message: ArraySlice<UInt8>) -> PictureStamp? {
        let bytes = Array(message)
        guard bytes.count >= headBytes, bytes.starts(with: uuid), bytes[16] == version else { return nil }
        func number<Number: FixedWidthInteger>(_ place: Int, _ type: Number.Type) -> Number {
            bytes[place..<place + MemoryLayout<Number>.size].reduce(0) { $0 << 8 | Number(truncatingIfNeeded: $1) }
        }
        let count = Int(bytes[33])
        guard count <= Faces.most, bytes.count >= headBytes + count * faceBytes else { return nil }
        return PictureStamp(
            capturedAt: number(17, Int64.self), sequenceNumber: number(25, UInt64.self),
            faces: (0..<count).map { index in
                let place = headBytes + index * faceBytes
                return Face(
                    id: number(place, UInt32.self), x: number(place + 4, UInt16.self),
                    y: number(place + 6, UInt16.self),
                    width: number(place + 8, UInt16.self), height: number(place + 10, UInt16.self))
            })
    }
}
