// SPDX-License-Identifier: Apache-2.0

/// Decodes Base64 that comes in pieces of any size, as clients write it into RTSP's tunnel through HTTP, or whole.
///
/// Each request is encoded separately, so there may be padding between requests. Blanks and line breaks are ignored.
public struct Base64Stream: Sendable {
    /// The digits of the incomplete group of four, and their number.
    private var bits: UInt32 = 0
    private var digits = 0
    private var padding = 0

    /// Begins before the first byte.
    public init() {}

    /// True between groups of four.
    public var isIdle: Bool { digits == 0 && padding == 0 }

    /// Decodes `input` and appends it to `output`.
    ///
    /// - Returns: false for a byte that does not belong there; nothing can be decoded after it.
    public mutating func decode(_ input: UnsafeRawBufferPointer, into output: inout [UInt8]) -> Bool {
        output.reserveCapacity(output.count + input.count / 4 * 3 + 3)
        for byte in input {
            switch byte {
            case 9, 10, 13, 32: continue
            case 61:
                guard digits >= 2 else { return false }
                padding += 1
            default:
                guard let value = Self.value(byte), padding == 0 else { return false }
                bits = bits << 6 | value
                digits += 1
            }
            guard digits + padding == 4 else { continue }
            let whole = bits << UInt32(6 * padding)
            for place in 0..<(3 - padding) { output.append(UInt8(truncatingIfNeeded: whole >> UInt32(16 - 8 * place))) }
            self = Base64Stream()
        }
        return true
    }

    private static func value(_ byte: UInt8) -> UInt32? {
        switch byte {
        case 65...90: UInt32(byte - 65)
        case 97...122: UInt32(byte - 71)
        case 48...57: UInt32(byte + 4)
        case 43: 62
        case 47: 63
        default: nil
        }
    }
}
