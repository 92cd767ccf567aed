// SPDX-License-Identifier: Apache-2.0

extension JSONParser {
    func fault(_ place: TextPlace, _ what: String, remedy: String, path: String = "") -> FrameHostError {
        FrameHostError(
            .invalidConfiguration, place: FaultPlace(file: file, position: place, path: path), what: what,
            remedy: remedy)
    }

    /// `chain.json:3:18: expected ',' or ']' after a value, found '"'. Put a comma between values.`
    func expected(_ what: String, remedy: String) -> FrameHostError {
        let better =
            switch next {
            case UInt8(ascii: "#"): "Start comments with // or /*."
            case UInt8(ascii: "/"): "Put paths and fractions in double quotes; start comments with // or /*."
            case UInt8(ascii: "'"): "Use double quotes (\")."
            case 0xE2 where "“”‘’".unicodeScalars.contains(where: { $0 == scalarHere }):
                "Use straight double quotes (\")."
            default: remedy
            }
        return fault(here, "expected \(what), found \(found)", remedy: better)
    }

    /// The fault of a text that has nothing but white space and comments.
    func noValue() -> FrameHostError {
        FrameHostError(
            .invalidConfiguration, place: FaultPlace(file: file),
            what: bytes.contains(UInt8(ascii: "/")) ? "contains only comments" : "is empty",
            remedy: valueRemedy ?? "Write a JSON value.")
    }

    func expectedValue(orEnd end: String) -> FrameHostError {
        if steps.isEmpty, let valueRemedy { return expected("a value" + end, remedy: valueRemedy) }
        let word = word(at: index, limit: 16)
        let remedy =
            switch word.lowercased() {
            case "true", "false", "null": "Did you mean '\(word.lowercased())'?"
            case "none", "nil", "undefined": "Did you mean 'null'?"
            case "":
                next == UInt8(ascii: ",")
                    ? "Leave the extra comma out." : "Write a string, a number, a list, an object, true, false or null."
            default: "Put text in double quotes."
            }
        return expected("a value" + end, remedy: remedy)
    }

    func expectedKey(_ opening: TextPlace) -> FrameHostError {
        let remedy =
            switch next {
            case UInt8(ascii: ","): "Leave the extra comma out."
            case UInt8(ascii: "]"): Self.closing(UInt8(ascii: "}"), opening)
            case UInt8(ascii: "{"), UInt8(ascii: "["): "Write a key and a colon before the value."
            default: "Put keys in double quotes."
            }
        return expected("a key or '}'", remedy: remedy)
    }

    func expectedComma(_ bracket: UInt8, _ opening: TextPlace) -> FrameHostError {
        let remedy =
            switch next {
            case nil, UInt8(ascii: "]"), UInt8(ascii: "}"): Self.closing(bracket, opening)
            case UInt8(ascii: ":") where !bracket.isBrace: "Put keys and their values into an object, { }."
            case let byte? where Self.isOfWord(byte):
                "A comma is missing here, or a closing quotation mark earlier on this line."
            default: bracket.isBrace ? "Put a comma between members." : "Put a comma between values."
            }
        return expected("',' or '\(Character(Unicode.Scalar(bracket)))' after a value", remedy: remedy)
    }

    static func isOfWord(_ byte: UInt8) -> Bool {
        UInt8(ascii: "a")...UInt8(ascii: "z") ~= byte | 0x20
    }

    func notClosed(_ bracket: UInt8, _ opening: TextPlace, expected what: String) -> FrameHostError {
        expected("\(what) or '\(Character(Unicode.Scalar(bracket)))'", remedy: Self.closing(bracket, opening))
    }

    private static func closing(_ bracket: UInt8, _ opening: TextPlace) -> String {
        bracket.isBrace
            ? "Close the object that starts at \(opening) with '}'."
            : "Close the list that starts at \(opening) with ']'."
    }

    func duplicate(_ key: String, _ place: TextPlace, first: TextPlace) -> FrameHostError {
        var path = JSONPath()
        for step in steps {
            switch step {
            case .key(let key): path = path.appending(key)
            case .index(let index): path = path.appending(index)
            }
        }
        return fault(
            place, "the key appears twice, first at \(first)", remedy: "Keep one of the two.", path: path.description)
    }

    func keyTooLong(_ key: String, _ place: TextPlace) -> FrameHostError {
        fault(
            place, "a key of \(key.utf8.count) bytes is longer than the limit of \(limits.keyBytes)",
            remedy: "Use a shorter key, or close its string with '\"'.")
    }

