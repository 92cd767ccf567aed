// SPDX-License-Identifier: Apache-2.0

import ServerAccess

/// What a request asks. It is read from the text before any lock is taken, so that no text is parsed while other
/// clients wait.
///
/// Every value is bounded: a list in its entries, a text in its bytes. A larger one is answered with 400.
struct RequestValues: Sendable {
    enum Limit {
        static let transportBytes = 2 << 10
        static let transports = TransportHeader.mostSpecs
        static let requiredBytes = 1 << 10
        static let rangeBytes = 256
        static let sessionBytes = 256
        static let cookieBytes = 128
        static let authorizationBytes = 6 << 10
    }

    enum Version: Sendable, Equatable { case rtsp1, http, other }

    enum Range: Sendable, Equatable {
        case absent
        case unreadable
        case asked(PlayRange)
    }

    /// One of the two requests that make a tunnel.
    struct Tunnel: Sendable, Equatable {
        var cookie: String
        /// True for the POST.
        var isInput: Bool
    }

    /// The verdict on the answer to a challenge. It is found before the lock is taken, and holds only for the
    /// challenge that was checked.
    struct Proof: Sendable {
        var edition: UInt64
        var verdict: Challenge.Verdict
    }

    var version: Version
    /// `CSeq`; nil where it is missing, appears twice, or is not a number.
    var sequence: String?
    var method: RTSPMethod?
    /// Nil where the target is not an RTSP URL.
    var url: RTSPURL?
    var sessionID: String?
    var transports: [TransportSpec] = []
    var range = Range.absent
    /// Whether another speed is asked for. Then the answer names the real one (RFC 2326, 12.34 and 12.35).
    var hasScale = false
    var hasSpeed = false
    /// `Require` and `Proxy-Require`, nothing of which is supported.
    var required: String?
    /// The text of `Authorization`.
    var authorization: String?
    var hasBody = false
    var tunnel: Tunnel?
    /// Whether a value is larger than it may be.
    var isExcessive = false
    /// Present once an answer to a challenge was checked.
    var proof: Proof?

    init(_ request: RTSPRequest) {
        version = request.version == "RTSP/1.0" ? .rtsp1 : request.version.hasPrefix("HTTP/") ? .http : .other
        // CSeq is a number of at most 10 digits. Without a usable one the answer has none.
        if request.headers.all("CSeq").count == 1 {
            sequence = request.headers["CSeq"].flatMap { ASCII.number($0, atMost: 9_999_999_999) }.map(String.init)
        }
        method = RTSPMethod(rawValue: request.method)
        url = RTSPURL(request.target)
        hasBody = !request.body.isEmpty
        readHeaders(request.headers)
        if version == .http, request.method == "GET" || request.method == "POST",
            let cookie = bounded(request.headers["x-sessioncookie"], Limit.cookieBytes), !cookie.isEmpty,
            cookie.utf8.allSatisfy({ $0 < 127 })
        {
            tunnel = Tunnel(cookie: cookie, isInput: request.method == "POST")
        }
    }

    private mutating func readHeaders(_ headers: HeaderFields) {
        sessionID = bounded(headers["Session"], Limit.sessionBytes).flatMap { SessionHeader($0)?.id }
        if let text = bounded(headers["Transport"], Limit.transportBytes) {
            if text.utf8.count(where: { $0 == 44 }) >= Limit.transports {
                isExcessive = true
            } else {
                transports = TransportHeader.parse(text)
            }
        }
        if let text = bounded(headers["Range"], Limit.rangeBytes) {
            range = PlayRange(text).map { .asked($0) } ?? .unreadable
        }
        hasScale = headers["Scale"] != nil
        hasSpeed = headers["Speed"] != nil
        let all = headers.all("Require") + headers.all("Proxy-Require")
        if !all.isEmpty { required = bounded(all.joined(separator: ", "), Limit.requiredBytes) }
        authorization = bounded(headers["Authorization"], Limit.authorizationBytes)
    }

    private mutating func bounded(_ text: String?, _ mostBytes: Int) -> String? {
        guard let text else { return nil }
        guard text.utf8.count <= mostBytes else {
            isExcessive = true
            return nil
        }
        return text
    }

    /// The path that the request is about, which may demand credentials.
    var path: String? {
        guard version == .rtsp1, sequence != nil, !isExcessive, let method, method.isOffered, method != .options,
            required == nil
        else {
            return nil
        }
        return url?.path
    }

    /// Checks the answer to a path's challenge. [without a lock: it hashes what a client has written]
    mutating func prove(_ demanded: Signalling.Demand) {
        guard let method, let url else { return }
        proof = Proof(
            edition: demanded.edition,
            verdict: demanded.challenge.judge(authorization, method: method.rawValue, url: url, nonce: demanded.nonce))
    }
}
