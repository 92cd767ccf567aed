// SPDX-License-Identifier: Apache-2.0

/// Text as protocols have it: bytes, without locale.
public enum ASCII {
    /// The lower case of a letter A to Z; any other byte as it is.
    public static func lowercased(_ byte: UInt8) -> UInt8 { byte >= 65 && byte <= 90 ? byte + 32 : byte }

    /// Whether two texts are equal but for the case of the letters A to Z.
    public static func equalsIgnoringCase(_ a: some StringProtocol, _ b: some StringProtocol) -> Bool {
        a.utf8.count == b.utf8.count && zip(a.utf8, b.utf8).allSatisfy { lowercased($0) == lowercased($1) }
    }

    /// Whether a text begins with another, but for the case of the letters A to Z.
    public static func hasPrefixIgnoringCase(_ text: some StringProtocol, _ prefix: String) -> Bool {
        text.utf8.count >= prefix.utf8.count
            && zip(text.utf8, prefix.utf8).allSatisfy { lowercased($0) == lowercased($1) }
    }

    /// Without spaces and tabs at both ends.
    public static func trimmed(_ text: some StringProtocol) -> String {
        let bytes = Array(text.utf8)
        func isBlank(_ byte: UInt8) -> Bool { byte == 32 || byte == 9 }
        guard let first = bytes.firstIndex(where: { !isBlank($0) }), let last = bytes.lastIndex(where: { !isBlank($0) })
        else { return "" }
        return String(decoding: bytes[first...last], as: UTF8.self)
    }

    /// A number of decimal digits only, at most `limit`; nil for a sign, a blank, an empty text, or a larger number.
    public static func number(_ text: some StringProtocol, atMost limit: UInt64) -> UInt64? {
        var value: UInt64 = 0
        guard !text.isEmpty else { return nil }
        for byte in text.utf8 {
            guard byte >= 48, byte <= 57 else { return nil }
            let (product, overflow) = value.multipliedReportingOverflow(by: 10)
            let (sum, carry) = product.addingReportingOverflow(UInt64(byte - 48))
            guard !overflow, !carry, sum <= limit else { return nil }
            value = sum
        }
        return value
    }

    /// The value of a hexadecimal digit.
    public static func hexDigit(_ byte: UInt8) -> UInt8? {
        switch byte {
        case 48...57: byte - 48
        case 65...70: byte - 55
        case 97...102: byte - 87
        default: nil
        }
    }

    /// Two lower-case hexadecimal digits for each byte.
    public static func hex(_ bytes: some Sequence<UInt8>) -> String {
        let digits = Array("0123456789abcdef".utf8)
        var text: [UInt8] = []
        for byte in bytes { text += [digits[Int(byte >> 4)], digits[Int(byte & 15)]] }
        return String(decoding: text, as: UTF8.self)
    }

    /// `value` in hexadecimal with leading zeros up to `digits`.
    public static func hex(_ value: UInt32, digits: Int, uppercase: Bool = false) -> String {
        let text = String(value, radix: 16, uppercase: uppercase)
        return String(repeating: "0", count: max(digits - text.count, 0)) + text
    }
}
