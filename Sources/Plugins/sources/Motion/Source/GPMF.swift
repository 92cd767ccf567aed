// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// Reads GPMF, the telemetry of GoPro cameras: what an MP4 sample of a track `gpmd` holds. Pure.
///
/// Nested big-endian items: a key of four letters, a letter for the type, u8 bytes of a structure, u16 count, and
/// data padded to four bytes. Type 0 holds further items. In a stream (`STRM`), the values (`GYRO`, `ACCL`) come
/// after their divisor (`SCAL`) and the directions of their axes (`MTRX`, or `ORIN` and `ORIO`).
enum GPMF {
    /// The motion of one MP4 sample, in rad/s and m/s² along the sensor's axes, evenly spread over its duration.
    struct Payload: Equatable {
        var rotationRates: [SIMD3<Float>] = []
        var accelerations: [SIMD3<Float>] = []
        /// Where the axes lie in the picture.
        var axes = AxisMap.gyroflow
    }

    /// The most values of one payload; cameras write about 1,000.
    static let mostValues = 65_536
    private static let mostDepth = 8

    /// Adds the motion in `bytes` to `payload`. Where it throws, ``MotionFault/offset`` says at which byte, and
    /// `payload` has what came before.
    static func read(_ bytes: Span<UInt8>, into payload: inout Payload) throws(MotionFault) {
        var stream = Stream()
        try walk(bytes, 0..<bytes.count, depth: 0, &stream, &payload)
    }

    /// What comes before the values of a stream.
    private struct Stream {
        var scale: [Double] = []
        var matrix: AxisMap?
        var orientationIn = ""
        var orientationOut = ""
        /// The camera's model.
        var device = ""

        /// telemetry-parser's rules: MTRX, or ORIN and ORIO, or what is known of old models, or the order in which a
        /// HERO5 writes them.
        var axes: AxisMap {
            if let matrix { return matrix.then(.gyroflow) }
            if let map = AxisMap(rows: Self.rows(orientationIn, orientationOut)), !map.isMirror {
                return map.then(.gyroflow)
            }
            let model = device.lowercased()
            let map = model.contains("hero6") ? "ZyX" : model.contains("hero7 silver") ? "YXz" : "XYZ"
            return (AxisMap(map) ?? .same).then(.gyroflow)
        }

        /// The matrix from the axes of `from` to those of `to`, both written as three letters.
        private static func rows(_ from: String, _ to: String) -> [Float] {
            let (from, to) = (Array(from.utf8), Array(to.utf8))
            guard from.count == 3, to.count == 3 else { return [] }
            return to.flatMap { out in
                from.map { $0 == out ? 1 : ($0 | 0x20) == (out | 0x20) ? -1 : 0 }
            }
        }
    }

    private static func walk(
        _ bytes: Span<UInt8>, _ range: Range<Int>, depth: Int, _ stream: inout Stream, _ payload: inout Payload
    ) throws(MotionFault) {
        var offset = range.lowerBound
        while offset < range.upperBound {
            guard range.upperBound - offset >= 8 else {
                throw MotionFault(
                    "must have an item of at least 8 bytes, but has only \(Self.bytes(range.upperBound - offset))",
                    at: offset)
            }
            let key = text(bytes, offset..<offset + 4)
            // Padding of the payload.
            if key == "\0\0\0\0" { return }
            let item = Item(
                key: key, type: bytes[offset + 4], size: Int(bytes[offset + 5]),
                count: Int(bytes[offset + 6]) << 8 | Int(bytes[offset + 7]), begin: offset + 8)
            guard item.byteCount <= range.upperBound - item.begin else {
                throw MotionFault(
                    "has an item \(MotionText.quoted(Array(key.utf8))) of \(item.byteCount) bytes, but room for only \(Self.bytes(range.upperBound - item.begin))",
                    at: offset)
            }
            if item.type == 0 {
                guard depth < mostDepth else {
                    throw MotionFault("has more than \(mostDepth) levels of items", at: offset)
                }
                // An inner item takes over only the camera's model.
                var inner = Stream()
                inner.device = stream.device
                try walk(bytes, item.begin..<item.begin + item.byteCount, depth: depth + 1, &inner, &payload)
            } else {
                try take(item, bytes, &stream, &payload)
            }
            // The last item's padding may be missing.
            offset = min(item.begin + (item.byteCount + 3) / 4 * 4, range.upperBound)
        }
    }

    /// `1 byte`, `2 bytes`
    private static func bytes(_ count: Int) -> String { count == 1 ? "1 byte" : "\(count) bytes" }

    private struct Item {
        var key: String
        var type: UInt8
        /// Bytes of a structure.
        var size: Int
        var count: Int
        var begin: Int
        /// At most 255 · 65,535.
        var byteCount: Int { size * count }
    }

