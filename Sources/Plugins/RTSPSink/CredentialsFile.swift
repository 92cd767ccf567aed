// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Glibc

/// Reads the option `users`. No fault shows what is in it.
enum CredentialsFile {
    static let mostBytes = 1 << 20

    /// - Parameter place: A path, or `env:NAME`.
    /// - Throws: ``FrameHostError``.
    static func read(_ place: String, resolve: (String) -> String) throws -> Credentials {
        let isVariable = place.hasPrefix("env:")
        let name = isVariable ? String(place.dropFirst(4)) : resolve(place)
        let shown = isVariable ? "the environment variable '\(name)'" : "the file '\(name)'"
        guard let text = isVariable ? getenv(name).map({ String(cString: $0) }) : contents(name) else {
            throw FrameHostError(
                .unavailable,
                what: isVariable
                    ? "\(shown) is not set" : "\(shown) cannot be read: \(String(cString: strerror(errno)))",
                remedy: isVariable
                    ? "Set it to lines of name:password, or name a file."
                    : "Correct 'users', or make the file readable for this user.")
        }
        let (credentials, faultyLine) = Credentials.parse(text)
        guard let credentials else {
            throw FrameHostError(
                .invalidConfiguration, what: "line \(faultyLine) of \(shown) must be name:password",
                remedy: "Correct that line.")
        }
        guard !credentials.isEmpty else {
            throw FrameHostError(
                .invalidConfiguration, what: "\(shown) must name a user",
                remedy: "Add a line name:password, or leave 'users' out to let every client play.")
        }
        return credentials
    }

    private static func contents(_ path: String) -> String? {
        guard let file = fopen(path, "re") else { return nil }
        defer { fclose(file) }
        var bytes = [UInt8](repeating: 0, count: mostBytes)
        let count = fread(&bytes, 1, bytes.count, file)
        guard ferror(file) == 0 else { return nil }
        return String(decoding: bytes[..<count], as: UTF8.self)
    }
}
