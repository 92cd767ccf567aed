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
            let reason = errno
            if !isVariable, reason == ENOENT {
                throw FrameHostError(
                    .unavailable, place: "users", what: "\(shown) does not exist",
                    remedy: "Create it, or correct 'users'.")
            }
            throw FrameHostError(
                .unavailable, place: "users",
                what: isVariable
                    ? "\(shown) is not set" : "\(shown) cannot be read: \(String(cString: strerror(reason)))",
                remedy: isVariable
                    ? "Set it to lines of name:password, or name a file."
                    : reason == EFBIG
                        ? "Name a file of at most \(mostBytes >> 20) MiB."
                        : "Correct 'users', or make the file readable for this user.")
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

    private static func contents(_ path: String) -> String? {
        // Not blocking: a FIFO of this name must not hold us up.
        let file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
        guard file >= 0 else { return nil }
        defer { close(file) }
        var bytes = [UInt8](repeating: 0, count: mostBytes + 1)
        var count = 0
        while count < bytes.count {
            let more = bytes.withUnsafeMutableBytes { Glibc.read(file, $0.baseAddress! + count, $0.count - count) }
            if more < 0, errno == EINTR { continue }
            if more < 0, errno == EAGAIN {
                // A pipe whose writer is slow: `<(pass show …)`.
                var entry = pollfd(fd: file, events: Int16(POLLIN), revents: 0)
                if poll(&entry, 1, 5000) > 0 { continue }
                errno = ETIMEDOUT
            }
            guard more >= 0 else { return nil }
            if more == 0 { break }
            count += more
        }
        // Cut off, its last line could be another password.
        guard count <= mostBytes else {
            errno = EFBIG
            return nil
        }
        return String(decoding: bytes[..<count], as: UTF8.self)
    }
}
