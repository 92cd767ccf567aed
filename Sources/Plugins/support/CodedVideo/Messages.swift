// SPDX-License-Identifier: Apache-2.0

/// Supplemental enhancement information before the first slice of an access unit (H.264 7.3.2.3, H.265 7.3.2.4).
public enum Messages {
    /// Calls `body` with the type and the payload of each message, until it returns false. Nothing in the bytes is
    /// trusted.
    ///
    /// - Parameters:
    ///   - unit: An access unit with start codes.
    ///   - most: How many bytes of a NAL unit are looked at, without emulation prevention.
    public static func forEach(
        in unit: UnsafeRawBufferPointer, _ coding: VideoCoding, most: Int = 65_536,
        _ body: (Int, ArraySlice<UInt8>) -> Bool
    ) {
        var bytes: [UInt8] = []
        NALUnits.forEach(in: unit, coding, .untilSlice) { kind, range in
            guard kind == .message else { return true }
            unescape(UnsafeRawBufferPointer(rebasing: unit[range].dropFirst(coding.headerBytes)), most, into: &bytes)
            return forEach(in: bytes, body)
        }
    }

    /// The bytes without emulation prevention (H.264 7.4.1).
    private static func unescape(_ payload: UnsafeRawBufferPointer, _ most: Int, into bytes: inout [UInt8]) {
        bytes.removeAll(keepingCapacity: true)
        var zeros = 0
        for byte in payload where bytes.count < most {
            if zeros >= 2, byte == 3 {
                zeros = 0
                continue
            }
            zeros = byte == 0 ? zeros + 1 : 0
            bytes.append(byte)
        }
    }

    /// - Returns: Whether to go on.
    private static func forEach(in bytes: [UInt8], _ body: (Int, ArraySlice<UInt8>) -> Bool) -> Bool {
        var place = 0
        func number() -> Int? {
            var value = 0
            while place < bytes.count {
                value += Int(bytes[place])
                place += 1
                if bytes[place - 1] != 255 { return value }
            }
            return nil
        }
        while let type = number(), let size = number(), place + size <= bytes.count {
            guard body(type, bytes[place..<place + size]) else { return false }
            place += size
        }
        return true
    }
}
