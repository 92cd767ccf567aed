// SPDX-License-Identifier: Apache-2.0

extension String {
    /// Which newlines stay in a text.
    public enum KeptLines: Sendable {
        case none
        /// Those before lines that are indented by two spaces, as the cause of a fault is: such lines do not look
        /// like messages of their own.
        case indented
        case all
    }

    /// The text on one line, in characters that a terminal shows as they are.
    ///
    /// Control characters, and those that change the direction of writing, become `\n` or `\u{1b}`. Names of files
    /// and texts of servers may contain any.
    public func printable(keeping lines: KeptLines = .none) -> String {
        guard unicodeScalars.contains(where: \.isUnprintable) else { return self }
        var result = ""
        for index in unicodeScalars.indices {
            let scalar = unicodeScalars[index]
            switch scalar {
            case "\n"
            where lines == .all || (lines == .indented && unicodeScalars[index...].starts(with: "\n  ".unicodeScalars)):
                result.unicodeScalars.append(scalar)
            case "\n": result += "\\n"
            case "\r": result += "\\r"
            case "\t": result += "\\t"
            case _ where scalar.isUnprintable: result += "\\u{\(String(scalar.value, radix: 16))}"
            default: result.unicodeScalars.append(scalar)
            }
        }
        return result
    }
}

extension Unicode.Scalar {
    /// C0, DEL and C1 controls, line and paragraph separators, marks that turn the direction of writing (Unicode 16, 23.2).
    var isUnprintable: Bool {
        switch value {
        case 0..<0x20, 0x7F..<0xA0, 0x2028...0x202E, 0x2066...0x2069: true
        default: false
        }
    }
}
