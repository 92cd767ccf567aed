// SPDX-License-Identifier: Apache-2.0

/// Text from outside in the DOT language of Graphviz (https://graphviz.org/doc/info/lang.html).
enum DotText {
    /// The most characters of one text. A longer one is cut with `…`.
    static let most = 120

    /// A quoted string: `"a \"b\" c"`. In attributes Graphviz also interprets `\N`, `&amp;` and the like, so a
    /// backslash is doubled and an ampersand is written as an entity.
    static func quoted(_ text: String) -> String {
        var result = "\""
        for scalar in bounded(text).unicodeScalars {
            switch scalar {
            case "\"": result += "\\\""
            case "\\": result += "\\\\"
            case "&": result += "&amp;"
            default: result.unicodeScalars.append(scalar)
            }
        }
        return result + "\""
    }

    /// Text within a label that is written like HTML. Graphviz reads it as XML and then replaces `\N`, `\G` and the
    /// like by names, so a backslash is doubled here too.
    static func markup(_ text: String) -> String {
        var result = ""
        for scalar in bounded(text).unicodeScalars {
            switch scalar {
            case "&": result += "&amp;"
            case "<": result += "&lt;"
            case ">": result += "&gt;"
            case "\"": result += "&quot;"
            case "\\": result += "\\\\"
            default: result.unicodeScalars.append(scalar)
            }
        }
        return result
    }

    /// One line of bounded length, without characters that XML 1.0 (§2.2) does not allow or that a terminal would obey.
    static func bounded(_ text: String) -> String {
        let clean = TerminalText.clean(String(text.prefix(most + 1)))
        var allowed = ""
        var count = 0
        for scalar in clean.unicodeScalars {
            // A character can have any number of combining marks.
            guard count < most else { return allowed + "…" }
            switch scalar.value {
            case 0xfffe, 0xffff: allowed += "?"
            default: allowed.unicodeScalars.append(scalar)
            }
            count += 1
        }
        return allowed
    }
}
