// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Glibc

/// Reads the option `users`. No fault shows what is in it.
enum CredentialsFile {
    static let mostBytes = 1 << 20

    /// - Parameter place: A path, or `env:NAME`.
    /// - Throws: ``FrameHostError``.
    static func read(_ place: String, resolve: (String) -> String) throws -> Credentials {
        let text: String
        let shown: String
        if place.hasPrefix("env:") {
            let name = String(place.dropFirst(4))
            shown = "the environment variable '\(name)'"
            guard let value = getenv(name) else {
                throw FrameHostError(
                    .unavailable, place: "users", what: "\(shown) is not set",
                    remedy: "Set it to lines of name:password, or name a file.")
            }
            text = String(cString: value)
        } else {
            let path = resolve(place)
            shown = "the file '\(path)'"
            // A larger file is refused, not cut: the last line of a part could be another password.
            text = try String(
                decoding: RunFiles.contents(of: path, option: "users", mostBytes: mostBytes), as: UTF8.self)
        }
        let (credentials, faultyLine) = Credentials.parse(text)
        guard let credentials else {
            throw FrameHostError(
                .invalidConfiguration, place: "users", what: "line \(faultyLine) of \(shown) must be name:password",
                remedy: "Correct that line.")
        }
        guard !credentials.isEmpty else {
            throw FrameHostError(
                .invalidConfiguration, place: "users", what: "\(shown) must name a user",
                remedy: "Add a line name:password, or leave 'users' out to let every client play.")
        }
        return credentials
    }
}
