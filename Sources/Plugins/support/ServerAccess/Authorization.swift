// SPDX-License-Identifier: Apache-2.0

/// The scheme by which a client proves who it is.
public enum AuthenticationScheme: String, Sendable, CaseIterable {
    /// The password itself, in Base64 (RFC 7617).
    case basic
    /// Digest with MD5 (RFC 2069), which every client has.
    case digest
    /// Digest with SHA-256 (RFC 7616), which FFmpeg and live555 do not have.
    case sha256
}

/// The value of an `Authorization` header (RFC 2617, 2 and 3.2.2). The server judges it.
public enum Authorization: Sendable, Equatable {
    /// What a client sends for a digest. Empty where it has left something out.
    public struct Digest: Sendable, Equatable {
        /// The name.
        public var username = ""
        /// As the server said it.
        public var realm = ""
        /// As the server said it.
        public var nonce = ""
        /// What the client has signed.
        public var uri = ""
        /// The digest, in hexadecimal.
        public var response = ""
        /// `MD5` where it is left out.
        public var algorithm: String?
        /// `auth`, where the client counts its requests (RFC 2617, 3.2.2); else nil.
        public var qop: String?
        /// The number of the request with this nonce: eight hexadecimal digits.
        public var count = ""
        /// The client's own nonce.
        public var clientNonce = ""

        /// What a client sends that does not count its requests.
        public init(
            username: String = "", realm: String = "", nonce: String = "", uri: String = "", response: String = "",
            algorithm: String? = nil
        ) {
            (self.username, self.realm, self.nonce, self.uri) = (username, realm, nonce, uri)
            (self.response, self.algorithm) = (response, algorithm)
        }
    }

    /// A name and its password.
    case basic(name: String, password: String)
    /// Proof that the client knows the password.
    case digest(Digest)

    /// Reads the header's value; nil for another scheme, and for a value that is damaged.
    public init?(_ text: String) {
        let scheme = text.prefix { $0 != " " }
        let rest = ASCII.trimmed(text[scheme.endIndex...])
        if ASCII.equalsIgnoringCase(scheme, "Basic") {
            guard let bytes = Base64.decode(rest) else { return nil }
            let pair = String(decoding: bytes, as: UTF8.self)
            // Compared as bytes: an accent would combine with the colon before it into another character.
            guard let colon = pair.utf8.firstIndex(of: 58) else { return nil }
            self = .basic(name: String(pair[..<colon]), password: String(pair[pair.utf8.index(after: colon)...]))
            return
        }
        guard ASCII.equalsIgnoringCase(scheme, "Digest"), let fields = Self.parameters(rest) else { return nil }
        var digest = Digest()
        for (name, value) in fields {
            switch name {
            case "username": digest.username = value
            case "realm": digest.realm = value
            case "nonce": digest.nonce = value
            case "uri": digest.uri = value
            case "response": digest.response = value
            case "algorithm": digest.algorithm = value
            case "qop": digest.qop = value
            case "nc": digest.count = value
            case "cnonce": digest.clientNonce = value
            default: continue
            }
        }
        self = .digest(digest)
    }

    /// `name="value", name=value`; at most 32.
    public static func parameters(_ text: String) -> [(name: String, value: String)]? {
        var result: [(String, String)] = []
        var rest = Array(text.utf8)[...]
        func skipBlanks() {
            while let byte = rest.first, byte == 32 || byte == 9 || byte == 44 { rest = rest.dropFirst() }
        }
        skipBlanks()
        while !rest.isEmpty {
            guard result.count < 32, let equals = rest.firstIndex(of: 61) else { return nil }
            let name = ASCII.trimmed(String(decoding: rest[..<equals], as: UTF8.self)).lowercased()
            rest = rest[(equals + 1)...]
            var value: [UInt8] = []
            if rest.first == 34 {
                rest = rest.dropFirst()
                while let byte = rest.popFirst(), byte != 34 {
                    if byte == 92, let escaped = rest.popFirst() { value.append(escaped) } else { value.append(byte) }
                }
            } else {
                while let byte = rest.first, byte != 44 { value.append(byte); rest = rest.dropFirst() }
            }
            result.append((name, ASCII.trimmed(String(decoding: value, as: UTF8.self))))
            skipBlanks()
        }
        return result
    }

    /// The value as a client writes it, without count.
    public var text: String {
        switch self {
        case .basic(let name, let password): "Basic " + Base64.encode(Array("\(name):\(password)".utf8))
        case .digest(let digest):
            "Digest username=\"\(digest.username)\", realm=\"\(digest.realm)\", nonce=\"\(digest.nonce)\", uri=\"\(digest.uri)\", "
                + "response=\"\(digest.response)\"" + (digest.algorithm.map { ", algorithm=\($0)" } ?? "")
        }
    }

    /// The `response` of a digest (RFC 2069, 2.1.2; SHA-256: RFC 7616, 3.4).
    ///
    /// - Parameter counted: Of a client that counts, `nc:cnonce:auth:` (RFC 2617, 3.2.2.1).
    public static func digestResponse(
        _ scheme: AuthenticationScheme, name: String, password: String, realm: String, nonce: String, method: String,
        uri: String, counted: String = ""
    ) -> String {
        func hash(_ text: String) -> String {
            ASCII.hex(scheme == .sha256 ? MessageDigest.sha256(Array(text.utf8)) : MessageDigest.md5(Array(text.utf8)))
        }
        return hash("\(hash("\(name):\(realm):\(password)")):\(nonce):\(counted)\(hash("\(method):\(uri)"))")
    }
}
