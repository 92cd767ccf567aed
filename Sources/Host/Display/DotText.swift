// SPDX-License-Identifier: Apache-2.0

/// Text from outside in the DOT language of Graphviz (https://graphviz.org/doc/info/lang.html).
enum DotText {
    /// Characters of one text at most: what is longer is cut with `…`.
    static let most = 120

    /// A quoted string: `"a \"b\" c"`. In attributes Graphviz also knows `\N`, `&amp;` and the like, so that a backslash
    /// is doubled and an ampersand written as an entity.
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

    /// Text within a label that is written like HTML: it is read as XML, and then names stand in the place of `\N`, `\G`
    /// and the like, so that a backslash is doubled here too.
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

    /// One line without what XML 1.0 (§2.2) does not allow or a viewer would obey, and not too long.
    static func bounded(_ text: String) -> String {
        let clean = TerminalText.clean(String(text.prefix(most + 1)))
        var allowed = ""
        var count = 0
        for scalar in clean.unicodeScalars {
            // A character can have any number of marks.
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