    func noNumber(_ start: Int) -> FrameHostError {
        fault(
            place(of: start), "'\(word(at: start, limit: 32))' must be a number, or a text in double quotes",
            remedy: "Write numbers like 12, -0.5 or 2e3.")
    }

    func stringNotClosed(_ opening: Int, atLineEnd: Bool = false) -> FrameHostError {
        atLineEnd
            ? fault(
                place(of: opening), "a string is not closed at the end of its line",
                remedy: "Close it with '\"'; a line break within it is written \\n.")
            : fault(place(of: opening), "a string is not closed", remedy: "Close it with '\"'.")
    }

    func controlCharacter(_ byte: UInt8) -> FrameHostError {
        let hex = Unicode.Scalar(byte).hex
        return fault(
            here, "a string holds the control character U+\(hex)",
            remedy: "Write it as \(byte == UInt8(ascii: "\t") ? "\\t" : "\\u\(hex)").")
    }

    func noEscape(_ start: Int) -> FrameHostError {
        var parser = self
        parser.index = start + 1
        return fault(
            place(of: start), "'\\' before \(parser.found) is not an escape sequence",
            remedy:
                "Use \\\" \\\\ \\/ \\b \\f \\n \\r \\t or \\uXXXX (four hex digits); a backslash itself is written \\\\."
        )
    }

    func noHex(_ start: Int) -> FrameHostError {
        fault(
            place(of: start), "expected four hex digits after '\\u', found \(found)", remedy: "Write it like \\u00e9.")
    }

    func halfPair(_ start: Int) -> FrameHostError {
        fault(
            place(of: start),
            "'\(String(decoding: bytes[start..<start + 6], as: UTF8.self))' is half of a surrogate pair",
            remedy: "Write both halves, or the character itself.")
    }

    func notUTF8(_ byte: UInt8, _ place: TextPlace) -> FrameHostError {
        fault(place, "byte 0x\(Unicode.Scalar(byte).hex.suffix(2)) is not UTF-8", remedy: "Write the text in UTF-8.")
    }

    func tooMany(_ what: String, remedy: String) -> FrameHostError {
        fault(here, "the text has more than \(what)", remedy: remedy)
    }

    // MARK: What stands here

    /// What stands here in words: `'"'`, `'True'`, `U+00A0`, `the end of the text`.
    private var found: String {
        let word = word(at: index, limit: 32)
        guard word.isEmpty else { return "'\(word)'" }
        guard let scalar = scalarHere else { return "the end of the text" }
        if scalar == "'" { return "\"'\"" }
        if scalar.isASCII, scalar.value > 0x20, scalar.value < 0x7F { return "'\(scalar)'" }
        return switch scalar.properties.generalCategory {
        case .control, .format, .spaceSeparator, .lineSeparator, .paragraphSeparator, .unassigned, .privateUse,
            .nonspacingMark, .enclosingMark, .spacingMark, .surrogate:
            "U+\(scalar.hex)"
        default: "'\(scalar)' (U+\(scalar.hex))"
        }
    }

    private var scalarHere: Unicode.Scalar? {
        String(decoding: bytes[index..<min(index + 4, bytes.count)], as: UTF8.self).unicodeScalars.first
    }

    /// The letters, digits and signs at `start`, cut after `limit` of them.
    ///
    /// Behind an address on the same line it is `…`: a password with a quotation mark in it ends there by mistake.
    private func word(at start: Int, limit: Int) -> String {
        let line = bytes[..<start].lastIndex(of: UInt8(ascii: "\n")).map { $0 + 1 } ?? 0
        if bytes[start...].first?.isWord == true, bytes[line..<start].firstMark != nil { return "…" }
        let run = bytes[start...].prefix(limit + 1).prefix(while: \.isWord)
        return String(decoding: run.prefix(limit), as: UTF8.self) + (run.count > limit ? "…" : "")
    }
}

extension FrameHostError {
    /// `count` is nil where the text was not read to its end.
    ///
    /// - Parameter remedy: What helps where the text comes from: a file, a command.
    static func tooLong(
        _ count: Int?, file: String, limits: JSONReader.Limits, remedy: String
    ) -> FrameHostError {
        FrameHostError(
            .invalidConfiguration, place: FaultPlace(file: file),
            what: count.map { "\($0) bytes exceed the limit of \(limits.bytes)" }
                ?? "has more bytes than the limit of \(limits.bytes)",
            remedy: remedy)
    }
}

extension Unicode.Scalar {
    /// The code point in at least four hex digits.
    var hex: String {
        let digits = String(value, radix: 16, uppercase: true)
        return String(repeating: "0", count: max(0, 4 - digits.count)) + digits
    }
}
