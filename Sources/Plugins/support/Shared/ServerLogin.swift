// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// Name and password for a server. Neither its description nor any message shows them.
package struct ServerLogin: Sendable, CustomStringConvertible, CustomReflectable {
    package let name: String
    package let password: String

    package var description: String { "a login" }
    package var customMirror: Mirror { Mirror(self, children: []) }

    /// The most bytes of a file or variable.
    package static let mostBytes = 4096

    package init(name: String, password: String) {
        self.name = name
        self.password = password
    }

    /// Reads the option `login`. No fault shows what is in it.
    ///
    /// - Parameters:
    ///   - place: A path, or `env:NAME`.
    ///   - resolve: Makes a path absolute that begins at the chain file's folder.
    /// - Throws: ``FrameHostError``.
    package static func read(_ place: String, resolve: (String) -> String) throws -> ServerLogin {
        let (text, shown) = try RunFiles.secret(
            at: place, option: "login", content: "name:password", mostBytes: mostBytes, resolve: resolve)
        // Editors of other systems begin a file with a byte order mark.
        let content = text.unicodeScalars.first == "\u{FEFF}" ? String(text.unicodeScalars.dropFirst()) : text
        let lines = content.split(whereSeparator: \.isNewline).filter { !$0.allSatisfy(\.isWhitespace) }
        guard lines.count == 1, let colon = lines[0].firstIndex(of: ":"),
            lines[0].utf8.allSatisfy({ $0 >= 32 && $0 != 127 }), lines[0].utf8.count > 1
        else {
            throw FrameHostError(
                .invalidConfiguration, place: "login",
                what: "\(shown) must contain exactly one line, of the form name:password",
                remedy: "Write only the name, a colon and the password, which may be empty.")
        }
        return ServerLogin(
            name: String(lines[0][..<colon]), password: String(lines[0][lines[0].index(after: colon)...]))
    }
}
