// SPDX-License-Identifier: Apache-2.0

import COpenSSL
import FrameCore

/// What signs events: a text that the receiver knows too. Neither its description nor any message shows it.
struct WebhookSecret: Sendable, CustomStringConvertible, CustomReflectable {
    /// How many characters it has. Fewer could be guessed from one signed event.
    static let lengths = 16...1024

    private let key: [UInt8]

    var description: String { "a secret" }
    var customMirror: Mirror { Mirror(self, children: []) }

    init(_ text: String) { key = Array(text.utf8) }

    /// Reads the option `secret`. No fault shows what is in it.
    ///
    /// - Parameters:
    ///   - place: A path, or `env:NAME`.
    ///   - resolve: Makes a path absolute that begins at the chain file's folder.
    /// - Throws: ``FrameHostError``.
    static func read(_ place: String, resolve: (String) -> String) throws -> WebhookSecret {
        let (text, shown) = try RunFiles.secret(
            at: place, option: "secret", content: "the secret", mostBytes: 4096, resolve: resolve)
        let lines = text.split(whereSeparator: \.isNewline)
        guard lines.count == 1, lines[0].utf8.allSatisfy({ (33...126).contains($0) }),
            lengths.contains(lines[0].utf8.count)
        else {
            throw FrameHostError(
                .invalidConfiguration, place: "secret",
                what:
                    "\(shown) must contain exactly one line of \(lengths.lowerBound) to \(lengths.upperBound) ASCII letters, digits and marks, without blanks",
                remedy: "Make one with `openssl rand -hex 32`, and give the same to the receiver.")
        }
        return WebhookSecret(String(lines[0]))
    }

    /// The value of `Framehost-Signature`: HMAC-SHA256 (RFC 2104, FIPS 180-4) of the value of `Framehost-Time`, a dot
    /// and the body, in hex digits.
    func signature(time: Int, body: [UInt8]) -> String {
        let message = Array("\(time).".utf8) + body
        var digest = [UInt8](repeating: 0, count: Int(EVP_MAX_MD_SIZE))
        var length: UInt32 = 0
        let made = HMAC(EVP_sha256(), key, Int32(key.count), message, message.count, &digest, &length)
        // It fails only without memory, or without SHA-256.
        precondition(made != nil && length == 32, "OpenSSL has HMAC-SHA256")
        let digits = Array("0123456789abcdef".utf8)
        let hex = digest.prefix(32).flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }
        return "sha256=" + String(decoding: hex, as: UTF8.self)
    }
}
