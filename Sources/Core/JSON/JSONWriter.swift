// SPDX-License-Identifier: Apache-2.0

extension JSONNode {
    /// The value as JSON; reading it gives the same value, places aside.
    ///
    /// Keeps numbers as written, and non-ASCII characters as they are but for those that a terminal would obey:
    /// `String.printable(keeping:)`. Ends without a line break.
    ///
    /// - Parameter pretty: One member or element a line, indented by two spaces; otherwise no white space at all.
    public func text(pretty: Bool = false) -> String {
        var writer = JSONWriter(isPretty: pretty)
        writer.write(self)
        return String(decoding: writer.bytes, as: UTF8.self)
    }
}

private struct JSONWriter {
    let isPretty: Bool
    var bytes: [UInt8] = []
    var depth = 0

    init(isPretty: Bool) { self.isPretty = isPretty }

    mutating func write(_ node: JSONNode) {
        switch node.value {
        case .null: bytes += "null".utf8
        case .bool(let flag): bytes += (flag ? "true" : "false").utf8
        // A program may have put "nan" there: like ``JSONNode/number(_:)``, that becomes null.
        case .number(let text): bytes += (JSONNumber(Array(text.utf8)[...]) == nil ? "null" : text).utf8
        case .string(let text): write(text)
        case .array(let elements): write(elements, "[", "]") { $0.write($1) }
        case .object(let members):
            write(members, "{", "}") { writer, member in
                writer.write(member.key)
                writer.bytes += (writer.isPretty ? ": " : ":").utf8
                writer.write(member.value)
            }
        }
    }

    private mutating func write<Item>(
        _ items: [Item], _ opening: Unicode.Scalar, _ closing: Unicode.Scalar, each: (inout JSONWriter, Item) -> Void
    ) {
        bytes.append(UInt8(ascii: opening))
        depth += 1
        for (index, item) in items.enumerated() {
            if index > 0 { bytes.append(UInt8(ascii: ",")) }
            breakLine()
            each(&self, item)
        }
        depth -= 1
        if !items.isEmpty { breakLine() }
        bytes.append(UInt8(ascii: closing))
    }

    private mutating func breakLine() {
        guard isPretty else { return }
        bytes.append(UInt8(ascii: "\n"))
        bytes += repeatElement(UInt8(ascii: " "), count: 2 * depth)
    }

    private mutating func write(_ text: String) {
        bytes.append(UInt8(ascii: "\""))
        // First bytes of what a terminal would obey, beside the controls below 0x20.
        if text.utf8.contains(where: { $0 == 0x7F || $0 == 0xC2 || $0 == 0xE2 }) {
            for scalar in text.unicodeScalars {
                if scalar.value >= 0x20, scalar.isUnprintable {
                    bytes += "\\u\(scalar.hex)".utf8
                } else {
                    writePlain(String(scalar).utf8)
                }
            }
        } else {
            writePlain(text.utf8)
        }
        bytes.append(UInt8(ascii: "\""))
    }

    private mutating func writePlain(_ text: some Sequence<UInt8>) {
        for byte in text {
            switch byte {
            case UInt8(ascii: "\""): bytes += "\\\"".utf8
            case UInt8(ascii: "\\"): bytes += "\\\\".utf8
            case UInt8(ascii: "\n"): bytes += "\\n".utf8
            case UInt8(ascii: "\r"): bytes += "\\r".utf8
            case UInt8(ascii: "\t"): bytes += "\\t".utf8
            case 0..<0x20: bytes += "\\u\(Unicode.Scalar(byte).hex)".utf8
            default: bytes.append(byte)
            }
        }
    }
}
