// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Glibc

/// Name and password for a server. Neither its description nor any message shows them.
package struct ServerLogin: Sendable, CustomStringConvertible, CustomReflectable {
    package let name: String
    package let password: String

    package var description: String { "a login" }
    package var customMirror: Mirror { Mirror(self, children: []) }

    /// A file must have fewer bytes than this.
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
        let isVariable = place.hasPrefix("env:")
        let name = isVariable ? String(place.dropFirst(4)) : resolve(place)
        let shown = isVariable ? "the environment variable '\(name)'" : "the file '\(name)'"
        guard let text = isVariable ? getenv(name).map({ String(cString: $0) }) : contents(name) else {
            let reason = errno
            if !isVariable, reason == ENOENT {
                throw FrameHostError(
                    .invalidConfiguration, place: "login", what: "\(shown) does not exist",
                    remedy: "Create it, or correct 'login'.")
            }
            throw FrameHostError(
                .invalidConfiguration, place: "login",
                what: isVariable
                    ? "\(shown) is not set" : "\(shown) cannot be read: \(String(cString: strerror(reason)))",
                remedy: isVariable
                    ? "Set it to name:password, or name a file."
                    : "Correct 'login', or make the file readable for this user.")
        }
        let lines = text.split(whereSeparator: \.isNewline).filter { !$0.allSatisfy(\.isWhitespace) }
        guard lines.count == 1, let colon = lines[0].firstIndex(of: ":"), text.utf8.count < mostBytes,
            lines[0].utf8.allSatisfy({ $0 >= 32 && $0 != 127 }), lines[0].index(after: colon) != lines[0].endIndex
        else {
            throw FrameHostError(
                .invalidConfiguration, place: "login", what: "\(shown) must have exactly one line name:password",
                remedy: "Write only the name, a colon and the password.")
        }
        return ServerLogin(
            name: String(lines[0][..<colon]), password: String(lines[0][lines[0].index(after: colon)...]))
    }

    private static func contents(_ path: String) -> String? {
        // Not blocking: a FIFO of this name must not hold us up.
        let file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
        guard file >= 0 else { return nil }
        defer { close(file) }
        var bytes = [UInt8](repeating: 0, count: mostBytes)
        let count = Glibc.read(file, &bytes, bytes.count)
        guard count >= 0 else { return nil }
        return String(decoding: bytes[..<count], as: UTF8.self)
    }
}
