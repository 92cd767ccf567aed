// SPDX-License-Identifier: Apache-2.0

extension JSONParser {
    /// Consumes the run of letters, digits and signs that begins here.
    private mutating func readRun() -> ArraySlice<UInt8> {
        let start = index
        while let byte = next, byte.isWord { index += 1 }
        return bytes[start..<index]
    }

    /// The number that begins here, as written.
    mutating func readNumber() throws(FrameHostError) -> String {
        let start = index
        let run = readRun()
        guard JSONNumber(run) != nil else { throw noNumber(start) }
        return String(decoding: run, as: UTF8.self)
    }

    /// One of the three literal names; where there is none, `index` stays.
    mutating func readWord() -> JSONNode.Content? {
        let start = index
        let run = readRun()
        if run.elementsEqual("true".utf8) { return .bool(true) }
        if run.elementsEqual("false".utf8) { return .bool(false) }
        if run.elementsEqual("null".utf8) { return .null }
        index = start
        return nil
    }

    /// The string that begins here (RFC 8259 §7).
    mutating func readString() throws(FrameHostError) -> String {
        let opening = index
        index += 1
        var text: [UInt8] = []
        var runStart = index
        while let byte = next {
            switch byte {
            case UInt8(ascii: "\""):
                let run = bytes[runStart..<index]
                index += 1
                return text.isEmpty ? String(decoding: run, as: UTF8.self) : String(decoding: text + run, as: UTF8.self)
            case UInt8(ascii: "\\"):
                text += bytes[runStart..<index]
                guard let scalar = try readEscape() else { throw stringNotClosed(opening) }
                text += UTF8.encode(scalar)!
                runStart = index
            case 0..<0x20:
                throw byte.endsLine ? stringNotClosed(opening, atLineEnd: true) : controlCharacter(byte)
            default: index += 1
            }
        }
        throw stringNotClosed(opening)
    }

    /// The character of the escape that begins here; nil where the text ends within it.
    private mutating func readEscape() throws(FrameHostError) -> Unicode.Scalar? {
        let start = index
        index += 2
        guard index <= bytes.count else { return nil }
        switch bytes[index - 1] {
        case UInt8(ascii: "\""): return "\""
        case UInt8(ascii: "\\"): return "\\"
        case UInt8(ascii: "/"): return "/"
        case UInt8(ascii: "b"): return "\u{8}"
        case UInt8(ascii: "f"): return "\u{C}"
        case UInt8(ascii: "n"): return "\n"
        case UInt8(ascii: "r"): return "\r"
        case UInt8(ascii: "t"): return "\t"
        case UInt8(ascii: "u"): break
        default: throw noEscape(start)
        }
        guard let first = try readHex(start) else { return nil }
        if let scalar = Unicode.Scalar(first) { return scalar }
        guard first < 0xDC00, bytes[index...].starts(with: "\\u".utf8) else { throw halfPair(start) }
        index += 2
        guard let second = try readHex(index - 2) else { return nil }
        guard 0xDC00..<0xE000 ~= second else { throw halfPair(start) }
        return Unicode.Scalar(0x10000 + (first - 0xD800) << 10 + (second - 0xDC00))
    }

    /// Four hex digits; nil where the text ends before them. `start` is where their escape began.
    private mutating func readHex(_ start: Int) throws(FrameHostError) -> UInt32? {
        var value: UInt32 = 0
        for _ in 0..<4 {
            guard let byte = next else { return nil }
            guard let digit = Character(Unicode.Scalar(byte)).hexDigitValue else { throw noHex(start) }
            value = value << 4 + UInt32(digit)
            index += 1
        }
        return value
    }
}