    private static func take(_ item: Item, _ bytes: Span<UInt8>, _ stream: inout Stream, _ payload: inout Payload)
        throws(MotionFault)
    {
        switch item.key {
        case "DVNM": stream.device = text(bytes, item.begin..<item.begin + min(item.byteCount, 64))
        case "ORIN": stream.orientationIn = text(bytes, item.begin..<item.begin + min(item.byteCount, 3))
        case "ORIO": stream.orientationOut = text(bytes, item.begin..<item.begin + min(item.byteCount, 3))
        case "SCAL": stream.scale = try numbers(item, bytes, most: 16)
        case "MTRX":
            let map = AxisMap(rows: try numbers(item, bytes, most: 9).map { Float($0) })
            if let map, !map.isMirror { stream.matrix = map }
        case "GYRO":
            payload.rotationRates += try vectors(item, bytes, stream, payload)
            payload.axes = stream.axes
        case "ACCL":
            payload.accelerations += try vectors(item, bytes, stream, payload)
            payload.axes = stream.axes
        default: break
        }
    }

    // MARK: Values

    private static func vectors(_ item: Item, _ bytes: Span<UInt8>, _ stream: Stream, _ payload: Payload)
        throws(MotionFault) -> [SIMD3<Float>]
    {
        let width = try width(of: item)
        guard item.size >= 3 * width else {
            throw MotionFault(
                "has '\(item.key)' in structures of \(item.size) bytes, which must hold 3 numbers", at: item.begin - 8)
        }
        guard payload.rotationRates.count + payload.accelerations.count + item.count <= mostValues else {
            throw MotionFault("has more than \(mostValues) values in one payload", at: item.begin - 8)
        }
        return (0..<item.count).map { index in
            var vector = SIMD3<Float>.zero
            for axis in 0..<3 {
                let raw = number(item.type, bytes, item.begin + index * item.size + axis * width)
                // One divisor for all axes, or one for each. A divisor of 0 gives a number that is not finite and is
                // left out later.
                let scale = stream.scale.count > axis ? stream.scale[axis] : stream.scale.first ?? 1
                vector[axis] = Float(raw / scale)
            }
            return vector
        }
    }

    private static func numbers(_ item: Item, _ bytes: Span<UInt8>, most: Int) throws(MotionFault) -> [Double] {
        let width = try width(of: item)
        return (0..<min(item.byteCount / width, most)).map { number(item.type, bytes, item.begin + $0 * width) }
    }

    private static func width(of item: Item) throws(MotionFault) -> Int {
        switch item.type {
        case UInt8(ascii: "b"), UInt8(ascii: "B"): return 1
        case UInt8(ascii: "s"), UInt8(ascii: "S"): return 2
        case UInt8(ascii: "l"), UInt8(ascii: "L"), UInt8(ascii: "f"): return 4
        case UInt8(ascii: "j"), UInt8(ascii: "J"), UInt8(ascii: "d"): return 8
        default:
            throw MotionFault(
                "has '\(item.key)' of the type \(MotionText.quoted([item.type])), which is not a number type",
                at: item.begin - 8)
        }
    }

    /// The number at `offset`. The caller has checked that its bytes are there.
    private static func number(_ type: UInt8, _ bytes: Span<UInt8>, _ offset: Int) -> Double {
        func bits(_ count: Int) -> UInt64 {
            (0..<count).reduce(0) { $0 << 8 | UInt64(bytes[offset + $1]) }
        }
        switch type {
        case UInt8(ascii: "b"): return Double(Int8(truncatingIfNeeded: bits(1)))
        case UInt8(ascii: "B"): return Double(bits(1))
        case UInt8(ascii: "s"): return Double(Int16(truncatingIfNeeded: bits(2)))
        case UInt8(ascii: "S"): return Double(bits(2))
        case UInt8(ascii: "l"): return Double(Int32(truncatingIfNeeded: bits(4)))
        case UInt8(ascii: "L"): return Double(bits(4))
        case UInt8(ascii: "f"): return Double(Float(bitPattern: UInt32(truncatingIfNeeded: bits(4))))
        case UInt8(ascii: "j"): return Double(Int64(truncatingIfNeeded: bits(8)))
        case UInt8(ascii: "J"): return Double(bits(8))
        default: return Double(bitPattern: bits(8))
        }
    }

    /// The bytes as Latin-1, so that any bytes make a string.
    private static func text(_ bytes: Span<UInt8>, _ range: Range<Int>) -> String {
        var text = ""
        for index in range { text.unicodeScalars.append(Unicode.Scalar(bytes[index])) }
        return text
    }
}
