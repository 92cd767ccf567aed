// SPDX-License-Identifier: Apache-2.0

import ServerAccess

/// Asks a client who it is, and checks its answer.
struct Challenge: Sendable {
    static let realm = "framehost"

    let scheme: AuthenticationScheme
    let credentials: Credentials

    enum Verdict: Sendable, Equatable {
        case granted(user: String)
        case missing
        /// Right, except that the nonce is not this connection's. The client may try again without asking its user.
        case stale
        case wrong
    }

    /// `WWW-Authenticate`. live555 reads `realm`, then `nonce`, then `stale`, in this order and with one blank after
    /// each comma.
    func header(nonce: String, isStale: Bool = false) -> String {
        if scheme == .basic { return "Basic realm=\"\(Self.realm)\"" }
        return "Digest realm=\"\(Self.realm)\", nonce=\"\(nonce)\"" + (isStale ? ", stale=TRUE" : "")
            + (scheme == .sha256 ? ", algorithm=SHA-256" : "")
    }

    /// - Parameter url: Where the request points. Clients sign the URL of the request, the URL of the stream with or
    ///   without a slash at its end, or only the path.
    func judge(_ header: String?, method: String, url: RTSPURL, nonce: String) -> Verdict {
        guard let header else { return .missing }
        switch Authorization(header) {
        case .basic(let name, let password):
            guard scheme == .basic, let right = credentials.password(of: name), Secrets.isEqual(right, password) else {
                return .wrong
            }
            return .granted(user: name)
        case .digest(let digest):
            return judge(digest, method: method, url: url, nonce: nonce)
        case nil: return .wrong
        }
    }

    private func judge(_ digest: Authorization.Digest, method: String, url: RTSPURL, nonce: String) -> Verdict {
        let isSHA256 = digest.algorithm.map { ASCII.equalsIgnoringCase($0, "SHA-256") } ?? false
        guard scheme != .basic, isSHA256 == (scheme == .sha256), digest.realm == Self.realm,
            refers(digest.uri, to: url),
            let password = credentials.password(of: digest.username)
        else { return .wrong }
        let right = Authorization.digestResponse(
            scheme, name: digest.username, password: password, realm: digest.realm, nonce: digest.nonce, method: method,
            uri: digest.uri)
        guard Secrets.isEqual(right, digest.response.lowercased()) else { return .wrong }
        return digest.nonce == nonce ? .granted(user: digest.username) : .stale
    }

    private func refers(_ uri: String, to url: RTSPURL) -> Bool {
        guard let signed = RTSPURL(uri) ?? RTSPURL("/" + uri) else { return false }
        return signed.path == url.path
    }
}
