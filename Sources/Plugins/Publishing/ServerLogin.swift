// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Glibc

/// Who to log in as. Its description, and all that is made of it for people, says nothing of it.
package struct ServerLogin: Sendable, CustomStringConvertible, CustomReflectable {
    package let name: String
    package let password: String

    package var description: String { "a login" }
    package var customMirror: Mirror { Mirror(self, children: []) }

    private static let mostBytes = 4096

    /// Reads the option `login`, in the words of `network-source`. No fault names what is in it.
    ///
    /// - Parameters:
    ///   - place: A path, or `env:NAME`.
    ///   - folder: Where a relative path begins.
    /// - Throws: ``FrameHostError``.
    package static func read(_ place: String, folder: String) throws -> ServerLogin {
        let isVariable = place.hasPrefix("env:")
        let name = isVariable ? String(place.dropFirst(4)) : ServerPath.resolve(place, folder: folder)
        let shown = isVariable ? "the environment variable '\(name)'" : "the file '\(name)'"
        guard let text = isVariable ? getenv(name).map({ String(cString: $0) }) : contents(name) else {
            throw FrameHostError(
                .invalidConfiguration, place: "login",
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

/// Files that options of a service name.
package enum ServerPath {
    /// A relative path begins at the chain file's folder.
    package static func resolve(_ path: String, folder: String) -> String {
        path.hasPrefix("/") || folder.isEmpty ? path : "\(folder)/\(path)"
    }

    /// - Throws: ``FrameHostError`` where the file that `option` names cannot be read.
    package static func readable(_ path: String, option: String, folder: String) throws -> String {
        let path = resolve(path, folder: folder)
        guard access(path, R_OK) == 0 else {
            throw FrameHostError(
                .invalidConfiguration, place: FaultPlace(option),
                what: "the file '\(path)' cannot be read: \(String(cString: strerror(errno)))",
                remedy: "Correct '\(option)', or make the file readable for this user.")
        }
        return path
    }
}
