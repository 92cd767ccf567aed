// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Glibc

/// Name and password for a server. Neither its description nor any message shows them.
struct NetworkLogin: Sendable, CustomStringConvertible, CustomReflectable {
    let name: String
    let password: String

    /// `name:password` as a URL has it.
    var encoded: String { "\(Self.encode(name)):\(Self.encode(password))" }
    /// The texts that must be hidden.
    var secrets: [String] { [encoded, "\(name):\(password)", Self.encode(password), password].filter { $0 != ":" } }
    var description: String { "a login" }
    var customMirror: Mirror { Mirror(self, children: []) }

    static let mostBytes = 4096

    /// Reads the option `login`, with messages like those of `users` of `rtsp-sink`. No fault shows what is in it.
    ///
    /// - Parameter place: A path, or `env:NAME`.
    /// - Throws: ``FrameHostError``.
    static func read(_ place: String, resolve: (String) -> String) throws -> NetworkLogin {
        let isVariable = place.hasPrefix("env:")
        let name = isVariable ? String(place.dropFirst(4)) : resolve(place)
        let shown = isVariable ? "the environment variable '\(name)'" : "the file '\(name)'"
        guard let text = isVariable ? getenv(name).map({ String(cString: $0) }) : contents(name) else {
            throw FrameHostError(
                .unavailable, place: "login",
                what: isVariable
                    ? "\(shown) is not set" : "\(shown) cannot be read: \(String(cString: strerror(errno)))",
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
        return NetworkLogin(
            name: String(lines[0][..<colon]), password: String(lines[0][lines[0].index(after: colon)...]))
    }

    private static func contents(_ path: String) -> String? {
        guard let file = fopen(path, "re") else { return nil }
        defer { fclose(file) }
        var bytes = [UInt8](repeating: 0, count: mostBytes)
        let count = fread(&bytes, 1, bytes.count, file)
        guard ferror(file) == 0 else { return nil }
        return String(decoding: bytes[..<count], as: UTF8.self)
    }

    /// RFC 3986, 2.1: all but unreserved characters.
    private static func encode(_ text: String) -> String {
        let digits = Array("0123456789ABCDEF")
        var result = ""
        for byte in text.utf8 {
            let scalar = UnicodeScalar(byte)
            if byte < 128,
                scalar.properties.isAlphabetic || (48...57).contains(byte) || "-._~".unicodeScalars.contains(scalar)
            {
                result.unicodeScalars.append(scalar)
            } else {
                result += "%\(digits[Int(byte >> 4)])\(digits[Int(byte & 15)])"
            }
        }
        return result
    }
}
