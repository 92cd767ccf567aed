// SPDX-License-Identifier: Apache-2.0

import ServerAccess

/// What a client says of itself in the header `Security` (Web Services Security, UsernameToken profile 1.0).
struct UsernameToken: Sendable, Equatable {
    static let longestNonce = 128

    var name: String
    var password: String
    /// Whether the password is a digest, not the password itself.
    var isDigest: Bool
    /// As it was sent, in Base64.
    var nonce: String
    var created: String

    init(_ element: XMLElement) {
        name = element["Username"]?.value ?? ""
        password = element["Password"]?.value ?? ""
        isDigest = element["Password"]?.attribute("Type")?.hasSuffix("#PasswordDigest") ?? false
        nonce = element["Nonce"]?.value ?? ""
        created = element["Created"]?.value ?? ""
    }

    init(name: String, password: String, isDigest: Bool = true, nonce: String, created: String) {
        (self.name, self.password, self.isDigest) = (name, password, isDigest)
        (self.nonce, self.created) = (nonce, created)
    }

    /// The digest of a password: Base64 of SHA-1 over nonce, time and password. Nil for a nonce that is no Base64, is
    /// empty or too long.
    static func digest(nonce: String, created: String, password: String) -> String? {
        guard nonce.utf8.count <= longestNonce * 2, created.utf8.count <= 64, let bytes = Base64.decode(nonce),
            (1...longestNonce).contains(bytes.count)
        else { return nil }
        return Base64.encode(MessageDigest.sha1(bytes + Array(created.utf8) + Array(password.utf8)))
    }
}
