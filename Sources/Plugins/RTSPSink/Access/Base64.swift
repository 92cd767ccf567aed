/// RFC 4648, 4: with padding, without line breaks.
enum Base64 {
    private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)

    static func encode(_ bytes: some Collection<UInt8>) -> String {
        var text: [UInt8] = []
        text.reserveCapacity((bytes.count + 2) / 3 * 4)
        var rest = bytes[...]
        while !rest.isEmpty {
            let group = Array(rest.prefix(3))
            rest = rest.dropFirst(3)
            let word = UInt32(group[0]) << 16 | UInt32(group.count > 1 ? group[1] : 0) << 8 | UInt32(group.count > 2 ? group[2] : 0)
            for position in 0..<4 {
                text.append(position <= group.count ? alphabet[Int(word >> UInt32(18 - 6 * position) & 63)] : 61)
            }
        }
        return String(decoding: text, as: UTF8.self)
    }

    /// Nil for anything but groups of four with padding at the end alone.
    static func decode(_ text: String) -> [UInt8]? {
        let bytes = Array(text.utf8)
        guard bytes.count % 4 == 0 else { return nil }
        let padding = bytes.suffix(2).filter { $0 == 61 }.count
        var result: [UInt8] = []
        var word: UInt32 = 0
        for (index, byte) in bytes.enumerated() {
            let isPadding = byte == 61 && index >= bytes.count - padding
            guard let value = isPadding ? 0 : value(of: byte) else { return nil }
            word = word << 6 | UInt32(value)
            guard index % 4 == 3 else { continue }
            result += [UInt8(truncatingIfNeeded: word >> 16), UInt8(truncatingIfNeeded: word >> 8), UInt8(truncatingIfNeeded: word)]
            word = 0
        }
        result.removeLast(padding)
        return result
    }

    private static func value(of byte: UInt8) -> UInt8? {
        switch byte {
        case 65...90: byte - 65
        case 97...122: byte - 71
        case 48...57: byte + 4
        case 43: 62
        case 47: 63
        default: nil
        }
    }
}
