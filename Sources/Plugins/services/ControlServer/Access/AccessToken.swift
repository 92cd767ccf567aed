// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Glibc
import ServerAccess

/// The token that clients must show. Never printed: its description only says that there is one.
struct AccessToken: Sendable, CustomStringConvertible, CustomDebugStringConvertible {
    static let rule = "16 to 256 ASCII letters, digits and punctuation marks, without spaces"
    static let remedy = "Make a token with `openssl rand -hex 16`."
    private let bytes: [UInt8]

    /// Nil for a text that breaks ``rule``.
    init?(_ text: String) {
        let bytes = Array(text.utf8)
        guard (16...256).contains(bytes.count), bytes.allSatisfy({ (33...126).contains($0) }) else { return nil }
        self.bytes = bytes
    }

    /// Compares in a time that does not depend on how many characters are right.
    func matches(_ given: String) -> Bool { Secrets.isEqual(bytes, Array(given.utf8)) }

    var description: String { "a token" }
    var debugDescription: String { description }

    /// A relative path begins at the chain file's folder.
    static func path(_ path: String, folder: String) -> String {
        path.hasPrefix("/") || folder.isEmpty ? path : "\(folder)/\(path)"
    }

    /// The first line of a file.
    ///
    /// - Throws: ``FrameHostError``; none shows what is in the file.
    static func read(_ given: String, folder: String) throws -> AccessToken {
        let path = Self.path(given, folder: folder)
        // Whoever writes the token where its file is meant finds it in no message.
        if AccessToken(given) != nil, access(path, F_OK) != 0 {
            throw FrameHostError(
                .invalidConfiguration, place: "tokenFile",
                what: "'tokenFile' must name a file with the token, and there is no such file",
                remedy: "Write the token into a file, and set 'tokenFile' to the path of that file.")
        }
        let line = try RunFiles.contents(of: path, option: "tokenFile").prefix { $0 != 10 && $0 != 13 }
        guard let token = AccessToken(String(decoding: line, as: UTF8.self)) else {
            throw FrameHostError(
                .invalidConfiguration, place: "tokenFile",
                what: "the first line of '\(path)' must be a token: \(rule)", remedy: remedy)
        }
        return token
    }
}
