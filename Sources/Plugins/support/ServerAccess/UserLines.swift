// SPDX-License-Identifier: Apache-2.0

/// The lines of a list of users, as the option `users` of servers names one.
public enum UserLines {
    /// Lines with their numbers, from 1 on, without blanks at both ends. Empty lines and those that begin with `#` are
    /// left out.
    public static func of(_ text: String) -> [(number: Int, text: String)] {
        text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline).enumerated().compactMap {
            index, line in
            let line = trimmed(line)
            return line.isEmpty || line.hasPrefix("#") ? nil : (index + 1, line)
        }
    }

    /// The parts before and after the first colon; nil without one. Compared as bytes: an accent would combine with the
    /// colon before it into another character.
    public static func split(_ text: Substring) -> (before: Substring, after: Substring)? {
        guard let colon = text.utf8.firstIndex(of: 58) else { return nil }
        return (text[..<colon], text[text.utf8.index(after: colon)...])
    }

    /// Not a control character, and none that changes the direction of a text.
    public static func isPrintable(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate, .unassigned: false
        default: true
        }
    }

    private static func trimmed(_ text: Substring) -> String {
        func isBlank(_ byte: UInt8) -> Bool { byte == 32 || byte == 9 }
        let bytes = Array(text.utf8)
        guard let first = bytes.firstIndex(where: { !isBlank($0) }), let last = bytes.lastIndex(where: { !isBlank($0) })
        else { return "" }
        return String(decoding: bytes[first...last], as: UTF8.self)
    }
}
