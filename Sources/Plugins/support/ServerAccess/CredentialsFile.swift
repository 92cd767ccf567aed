// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// Reads the option `users`. No fault shows what is in it.
public enum CredentialsFile {
    /// The most bytes of a file or variable. More are refused, not cut: the last line of a part could be another password.
    public static let mostBytes = 1 << 20

    /// [any thread] The users of a file or variable.
    ///
    /// - Parameters:
    ///   - place: A path, or `env:NAME`.
    ///   - resolve: Makes a path absolute that begins at the chain file's folder.
    /// - Throws: ``FrameHostError``.
    public static func read(_ place: String, resolve: (String) -> String) throws -> Credentials {
        let (text, shown) = try RunFiles.secret(
            at: place, option: "users", content: "lines of name:password", mostBytes: mostBytes, resolve: resolve)
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
