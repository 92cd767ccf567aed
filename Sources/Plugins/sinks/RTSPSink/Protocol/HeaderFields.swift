// SPDX-License-Identifier: Apache-2.0

/// The header fields of a message in their order; names are compared without regard to case (RFC 2326, 4.2).
struct HeaderFields: Sendable, Equatable {
    struct Field: Sendable, Equatable {
        var name: String
        var value: String
    }

    private(set) var fields: [Field] = []

    init(_ fields: [(String, String)] = []) { self.fields = fields.map { Field(name: $0.0, value: $0.1) } }

    /// The value of the first field of this name.
    subscript(name: String) -> String? { fields.first { ASCII.equalsIgnoringCase($0.name, name) }?.value }

    /// The values of all fields of this name.
    func all(_ name: String) -> [String] { fields.filter { ASCII.equalsIgnoringCase($0.name, name) }.map(\.value) }

    mutating func append(_ name: String, _ value: String) { fields.append(Field(name: name, value: value)) }

    /// Continues the value of the last field (folding, RFC 2326, 4.2); false when there is none.
    mutating func extendLast(with text: String) -> Bool {
        guard !fields.isEmpty else { return false }
        guard !text.isEmpty else { return true }
        let last = fields.count - 1
        fields[last].value += fields[last].value.isEmpty ? text : " " + text
        return true
    }
}

/// Text as the protocols of this plugin have it: bytes, without locale.
enum ASCII {
    static func lowercased(_ byte: UInt8) -> UInt8 { byte >= 65 && byte <= 90 ? byte + 32 : byte }

    static func equalsIgnoringCase(_ a: some StringProtocol, _ b: some StringProtocol) -> Bool {
        a.utf8.count == b.utf8.count && zip(a.utf8, b.utf8).allSatisfy { lowercased($0) == lowercased($1) }
    }

    static func hasPrefixIgnoringCase(_ text: some StringProtocol, _ prefix: String) -> Bool {
        text.utf8.count >= prefix.utf8.count
            && zip(text.utf8, prefix.utf8).allSatisfy { lowercased($0) == lowercased($1) }
    }

    /// Without spaces and tabs at both ends.
    static func trimmed(_ text: some StringProtocol) -> String {
        let bytes = Array(text.utf8)
        func isBlank(_ byte: UInt8) -> Bool { byte == 32 || byte == 9 }
        guard let first = bytes.firstIndex(where: { !isBlank($0) }), let last = bytes.lastIndex(where: { !isBlank($0) })
        else { return "" }
        return String(decoding: bytes[first...last], as: UTF8.self)
    }

    /// A number of decimal digits only, at most `limit`; nil for a sign, a blank, an empty text, or a larger number.
    static func number(_ text: some StringProtocol, atMost limit: UInt64) -> UInt64? {
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
    static func hexDigit(_ byte: UInt8) -> UInt8? {
        switch byte {
        case 48...57: byte - 48
        case 65...70: byte - 55
        case 97...102: byte - 87
        default: nil
        }
    }

    /// Two lower-case hexadecimal digits for each byte.
    static func hex(_ bytes: some Sequence<UInt8>) -> String {
        let digits = Array("0123456789abcdef".utf8)
        var text: [UInt8] = []
        for byte in bytes { text += [digits[Int(byte >> 4)], digits[Int(byte & 15)]] }
        return String(decoding: text, as: UTF8.self)
    }

    /// `value` in hexadecimal with leading zeros up to `digits`.
    static func hex(_ value: UInt32, digits: Int, uppercase: Bool = false) -> String {
        let text = String(value, radix: 16, uppercase: uppercase)
        return String(repeating: "0", count: max(digits - text.count, 0)) + text
    }
}
