// SPDX-License-Identifier: Apache-2.0

import ServerAccess

/// Says whether a request comes from a user of the list. A value without clock.
struct LoginCheck: Sendable {
    static let realm = "framehost"
    /// How far a client's clock may differ, in seconds.
    static let tolerance: Int64 = 60

    enum Verdict: Sendable, Equatable {
        /// The name; empty where anybody may.
        case granted(String)
        /// Nothing that could be checked was sent.
        case missing
        case wrong
        /// The digest is right, and its time is not.
        case wrongTime
        /// The digest is right, and was used before.
        case replayed
        /// The digest is right, and the client has used too many nonces.
        case crowded
        /// HTTP digest with a nonce that is too old: the client tries again by itself.
        case stale
        /// A password that is not digested.
        case plain
        /// The address must wait, in seconds.
        case pause(Int)
    }

    /// When a request came.
    struct Moment: Sendable {
        /// Seconds since 1970.
        var wall: Int64
        /// Nanoseconds of the monotonic clock.
        var now: Int64
    }

    /// Nil where anybody may.
    private var users: Credentials?
    private var tries = LoginTries()
    private var known = KnownClients()
    private var tokens: ReplayGuard
    private var nonces: NonceBook

    init(users: Credentials?, key: [UInt8] = NonceBook.randomKey(), tokens: ReplayGuard = ReplayGuard()) {
        (self.users, self.tokens) = (users, tokens)
        nonces = NonceBook(key: key)
    }

    var isOpen: Bool { users == nil }

    /// Takes another list, as the sinks have just read it. Whoever is not in it must not go on.
    mutating func change(_ users: Credentials) {
        guard self.users != nil else { return }
        self.users = users
        known = KnownClients()
    }

    /// Seconds that a client has to wait; nil where it need not.
    private func pause(of client: Client, _ now: Int64) -> Int? {
        known.contains(client, now: now) ? nil : tries.pause(of: client.network, now: now)
    }

    private mutating func failed(_ client: Client, name: String, secret: String, _ now: Int64) -> Verdict {
        known.forget(client)
        tries.failed(client.network, name: name, secret: secret, now: now)
        return .wrong
    }

    private mutating func granted(_ name: String, to client: Client, _ now: Int64) -> Verdict {
        known.note(client, now: now)
        return .granted(name)
    }

    /// What to report of wrong logins now.
    mutating func takeNews(now: Int64) -> [LoginTries.News] { tries.takeNews(now: now) }

    /// A request over SOAP: its UsernameToken, else the field `Authorization`.
    ///
    /// - Parameter request: A hash of what is asked.
    mutating func judge(
        _ token: UsernameToken?, for request: Int, _ authorization: String?, method: String, target: String,
        from client: Client, at moment: Moment
    ) -> Verdict {
        guard let users else { return .granted("") }
        if let seconds = pause(of: client, moment.now) { return .pause(seconds) }
        // Clients without a login send a token without a name.
        guard let token, !token.name.isEmpty else {
            return judge(authorization, method: method, target: target, from: client, at: moment)
        }
        guard token.isDigest else { return token.password.isEmpty ? .missing : .plain }
        guard let password = users.password(of: token.name),
            let right = UsernameToken.digest(nonce: token.nonce, created: token.created, password: password),
            Secrets.isEqual(right, token.password)
        else { return failed(client, name: token.name, secret: token.password, moment.now) }
        guard let created = XMLTime.seconds(token.created), abs(created - moment.wall) <= Self.tolerance else {
            return .wrongTime
        }
        let outcome = tokens.take(
            "\(token.created) \(token.nonce)", time: created, oldest: moment.wall - Self.tolerance, from: client,
            request: request, now: moment.now)
        switch outcome {
        case .new: return granted(token.name, to: client, moment.now)
        case .used: return .replayed
        case .crowded: return .crowded
        }
    }

    /// A request by HTTP digest (RFC 2617) with `qop=auth`.
    ///
    /// - Parameter target: As the request has it.
    mutating func judge(
        _ authorization: String?, method: String, target: String, from client: Client, at moment: Moment
    ) -> Verdict {
        guard let users else { return .granted("") }
        if let seconds = pause(of: client, moment.now) { return .pause(seconds) }
        guard let authorization else { return .missing }
        guard authorization.utf8.count <= 4096, case .digest(let digest) = Authorization(authorization) else {
            return .plain
        }
        guard digest.qop.map({ ASCII.equalsIgnoringCase($0, "auth") }) ?? false, digest.realm == Self.realm,
            digest.algorithm.map({ ASCII.equalsIgnoringCase($0, "MD5") }) ?? true, digest.count.utf8.count == 8,
            let count = UInt32(digest.count, radix: 16)
        else { return .missing }
        guard digest.uri == target, let password = users.password(of: digest.username),
            Secrets.isEqual(
                Authorization.digestResponse(
                    .digest, name: digest.username, password: password, realm: digest.realm, nonce: digest.nonce,
                    method: method, uri: digest.uri, counted: "\(digest.count):\(digest.clientNonce):auth:"),
                digest.response.lowercased())
        else { return failed(client, name: digest.username, secret: digest.response, moment.now) }
        switch nonces.take(digest.nonce, count: count, now: moment.now) {
        case .good: return granted(digest.username, to: client, moment.now)
        // A nonce of an earlier run of this program is forged as well; whoever sends it knows the password.
        case .stale, .forged: return .stale
        }
    }

    /// `WWW-Authenticate`.
    mutating func challenge(isStale: Bool, now: Int64) -> String {
        "Digest realm=\"\(Self.realm)\", qop=\"auth\", algorithm=MD5, nonce=\"\(nonces.make(now: now))\""
            + (isStale ? ", stale=true" : "")
    }
}
