// SPDX-License-Identifier: Apache-2.0

internal import CNettle

/// RFC 4648, 4, as nettle codes it: written with padding and without line breaks.
public enum Base64 {
    /// The text of some bytes.
    public static func encode(_ bytes: [UInt8]) -> String {
        let count = (bytes.count + 2) / 3 * 4
        return String(unsafeUninitializedCapacity: count) { text in
            guard count > 0 else { return 0 }
            text.withMemoryRebound(to: CChar.self) { nettle_base64_encode_raw($0.baseAddress, bytes.count, bytes) }
            return count
        }
    }

    /// Nil for another alphabet, for padding that is missing or not at the end, and for bits after the last byte.
    /// Blanks and line breaks are ignored.
    public static func decode(_ text: String) -> [UInt8]? {
        var context = base64_decode_ctx()
        nettle_base64_decode_init(&context)
        let code = text.utf8.map { CChar(bitPattern: $0) }
        var isWhole = false
        let bytes = [UInt8](unsafeUninitializedCapacity: (code.count + 1) * 6 / 8) { bytes, count in
            isWhole = nettle_base64_decode_update(&context, &count, bytes.baseAddress, code.count, code) == 1
            if !isWhole { count = 0 }
        }
        return isWhole && nettle_base64_decode_final(&context) == 1 ? bytes : nil
    }
}
